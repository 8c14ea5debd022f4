//! Whether an isolate waits for a debugger (`--inspect-brk`). The isolate reports that,
//! also from its own process; pi has a single debugger port.

use std::sync::atomic::{AtomicBool, Ordering};

static WAITING: AtomicBool = AtomicBool::new(false);

pub fn waits_for_debugger() -> bool {
    WAITING.load(Ordering::Relaxed)
}

/// Stores the state that the isolate reported in `args`.
pub(crate) fn set_waiting(args: &str) {
    WAITING.store(args == "true", Ordering::Relaxed);
}
