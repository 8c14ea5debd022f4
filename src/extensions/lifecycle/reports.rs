//! Channel from a generation to [`super::Extensions`]: events for the user, the stop of its
//! isolate, and its counters.

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

use super::generation::stop_reason_text;
use crate::diagnostics::error_context::find_location;
use crate::limits::counters::ExtensionCounters;
use crate::registry::ExtensionId;
use pi_agent::event::{Event, ExtensionError};

/// The channels from generations to [`super::Extensions`].
#[derive(Clone)]
pub struct Reports {
    /// Events for the user. When the channel is full they are dropped.
    pub events: mpsc::Sender<Event>,
    pub delivery: Arc<ShownReports>,
    pub stops: Arc<Stops>,
    pub counters: Arc<ExtensionCounters>,
}

/// How long an event, or the end of the program, waits for the reports of handlers to be shown.
const DELIVERY_DEADLINE: Duration = Duration::from_secs(1);

/// Counts reports on their way to the user, so that those of an event's handlers come
/// before the event itself.
#[derive(Default)]
pub struct ShownReports {
    sent: AtomicU64,
    shown: watch::Sender<u64>,
}

impl ShownReports {
    /// Counts a report that was put into the channel.
    pub fn mark_sent(&self) {
        self.sent.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts a report that was taken from the channel and shown.
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
            tracing::warn!("pi does not wait longer for the reports of handlers, which are late");
        }
    }
}

/// Stops of isolates. None is dropped: there is at most one per generation.
#[derive(Default)]
pub struct Stops {
    waiting: Mutex<Vec<Stopped>>,
    added: Notify,
    /// Number of stops that the user has not been told of.
    unreported: watch::Sender<usize>,
}

impl Stops {
    pub fn push(&self, stopped: Stopped) {
        self.unreported.send_modify(|unreported| *unreported += 1);
        self.waiting.lock().push(stopped);
        self.added.notify_one();
    }

    /// Marks a stop as reported.
    pub fn mark_reported(&self) {
        self.unreported.send_modify(|unreported| *unreported -= 1);
    }

    /// Returns when all stops are reported.
    pub async fn wait_reported(&self) {
        // The sender is owned by `self`, so it is never closed.
        let _ = self
            .unreported
            .subscribe()
            .wait_for(|unreported| *unreported == 0)
            .await;
    }

    /// Waits for stops and returns them.
    pub async fn take(&self) -> Vec<Stopped> {
        self.added.notified().await;
        std::mem::take(&mut self.waiting.lock())
    }
}

/// A stopped isolate; `attribution` ran last in it.
pub struct Stopped {
    pub generation: u32,
    /// Whether the generation had been loaded. The code that loads one reports its failure itself.
    pub was_installed: bool,
    /// File of the extension that ran last.
    pub path: String,
    pub attribution: Attribution,
    pub ending: IsolateEnd,
}

/// Why an isolate stopped. Displayed as "stopped at /a.ts:3:5 (it used up its memory)".
#[derive(Clone, Debug)]
pub struct IsolateEnd {
    pub reason: Stop,
    /// Stack frames of the code that ran; empty if none ran or it is unknown.
    pub stack: String,
}

impl IsolateEnd {
    /// Returns the error to report, with the stack.
    pub fn to_error(&self, path: String, event: String, sentence: String) -> ExtensionError {
        let stack = (!self.stack.is_empty()).then(|| format!("{sentence}\n{}", self.stack));
        ExtensionError::from_thrown(path, event, sentence, stack)
    }
}

impl fmt::Display for IsolateEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped ")?;
        if let Some(place) = find_location(&self.stack) {
            write!(f, "at {place} ")?;
        }
        write!(f, "({})", stop_reason_text(self.reason))
    }
}

/// The extension whose code ran.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Attribution {
    pub extension: ExtensionId,
    /// The event, tool or command that the code was called for.
    pub what: String,
}

/// Reports about one event of one extension that are shown in [`RATE_WINDOW`].
const MAX_PER_WINDOW: u32 = 10;
const RATE_WINDOW: Duration = Duration::from_secs(10);

/// Limits repeated reports, so that an extension that fails a thousand times a second does
/// not hide everything else.
#[derive(Default)]
pub struct RateLimiter(HashMap<(String, String), Burst>);

struct Burst {
    since: Instant,
    reports: u32,
}

impl RateLimiter {
    /// Returns the report if it is to be shown.
    pub fn pass(&mut self, mut error: ExtensionError) -> Option<ExtensionError> {
        let now = Instant::now();
        let is_over = |burst: &Burst| now.duration_since(burst.since) >= RATE_WINDOW;
        self.0.retain(|_, burst| !is_over(burst));
        let about = (error.extension_path.clone(), error.event.clone());
        let burst = self.0.entry(about).or_insert(Burst {
            since: now,
            reports: 0,
        });
        burst.reports = burst.reports.saturating_add(1);
        if burst.reports == MAX_PER_WINDOW {
            error
                .error
                .push_str("\n(More reports like this are not shown for 10 s)");
        }
        (burst.reports <= MAX_PER_WINDOW).then_some(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_is_cut_short_and_others_are_shown() {
        let mut limiter = RateLimiter::default();
        let mut pass = |path: &str| limiter.pass(ExtensionError::new(path, "uncaught", "no"));
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
