//! What the thread of JavaScript tells whoever watches it, and what it asks: whose code
//! begins, and how long others have had the thread.

use std::cell::RefCell;
use std::time::Duration;

use deno_core::op2;

/// Of the isolate of one thread.
pub trait Watch {
    /// Code of the extension begins; `None` is nobody's.
    fn begins(&self, extension: Option<u32>);

    /// What was before has given the thread back.
    fn renews(&self);

    /// How long all others have had the thread.
    fn held_by_others(&self, extension: u32) -> Duration;
}

thread_local! {
    static WATCH: RefCell<Option<Box<dyn Watch>>> = const { RefCell::new(None) };
}

/// The code that runs on this thread from now on.
pub fn watch(watch: Option<Box<dyn Watch>>) {
    WATCH.set(watch);
}

/// A timer begins.
pub(crate) fn timer_begins(extension: Option<u32>) {
    WATCH.with_borrow(|watch| {
        if let Some(watch) = watch {
            watch.renews();
            watch.begins(extension);
        }
    });
}

#[op2(fast)]
pub(crate) fn op_begins(#[smi] extension: u32) {
    WATCH.with_borrow(|watch| {
        if let Some(watch) = watch {
            watch.begins(Some(extension));
        }
    });
}

/// Milliseconds, since the isolate began.
#[op2(fast)]
pub(crate) fn op_held_by_others(#[smi] extension: u32) -> f64 {
    WATCH.with_borrow(|watch| {
        let held = watch.as_ref().map(|watch| watch.held_by_others(extension));
        held.unwrap_or_default().as_secs_f64() * 1000.0
    })
}
