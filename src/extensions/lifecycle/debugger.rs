//! Whether an isolate stands still until a debugger comes (`--inspect-brk`). It says so
//! itself, also from a process of its own; there is one debugger's port per program.

use std::sync::atomic::{AtomicBool, Ordering};

static WAITS: AtomicBool = AtomicBool::new(false);

pub fn waits_for_debugger() -> bool {
    WAITS.load(Ordering::Relaxed)
}

/// `args` is what the isolate said.
pub(in crate::extensions) fn note(args: &str) {
    WAITS.store(args == "true", Ordering::Relaxed);
}
