//! Whose code is it that is about to be stopped? Only the running code knows, and
//! unwinding forgets: V8 asks the thread between two instructions, as it does for a
//! termination, which follows.

use std::cell::RefCell;
use std::ffi::c_void;

use deno_core::{JsRuntime, v8};

use crate::control::Control;

thread_local! {
    /// Of the isolate of this thread.
    static WITNESS: RefCell<Option<(v8::Global<v8::Context>, Control)>> = const {
        RefCell::new(None)
    };
}

/// From now on a stop of the isolate on this thread says whose code it was.
pub(crate) fn swear_in(runtime: &mut JsRuntime, control: &Control) {
    let sworn = Some((runtime.main_context(), control.clone()));
    WITNESS.with_borrow_mut(|witness| *witness = sworn);
}

/// Before the isolate goes.
pub(crate) fn dismiss() {
    WITNESS.with_borrow_mut(|witness| *witness = None);
}

/// For `request_interrupt`: runs on the thread of the isolate, in the midst of its
/// JavaScript, and may not call any.
pub(crate) unsafe extern "C" fn testify(isolate: v8::UnsafeRawIsolatePtr, _data: *mut c_void) {
    WITNESS.with_borrow(|witness| {
        let Some((context, control)) = witness else {
            return;
        };
        // SAFETY: V8 calls this with the isolate that it runs, which outlives the call.
        let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(isolate) };
        let author = {
            v8::callback_scope!(unsafe scope, &mut isolate);
            let context = v8::Local::new(scope, context);
            let scope = &mut v8::ContextScope::new(scope, context);
            js_runtime_ext::author(scope)
        };
        control.confess(author);
        control.terminate();
    });
}
