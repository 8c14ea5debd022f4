//! What a generation of extensions tells its manager: news for the user, that its
//! isolate was stopped, and what its extensions cost.

use std::sync::Arc;

use js_runtime::Stop;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::{Notify, mpsc};

use super::ledger::Ledger;
use super::registry::ExtensionId;
use crate::agent::event::Event;

/// What generations tell their manager.
#[derive(Clone)]
pub struct Reports {
    /// For the user. Those for which there is no room are dropped.
    pub news: mpsc::Sender<Event>,
    pub stops: Arc<Stops>,
    pub ledger: Arc<Ledger>,
}

/// None is ever dropped: there is at most one of each generation.
#[derive(Default)]
pub struct Stops {
    waiting: Mutex<Vec<Stopped>>,
    news: Notify,
}

impl Stops {
    pub fn push(&self, stopped: Stopped) {
        self.waiting.lock().push(stopped);
        self.news.notify_one();
    }

    /// Waits until there are some.
    pub async fn take(&self) -> Vec<Stopped> {
        self.news.notified().await;
        std::mem::take(&mut self.waiting.lock())
    }
}

/// The isolate is gone; `culprit` ran last in it.
pub struct Stopped {
    pub generation: u32,
    pub culprit: Culprit,
    pub reason: Stop,
}

/// Whose code it was.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Culprit {
    pub extension: ExtensionId,
    /// The event, tool or command that it was called for.
    pub what: String,
}
