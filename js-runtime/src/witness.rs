//! Whose code is it that is about to be stopped? Only the running code knows, and
//! unwinding forgets: V8 asks the thread between two instructions, as it does for a
//! termination, which follows.

use std::cell::RefCell;
use std::ffi::c_void;

use deno_core::{JsRuntime, v8};

use js_runtime_ext::Author;

use crate::control::Control;
use crate::imports::Imports;

struct Witness {
    context: v8::Global<v8::Context>,
    control: Control,
    imports: Imports,
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
    };
    WITNESS.with_borrow_mut(|witness| *witness = Some(sworn));
}

/// Before the isolate goes.
pub(crate) fn dismiss() {
    WITNESS.with_borrow_mut(|witness| *witness = None);
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
        let author = {
            v8::callback_scope!(unsafe scope, &mut isolate);
            let context = v8::Local::new(scope, &witness.context);
            let scope = &mut v8::ContextScope::new(scope, context);
            js_runtime_ext::author(scope).or_else(|| author_on_stack(scope, &witness.imports))
        };
        witness.control.confess(author);
        witness.control.terminate();
    });
}

/// Of code that carries no mark: finalizers, listeners of `uncaughtException`.
fn author_on_stack(scope: &mut v8::PinScope<'_, '_>, imports: &Imports) -> Option<Author> {
    let trace = v8::StackTrace::current_stack_trace(scope, DEPTH)?;
    let frames = (0..trace.get_frame_count()).filter_map(|index| {
        let frame = trace.get_frame(scope, index)?;
        Some(frame.get_script_name(scope)?.to_rust_string_lossy(scope))
    });
    let id = frames
        .collect::<Vec<_>>()
        .iter()
        .find_map(|name| imports.author_of(name))?;
    // What for is not known.
    Some(Author {
        id,
        what: String::new(),
    })
}
