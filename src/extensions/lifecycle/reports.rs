//! What a generation of extensions tells its manager: news for the user, that its
//! isolate was stopped, and what its extensions cost.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use js_runtime::Stop;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::timeout;

use super::generation::stop_text;
use crate::agent::event::{Event, ExtensionError};
use crate::extensions::diagnostics::error_context::location;
use crate::extensions::limits::counters::Ledger;
use crate::extensions::registry::ExtensionId;

/// What generations tell their manager.
#[derive(Clone)]
pub struct Reports {
    /// For the user. Those for which there is no room are dropped.
    pub news: mpsc::Sender<Event>,
    pub delivery: Arc<Delivery>,
    pub stops: Arc<Stops>,
    pub ledger: Arc<Ledger>,
}

/// How long an event waits for the reports of its handlers to be shown.
const DELIVERY_DEADLINE: Duration = Duration::from_secs(1);

/// Counts reports on their way to the user, so that those of an event's handlers come
/// before the event itself.
#[derive(Default)]
pub struct Delivery {
    sent: AtomicU64,
    shown: watch::Sender<u64>,
}

impl Delivery {
    /// A report has been put into the channel.
    pub fn mark_sent(&self) {
        self.sent.fetch_add(1, Ordering::AcqRel);
    }

    /// A report has been taken from the channel and shown.
    pub fn mark_shown(&self) {
        self.shown.send_modify(|shown| *shown += 1);
    }

    /// Returns when all reports that were sent by now are shown, or after
    /// [`DELIVERY_DEADLINE`].
    pub async fn wait_shown(&self) {
        let sent = self.sent.load(Ordering::Acquire);
        let mut shown = self.shown.subscribe();
        let all_shown = shown.wait_for(|shown| *shown >= sent);
        if timeout(DELIVERY_DEADLINE, all_shown).await.is_err() {
            tracing::warn!("an event goes before the reports of its handlers, which are late");
        }
    }
}

/// None is ever dropped: there is at most one of each generation.
#[derive(Default)]
pub struct Stops {
    waiting: Mutex<Vec<Stopped>>,
    news: Notify,
    /// Of how many the user does not know yet.
    untold: watch::Sender<usize>,
}

impl Stops {
    pub fn push(&self, stopped: Stopped) {
        self.untold.send_modify(|untold| *untold += 1);
        self.waiting.lock().push(stopped);
        self.news.notify_one();
    }

    /// The user was told of one, or needs not be.
    pub fn told(&self) {
        self.untold.send_modify(|untold| *untold -= 1);
    }

    /// Until the user was told of all.
    pub async fn all_told(&self) {
        // It is never closed: the sender is here.
        let _ = self
            .untold
            .subscribe()
            .wait_for(|untold| *untold == 0)
            .await;
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
    /// Otherwise whoever loads it tells of it.
    pub was_installed: bool,
    /// The file of the culprit.
    pub path: String,
    pub culprit: Culprit,
    pub ending: Ending,
}

/// How an isolate ended. In a sentence: "stopped at /a.ts:3:5 (it used up its memory)".
#[derive(Clone, Debug)]
pub struct Ending {
    pub reason: Stop,
    /// The frames of what ran; empty if nothing did, or if it is not known.
    pub stack: String,
}

impl Ending {
    /// What is said of it, with where it was.
    pub fn tell_of(&self, path: String, event: String, sentence: String) -> ExtensionError {
        let stack = (!self.stack.is_empty()).then(|| format!("{sentence}\n{}", self.stack));
        ExtensionError::thrown(path, event, sentence, stack)
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped ")?;
        if let Some(place) = location(&self.stack) {
            write!(f, "at {place} ")?;
        }
        write!(f, "({})", stop_text(self.reason))
    }
}

/// Whose code it was.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Culprit {
    pub extension: ExtensionId,
    /// The event, tool or command that it was called for.
    pub what: String,
}

/// So many reports of one extension about one thing are shown in [`WINDOW`].
const BURST: u32 = 10;
const WINDOW: Duration = Duration::from_secs(10);

/// Keeps an extension that fails a thousand times in a second from burying everything
/// else that the user is told.
#[derive(Default)]
pub struct Bursts(HashMap<(String, String), Burst>);

struct Burst {
    since: Instant,
    reports: u32,
}

impl Bursts {
    /// What is to be shown of it, if anything.
    pub fn pass(&mut self, mut error: ExtensionError) -> Option<ExtensionError> {
        let now = Instant::now();
        let is_over = |burst: &Burst| now.duration_since(burst.since) >= WINDOW;
        self.0.retain(|_, burst| !is_over(burst));
        let about = (error.extension_path.clone(), error.event.clone());
        let burst = self.0.entry(about).or_insert(Burst {
            since: now,
            reports: 0,
        });
        burst.reports = burst.reports.saturating_add(1);
        if burst.reports == BURST {
            error
                .error
                .push_str("\n(More reports like this are not shown for 10 s)");
        }
        (burst.reports <= BURST).then_some(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_cut_short_and_others_are_heard() {
        let mut bursts = Bursts::default();
        let mut pass = |path: &str| bursts.pass(ExtensionError::new(path, "uncaught", "no"));
        let shown: Vec<String> = (0..100)
            .filter_map(|_| pass("/a.ts"))
            .map(|error| error.error)
            .collect();
        assert_eq!(shown.len(), 10);
        assert_eq!(shown[8], "no");
        assert!(shown[9].contains("not shown for 10 s"), "{}", shown[9]);
        assert!(pass("/b.ts").is_some());
    }
}
