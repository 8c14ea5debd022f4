//! Whose code is it that is about to be stopped? Only the running code knows, and
//! unwinding forgets: V8 asks the thread between two instructions, as it does for a
//! termination, which follows.

use std::cell::RefCell;
use std::ffi::c_void;

use deno_core::{JsRuntime, v8};
use js_runtime_ext::{Author, Stop};

use crate::control::Control;
use crate::heap_shares::Shares;
use crate::imports::Imports;

struct Witness {
    context: v8::Global<v8::Context>,
    control: Control,
    imports: Imports,
    shares: RefCell<Shares>,
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
    };
    WITNESS.with_borrow_mut(|witness| *witness = Some(sworn));
}

/// Before the isolate goes.
pub(crate) fn dismiss() {
    WITNESS.with_borrow_mut(|witness| *witness = None);
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
        let mut author = witness.author(&mut isolate);
        if witness.control.stopped() == Some(Stop::OutOfMemory) {
            let limit = isolate.get_heap_statistics().heap_size_limit();
            author = witness.shares.borrow().culprit(author, limit);
        }
        witness.control.confess(author);
        witness.control.terminate();
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
        let author = self.imports.author(&stack(scope), marked);
        author.or_else(js_runtime_ext::last_timer)
    }
}

/// The files of the functions that run. Some carry no mark (finalizers), or that of
/// whoever called them (listeners of `uncaughtException`).
fn stack(scope: &mut v8::PinScope<'_, '_>) -> String {
    let Some(trace) = v8::StackTrace::current_stack_trace(scope, DEPTH) else {
        return String::new();
    };
    let frames = (0..trace.get_frame_count()).filter_map(|index| {
        let frame = trace.get_frame(scope, index)?;
        Some(frame.get_script_name(scope)?.to_rust_string_lossy(scope))
    });
    frames.collect::<Vec<_>>().join("\n")
}
