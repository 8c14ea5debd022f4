//! How long the code of each extension has held the thread of JavaScript, for those who ask
//! on that thread: whoever waited meanwhile did not take that time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use deno_core::op2;

#[derive(Default)]
struct Held {
    all: Duration,
    by: HashMap<u32, Duration>,
}

thread_local! {
    static HELD: RefCell<Held> = RefCell::default();
}

/// Code of the extension has run for so long.
pub fn note_held(extension: u32, time: Duration) {
    HELD.with_borrow_mut(|held| {
        held.all += time;
        *held.by.entry(extension).or_default() += time;
    });
}

/// Milliseconds, since the thread began.
#[op2(fast)]
pub(crate) fn op_held_by_others(#[smi] extension: u32) -> f64 {
    HELD.with_borrow(|held| {
        let own = held.by.get(&extension).copied().unwrap_or_default();
        held.all.saturating_sub(own).as_secs_f64() * 1000.0
    })
}
