//! Where a script is that does not give its thread back. Whoever wants to know sends the
//! process a signal, and finds the frames in a file.

use std::cell::RefCell;
use std::ffi::c_void;
use std::path::PathBuf;

use deno_core::{JsRuntime, v8};
use js_runtime_ext::Places;
use tokio::signal::unix::{SignalKind, signal};

use crate::witness::frames_of;

struct Guide {
    context: v8::Global<v8::Context>,
    places: Places,
    file: PathBuf,
}

thread_local! {
    /// Of the isolate of this thread.
    static GUIDE: RefCell<Option<Guide>> = const { RefCell::new(None) };
}

/// From now on SIGQUIT has the frames of what runs written to `file`.
pub(crate) fn tell_when_asked(runtime: &mut JsRuntime, file: PathBuf) {
    let guide = Guide {
        context: runtime.main_context(),
        places: Places::new(runtime.source_mapper()),
        file,
    };
    GUIDE.with_borrow_mut(|place| *place = Some(guide));
    let isolate = runtime.v8_isolate().thread_safe_handle();
    let thread = std::thread::Builder::new().name("js-whereabouts".into());
    // Without the thread nothing is told. It ends with the process.
    _ = thread.spawn(move || {
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build();
        let Ok(tokio) = tokio else { return };
        tokio.block_on(async move {
            let Ok(mut asked) = signal(SignalKind::quit()) else {
                return;
            };
            while asked.recv().await.is_some() {
                isolate.request_interrupt(tell, std::ptr::null_mut());
            }
        });
    });
}

/// Before the isolate goes.
pub(crate) fn forget() {
    GUIDE.with_borrow_mut(|guide| *guide = None);
}

/// For `request_interrupt`: runs in the midst of JavaScript, and may not call any.
unsafe extern "C" fn tell(isolate: v8::UnsafeRawIsolatePtr, _data: *mut c_void) {
    GUIDE.with_borrow(|guide| {
        let Some(guide) = guide else { return };
        // SAFETY: V8 calls this with the isolate that it runs, which outlives the call.
        let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(isolate) };
        let frames = frames_of(&mut isolate, &guide.context, &guide.places);
        // Whoever asked goes on without it.
        _ = std::fs::write(&guide.file, frames);
    });
}
