//! Attributes a termination to an extension, and samples and collections as well. The stack is read
//! in a V8 interrupt just before `TerminateExecution`, because it is gone after unwinding.

use std::cell::RefCell;
use std::ffi::c_void;

use deno_core::{JsRuntime, v8};
use js_runtime_ext::{Author, SourcePositions, Stop};

use crate::attribution::heap_growth::HeapGrowth;
use crate::attribution::imports::Imports;
use crate::error::readable_stack;
use crate::limits::memory;
use crate::limits::watchdog::{Interrupts, Watchdog};

struct AttributionContext {
    context: v8::Global<v8::Context>,
    watchdog: Watchdog,
    imports: Imports,
    heap_growth: RefCell<HeapGrowth>,
    positions: SourcePositions,
}

thread_local! {
    /// Context of the isolate on this thread.
    static CONTEXT: RefCell<Option<AttributionContext>> = const { RefCell::new(None) };
}

/// The callbacks of this module, for the watchdog of an isolate.
pub(crate) const CALLBACKS: Interrupts = Interrupts {
    terminate: on_terminate,
    sample: on_sample,
    collection: on_collection,
};

/// Maximum number of frames that are read.
const MAX_FRAMES: usize = 64;

/// Enables attribution for the isolate on this thread.
pub(crate) fn install(runtime: &mut JsRuntime, watchdog: &Watchdog, imports: &Imports) {
    let installed = AttributionContext {
        context: runtime.main_context(),
        watchdog: watchdog.clone(),
        imports: imports.clone(),
        heap_growth: RefCell::default(),
        positions: SourcePositions::new(runtime.source_mapper()),
    };
    CONTEXT.with_borrow_mut(|context| *context = Some(installed));
    js_runtime_ext::set_thread_monitor(Some(Box::new(watchdog.clone())));
}

/// Disables attribution; must be called before the isolate is dropped.
pub(crate) fn uninstall() {
    CONTEXT.with_borrow_mut(|context| *context = None);
    js_runtime_ext::set_thread_monitor(None);
}

/// Installs a panic hook that parks the thread of a stopped isolate. deno_core does not expect a
/// termination while it loads one of its own modules: it panics where nothing can unwind, which
/// would abort the program. Nothing waits for a thread that is stopped. No other hook may be set
/// afterwards.
pub(crate) fn park_on_deno_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let location = panic.location();
        if location.is_some_and(|location| location.file().contains("deno_core")) && is_stopping() {
            loop {
                std::thread::park();
            }
        }
        before(panic);
    }));
}

/// Returns true if the isolate of this thread, if there is one, was stopped.
fn is_stopping() -> bool {
    let ends = |context: &AttributionContext| {
        let watchdog = &context.watchdog;
        watchdog.stopped().is_some() || watchdog.released()
    };
    let here = CONTEXT.try_with(|context| {
        let context = context.try_borrow();
        context.is_ok_and(|context| context.as_ref().is_some_and(ends))
    });
    here.unwrap_or(false)
}

/// Interrupt callback of a stop: reports the offender and its stack, then terminates. Runs in the
/// middle of JavaScript and must not call any.
unsafe extern "C" fn on_terminate(isolate: v8::UnsafeRawIsolatePtr, _data: *mut c_void) {
    CONTEXT.with_borrow(|context| {
        let Some(context) = context else {
            return;
        };
        // SAFETY: V8 calls this with the isolate that it runs, which outlives the call.
        let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(isolate) };
        let runs = context.author(&mut isolate);
        let mut author = runs.clone();
        if context.watchdog.stopped() == Some(Stop::OutOfMemory) {
            let limit = isolate.get_heap_statistics().heap_size_limit();
            author = context.heap_growth.borrow().offender(author, limit);
        }
        if context.watchdog.stopped() == Some(Stop::Deadline) {
            author = context.watchdog.offender(author);
        }
        // Reading a large source map takes time, and the author is more important than the stack.
        context.watchdog.note_offender(author.clone());
        let stack = match author == runs {
            true => stack_frames(&mut isolate, &context.context, &context.positions),
            // The code runs where another extension has left no room, or no time.
            false => String::new(),
        };
        let waits = author == runs && context.watchdog.stopped() == Some(Stop::Deadline);
        if waits && stack.is_empty() && context.watchdog.retry_attribution() {
            isolate.set_promise_hook(on_promise);
            return;
        }
        context.watchdog.report_offender(author, stack);
        context.watchdog.terminate();
    });
}

