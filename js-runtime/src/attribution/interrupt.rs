//! Whose code is it that is about to be stopped? Only the running code knows, and
//! unwinding forgets: V8 asks the thread between two instructions, as it does for a
//! termination, which follows.

use std::cell::RefCell;
use std::ffi::c_void;

use deno_core::{JsRuntime, v8};
use js_runtime_ext::{Author, Places, Stop};

use crate::control::Control;
use crate::error::readable_stack;
use crate::heap_shares::Shares;
use crate::imports::Imports;
use crate::memory;

struct Witness {
    context: v8::Global<v8::Context>,
    control: Control,
    imports: Imports,
    shares: RefCell<Shares>,
    places: Places,
}

thread_local! {
    /// Of the isolate of this thread.
    static WITNESS: RefCell<Option<Witness>> = const { RefCell::new(None) };
}

/// Frames that are looked at.
const DEPTH: usize = 64;

/// From now on a stop of the isolate on this thread says whose code it was.
pub(crate) fn swear_in(runtime: &mut JsRuntime, control: &Control, imports: &Imports) {
    let sworn = Witness {
        context: runtime.main_context(),
        control: control.clone(),
        imports: imports.clone(),
        shares: RefCell::default(),
        places: Places::new(runtime.source_mapper()),
    };
    WITNESS.with_borrow_mut(|witness| *witness = Some(sworn));
    js_runtime_ext::watch(Some(Box::new(control.clone())));
}

/// Before the isolate goes.
pub(crate) fn dismiss() {
    WITNESS.with_borrow_mut(|witness| *witness = None);
    js_runtime_ext::watch(None);
}

/// deno_core does not expect V8 to be told to end while it loads a module of its own: it
/// panics where nothing can unwind, which would end the program. The thread stands still
/// instead; what is stopped is not waited for. No hook can be set any more then.
pub(crate) fn hold_still_when_stopped() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location();
        if place.is_some_and(|place| place.file().contains("deno_core")) && is_ending() {
            loop {
                std::thread::park();
            }
        }
        before(panic);
    }));
}

/// Whether the isolate of this thread, if it has one, was stopped.
fn is_ending() -> bool {
    let ends = |witness: &Witness| {
        let control = &witness.control;
        control.stopped().is_some() || control.released()
    };
    let here = WITNESS.try_with(|witness| {
        let witness = witness.try_borrow();
        witness.is_ok_and(|witness| witness.as_ref().is_some_and(ends))
    });
    here.unwrap_or(false)
}

/// For `request_interrupt`: runs on the thread of the isolate, in the midst of its
/// JavaScript, and may not call any.
pub(crate) unsafe extern "C" fn testify(isolate: v8::UnsafeRawIsolatePtr, _data: *mut c_void) {
    WITNESS.with_borrow(|witness| {
        let Some(witness) = witness else {
            return;
        };
        // SAFETY: V8 calls this with the isolate that it runs, which outlives the call.
        let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(isolate) };
        let runs = witness.author(&mut isolate);
        let mut author = runs.clone();
        if witness.control.stopped() == Some(Stop::OutOfMemory) {
            let limit = isolate.get_heap_statistics().heap_size_limit();
            author = witness.shares.borrow().culprit(author, limit);
        }
        if witness.control.stopped() == Some(Stop::Deadline) {
            author = witness.control.culprit(author);
        }
        // Reading a large source map takes time, and who it was counts more.
        witness.control.accuse(author.clone());
        let stack = match author == runs {
            true => frames_of(&mut isolate, &witness.context, &witness.places),
            // It runs where another has left no room, or no time.
            false => String::new(),
        };
        let waits = author == runs && witness.control.stopped() == Some(Stop::Deadline);
        if waits && stack.is_empty() && witness.control.is_asked_again() {
            return;
        }
        witness.control.confess(author, stack);
        witness.control.terminate();
    });
}

/// The same, now and then while JavaScript runs.
pub(crate) unsafe extern "C" fn charge_time(isolate: v8::UnsafeRawIsolatePtr, _data: *mut c_void) {
    WITNESS.with_borrow(|witness| {
        let Some(witness) = witness else {
            return;
        };
        // SAFETY: V8 calls this with the isolate that it runs, which outlives the call.
        let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(isolate) };
        memory::look_now_and_then(&mut isolate);
        let author = witness.author(&mut isolate);
        witness.control.charge_time(author);
    });
}

/// The same, after a garbage collection.
pub(crate) unsafe extern "C" fn charge(isolate: v8::UnsafeRawIsolatePtr, _data: *mut c_void) {
    WITNESS.with_borrow(|witness| {
        let Some(witness) = witness else {
            return;
        };
        // SAFETY: V8 calls this with the isolate that it runs, which outlives the call.
        let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(isolate) };
        let author = witness.author(&mut isolate).map(|author| author.id);
        let used = isolate.get_heap_statistics().used_heap_size();
        witness.shares.borrow_mut().charge(used, author);
    });
}

impl Witness {
    /// Whose code runs.
    fn author(&self, isolate: &mut v8::Isolate) -> Option<Author> {
        v8::callback_scope!(unsafe scope, isolate);
        let context = v8::Local::new(scope, &self.context);
        let scope = &mut v8::ContextScope::new(scope, context);
        let marked = js_runtime_ext::author(scope);
        // Some code carries no mark (finalizers), or that of whoever called it (listeners
        // of `uncaughtException`).
        let files = frames(scope, |scope, frame| {
            Some(frame.get_script_name(scope)?.to_rust_string_lossy(scope))
        });
        let author = self.imports.author(&files.join("\n"), marked);
        author.or_else(js_runtime_ext::last_timer)
    }
}

/// The frames of what runs, as an error has them. Calls no JavaScript.
pub(crate) fn frames_of(
    isolate: &mut v8::Isolate,
    context: &v8::Global<v8::Context>,
    places: &Places,
) -> String {
    v8::callback_scope!(unsafe scope, isolate);
    let context = v8::Local::new(scope, context);
    let scope = &mut v8::ContextScope::new(scope, context);
    let lines = frames(scope, |scope, frame| {
        let file = frame.get_script_name(scope)?.to_rust_string_lossy(scope);
        let number = |number: usize| u32::try_from(number).ok().filter(|number| *number > 0);
        let line = number(frame.get_line_number())?;
        let place = places.of(&file, line, number(frame.get_column())?)?;
        let function = frame.get_function_name(scope);
        let function = function.map(|name| name.to_rust_string_lossy(scope));
        Some(match function.filter(|name| !name.is_empty()) {
            Some(function) => format!("    at {function} ({place})"),
            None => format!("    at {place}"),
        })
    });
    readable_stack(&lines.join("\n"))
}

/// What `look` finds in the functions that run, the innermost first.
fn frames<'s, T>(
    scope: &mut v8::PinScope<'s, '_>,
    mut look: impl FnMut(&mut v8::PinScope<'s, '_>, v8::Local<'s, v8::StackFrame>) -> Option<T>,
) -> Vec<T> {
    let Some(trace) = v8::StackTrace::current_stack_trace(scope, DEPTH) else {
        return Vec::new();
    };
    let found = (0..trace.get_frame_count()).filter_map(|index| {
        let frame = trace.get_frame(scope, index)?;
        look(scope, frame)
    });
    found.collect()
}
