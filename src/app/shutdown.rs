//! The request of an extension to end the program.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

#[derive(Default)]
pub(super) struct ShutdownRequest {
    is_requested: watch::Sender<bool>,
    /// The mode ends the program on a request. Other modes first answer their prompts.
    has_listener: AtomicBool,
}

impl ShutdownRequest {
    pub fn send(&self) {
        self.is_requested.send_replace(true);
    }

    /// From now on a request keeps runs from beginning. Returns a receiver of the request.
    pub fn listen(&self) -> watch::Receiver<bool> {
        self.has_listener.store(true, Ordering::Relaxed);
        self.is_requested.subscribe()
    }

    /// Whether the program is about to end.
    pub fn is_active(&self) -> bool {
        self.has_listener.load(Ordering::Relaxed) && *self.is_requested.borrow()
    }
}
