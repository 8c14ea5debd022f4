//! Writes the stack of a script that blocks its thread. The reader sends SIGQUIT to the process and
//! finds the frames in a file.

use std::cell::RefCell;
use std::ffi::c_void;
use std::path::PathBuf;

use deno_core::{JsRuntime, v8};
use js_runtime_ext::SourcePositions;
use tokio::signal::unix::{SignalKind, signal};

use crate::attribution::interrupt::stack_frames;

struct DumpTarget {
    context: v8::Global<v8::Context>,
    positions: SourcePositions,
    file: PathBuf,
}

thread_local! {
    /// Target of the isolate on this thread.
    static TARGET: RefCell<Option<DumpTarget>> = const { RefCell::new(None) };
}

/// Writes the frames of the running code to `file` whenever SIGQUIT arrives.
pub(crate) fn dump_on_sigquit(runtime: &mut JsRuntime, file: PathBuf) {
    let installed = DumpTarget {
        context: runtime.main_context(),
        positions: SourcePositions::new(runtime.source_mapper()),
        file,
    };
    TARGET.with_borrow_mut(|target| *target = Some(installed));
    let isolate = runtime.v8_isolate().thread_safe_handle();
    let thread = std::thread::Builder::new().name("js-stack-dump".into());
    // Without this thread there are no dumps. It ends with the process.
    _ = thread.spawn(move || {
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build();
        let Ok(tokio) = tokio else { return };
        tokio.block_on(async move {
            let Ok(mut signals) = signal(SignalKind::quit()) else {
                return;
            };
            while signals.recv().await.is_some() {
                isolate.request_interrupt(write_dump, std::ptr::null_mut());
            }
        });
    });
}

/// Disables dumps; must be called before the isolate is dropped.
pub(crate) fn uninstall() {
    TARGET.with_borrow_mut(|target| *target = None);
}

/// Interrupt callback: writes the dump. Runs in the middle of JavaScript and must not call any.
unsafe extern "C" fn write_dump(isolate: v8::UnsafeRawIsolatePtr, _data: *mut c_void) {
    TARGET.with_borrow(|target| {
        let Some(target) = target else { return };
        // SAFETY: V8 calls this with the isolate that it runs, which outlives the call.
        let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(isolate) };
        let frames = stack_frames(&mut isolate, &target.context, &target.positions);
        // The reader continues without the file.
        _ = std::fs::write(&target.file, frames);
    });
}