/// Promise hook of a stop whose interrupt found no running code. In an endless loop of `await`, V8
/// handles most interrupts between two promise jobs; its code still runs when it creates a promise.
unsafe extern "C" fn on_promise(
    hook: v8::PromiseHookType,
    promise: v8::Local<v8::Promise>,
    _parent: v8::Local<v8::Value>,
) {
    if hook == v8::PromiseHookType::Init {
        v8::callback_scope!(unsafe scope, promise);
        // SAFETY: V8 calls this with the isolate that it runs, which outlives the call.
        unsafe { on_terminate(scope.as_raw_isolate_ptr(), std::ptr::null_mut()) }
    }
}

/// Interrupt callback of the sampler: attributes the time and the growth of the heap since the last
/// sample.
unsafe extern "C" fn on_sample(isolate: v8::UnsafeRawIsolatePtr, _data: *mut c_void) {
    CONTEXT.with_borrow(|context| {
        let Some(context) = context else {
            return;
        };
        // SAFETY: V8 calls this with the isolate that it runs, which outlives the call.
        let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(isolate) };
        memory::poll_external(&mut isolate);
        let author = context.author(&mut isolate);
        context.attribute_heap(&mut isolate, author.as_ref());
        context.watchdog.attribute_time(author);
    });
}

/// Interrupt callback after a garbage collection: attributes the growth of the heap.
unsafe extern "C" fn on_collection(isolate: v8::UnsafeRawIsolatePtr, _data: *mut c_void) {
    CONTEXT.with_borrow(|context| {
        let Some(context) = context else {
            return;
        };
        // SAFETY: V8 calls this with the isolate that it runs, which outlives the call.
        let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(isolate) };
        let author = context.author(&mut isolate);
        context.attribute_heap(&mut isolate, author.as_ref());
    });
}

impl AttributionContext {
    fn attribute_heap(&self, isolate: &mut v8::Isolate, author: Option<&Author>) {
        let used = isolate.get_heap_statistics().used_heap_size();
        let extension = author.map(|author| author.id);
        self.heap_growth.borrow_mut().attribute(used, extension);
    }

    /// Returns the author of the running code.
    fn author(&self, isolate: &mut v8::Isolate) -> Option<Author> {
        v8::callback_scope!(unsafe scope, isolate);
        let context = v8::Local::new(scope, &self.context);
        let scope = &mut v8::ContextScope::new(scope, context);
        let marked = js_runtime_ext::author(scope);
        // Some code carries no mark (finalizers), or the mark of its caller (listeners of
        // `uncaughtException`).
        let files = map_frames(scope, |scope, frame| {
            Some(frame.get_script_name(scope)?.to_rust_string_lossy(scope))
        });
        let author = self.imports.author(&files.join("\n"), marked);
        author.or_else(js_runtime_ext::last_timer)
    }
}

/// Returns the frames of the running code in the format of an error's stack. Calls no JavaScript.
pub(crate) fn stack_frames(
    isolate: &mut v8::Isolate,
    context: &v8::Global<v8::Context>,
    positions: &SourcePositions,
) -> String {
    v8::callback_scope!(unsafe scope, isolate);
    let context = v8::Local::new(scope, context);
    let scope = &mut v8::ContextScope::new(scope, context);
    let lines = map_frames(scope, |scope, frame| {
        let file = frame.get_script_name(scope)?.to_rust_string_lossy(scope);
        let number = |number: usize| u32::try_from(number).ok().filter(|number| *number > 0);
        let line = number(frame.get_line_number())?;
        let position = positions.original(&file, line, number(frame.get_column())?)?;
        let function = frame.get_function_name(scope);
        let function = function.map(|name| name.to_rust_string_lossy(scope));
        Some(match function.filter(|name| !name.is_empty()) {
            Some(function) => format!("    at {function} ({position})"),
            None => format!("    at {position}"),
        })
    });
    readable_stack(&lines.join("\n"))
}

/// Applies `read` to the frames of the running code, the innermost first.
fn map_frames<'s, T>(
    scope: &mut v8::PinScope<'s, '_>,
    mut read: impl FnMut(&mut v8::PinScope<'s, '_>, v8::Local<'s, v8::StackFrame>) -> Option<T>,
) -> Vec<T> {
    let Some(trace) = v8::StackTrace::current_stack_trace(scope, MAX_FRAMES) else {
        return Vec::new();
    };
    let found = (0..trace.get_frame_count()).filter_map(|index| {
        let frame = trace.get_frame(scope, index)?;
        read(scope, frame)
    });
    found.collect()
}
