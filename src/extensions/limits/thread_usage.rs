//! Tracks which extension uses the JavaScript thread that all extensions share. Time on the
//! thread is not counted against extensions that wait for it. An extension that uses too
//! much is reported, and shown to the user while the agent waits.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use js_runtime::{Author, ThreadEvent, ThreadShare};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::slow_notice::milliseconds;
use crate::bridge::BridgeHost;
use crate::lifecycle::reports::Attribution;
use crate::registry::ExtensionId;
use pi_agent::event::{Event, ExtensionWait, WaitEnd, WaitOutcome};

/// Length of the window in which time on the thread is summed up.
const SHARE_WINDOW: Duration = Duration::from_secs(10);
/// An extension is reported when it uses more than this in one [`SHARE_WINDOW`].
const SHARE_LIMIT: Duration = Duration::from_secs(5);

/// How long a sample counts as current. Samples come every 50 ms.
const SAMPLE_LIFETIME: Duration = Duration::from_millis(300);

#[derive(Default)]
pub struct ThreadUsage {
    inner: Mutex<Inner>,
    /// Notified when a long time slice is over.
    over: Notify,
}

#[derive(Default)]
struct Inner {
    /// Number of open calls per extension.
    called: HashMap<ExtensionId, u32>,
    /// Number of slow notices that are shown per extension.
    shown: HashMap<ExtensionId, u32>,
    /// The extension whose handler blocks the event queue.
    queued: Option<ExtensionId>,
    /// The extension of the latest sample, and its time.
    latest_sample: Option<(ExtensionId, Instant)>,
    /// The time slice that runs too long, if there is one.
    slice: Option<LongSlice>,
    windows: HashMap<ExtensionId, Window>,
    reported: HashSet<ExtensionId>,
}

/// Time of one extension on the thread in one [`SHARE_WINDOW`].
struct Window {
    started: Instant,
    busy: Duration,
    /// The event, tool or command that the latest sample with a known one belongs to. Samples of
    /// native code have none.
    activity: String,
}

#[derive(Clone)]
struct LongSlice {
    attribution: Attribution,
    started: Instant,
    limit: Duration,
    /// Whether the user sees a notice about it.
    is_shown: bool,
}

/// Keeps one count of [`ThreadUsage`] until it is dropped.
pub struct CountGuard<'a> {
    usage: &'a ThreadUsage,
    extension: ExtensionId,
    counts_of: fn(&mut Inner) -> &mut HashMap<ExtensionId, u32>,
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        let mut inner = self.usage.inner.lock();
        let counts = (self.counts_of)(&mut inner);
        if let Some(count) = counts.get_mut(&self.extension) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.extension);
            }
        }
    }
}

impl ThreadUsage {
    /// Counts an open call of the extension.
    pub fn count_call(&self, extension: ExtensionId) -> CountGuard<'_> {
        self.count(extension, |inner| &mut inner.called)
    }

    /// Counts a slow notice of the extension that the user sees.
    pub fn count_notice(&self, extension: ExtensionId) -> CountGuard<'_> {
        self.count(extension, |inner| &mut inner.shown)
    }

    fn count(
        &self,
        extension: ExtensionId,
        counts_of: fn(&mut Inner) -> &mut HashMap<ExtensionId, u32>,
    ) -> CountGuard<'_> {
        *counts_of(&mut self.inner.lock())
            .entry(extension)
            .or_default() += 1;
        CountGuard {
            usage: self,
            extension,
            counts_of,
        }
    }

    /// Sets the extension whose handler blocks the event queue.
    pub fn set_queued(&self, extension: Option<ExtensionId>) {
        self.inner.lock().queued = extension;
    }

    /// Returns whether another extension's code runs now. `None` stands for the extension
    /// whose handler blocks the event queue.
    pub fn is_other_running(&self, extension: Option<ExtensionId>) -> bool {
        let inner = self.inner.lock();
        let own = extension.or(inner.queued);
        (inner.latest_sample)
            .is_some_and(|(id, at)| Some(id) != own && at.elapsed() < SAMPLE_LIFETIME)
    }

    fn is_called(&self, extension: ExtensionId) -> bool {
        self.inner.lock().called.contains_key(&extension)
    }

    /// Adds time on the thread, spent in `activity`; an empty one is not known. If the extension
    /// now exceeds its share for the first time, returns its latest known activity. An extension
    /// that the user sees already is not reported.
    fn take_excess(
        &self,
        extension: ExtensionId,
        activity: &str,
        time: Duration,
    ) -> Option<String> {
        let inner = &mut *self.inner.lock();
        let is_shown = inner.shown.contains_key(&extension) || inner.shows(extension);
        let window = inner.windows.entry(extension).or_insert_with(|| Window {
            started: Instant::now(),
            busy: Duration::ZERO,
            activity: String::new(),
        });
        if window.started.elapsed() > SHARE_WINDOW {
            window.started = Instant::now();
            window.busy = Duration::ZERO;
        }
        window.busy += time;
        if !activity.is_empty() && window.activity != activity {
            activity.clone_into(&mut window.activity);
        }
        let is_excess = !is_shown && window.busy > SHARE_LIMIT && inner.reported.insert(extension);
        is_excess.then(|| window.activity.clone())
    }

    /// Returns when the user sees no time slice of the extension.
    pub async fn wait_unseen(&self, extension: ExtensionId) {
        loop {
            let over = self.over.notified();
            if !self.inner.lock().shows(extension) {
                return;
            }
            over.await;
        }
    }

    /// Returns the time slice if a notice about it is due, and marks it as shown.
    fn take_due_notice(&self) -> Option<LongSlice> {
        let mut inner = self.inner.lock();
        let slice = inner.slice.as_ref()?;
        let is_notice_due = !slice.is_shown && inner.is_notice_due(slice);
        let slice = inner.slice.as_mut().filter(|_| is_notice_due)?;
        slice.is_shown = true;
        Some(slice.clone())
    }
}

impl Inner {
    /// Returns whether the user sees a time slice of the extension.
    fn shows(&self, extension: ExtensionId) -> bool {
        let seen = self.slice.as_ref().filter(|slice| slice.is_shown);
        seen.is_some_and(|slice| slice.attribution.extension == extension)
    }

    /// Returns whether to show the extension: once it has used half of its limit, or as
    /// soon as another handler is blocked behind it.
    fn is_notice_due(&self, slice: &LongSlice) -> bool {
        let LongSlice {
            attribution, limit, ..
        } = slice;
        let extension = attribution.extension;
        let is_called = self.called.contains_key(&extension);
        // A load has the same limit, and has its own notice.
        if self.shown.contains_key(&extension) || (is_called && attribution.what == "load") {
            return false;
        }
        let others_wait = self.called.keys().any(|id| *id != extension)
            || self.queued.is_some_and(|id| id != extension);
        let is_waited_for = is_called || self.queued == Some(extension);
        slice.started.elapsed() >= *limit / 2 || (others_wait && !is_waited_for)
    }
}

impl BridgeHost {
    pub(crate) fn handle_thread_event(&self, held: ThreadEvent) {
        match held {
            ThreadEvent::Usage(shares) => {
                // First the notice: an extension that is shown is not reported as well.
                self.show_time_slice();
                for ThreadShare { author, time } in shares {
                    self.add_sample(author, time);
                }
            }
            ThreadEvent::LongSlice {
                author,
                busy,
                limit,
            } => {
                let now = Instant::now();
                self.thread_usage.inner.lock().slice = Some(LongSlice {
                    attribution: self.attribute(author),
                    started: now.checked_sub(busy).unwrap_or(now),
                    limit,
                    is_shown: false,
                });
                self.show_time_slice();
            }
            ThreadEvent::SliceEnded => {
                if let Some(Attribution { extension, what }) =
                    self.end_time_slice(WaitOutcome::Settled)
                {
                    self.report_if_busy(extension, &what, Duration::ZERO);
                }
            }
        }
    }

    fn add_sample(&self, Author { id, what }: Author, time: Duration) {
        self.clock.add_thread_wait(id, time);
        self.thread_usage.inner.lock().latest_sample = Some((id, Instant::now()));
        self.add_busy(id, time);
        self.report_if_busy(id, &what, time);
    }

    /// Reports the extension if it exceeds its share after running for `time`.
    fn report_if_busy(&self, extension: ExtensionId, what: &str, time: Duration) {
        // The user started these and sees them.
        let visible = ["tool:", "shortcut:"];
        let is_expected = visible.iter().any(|prefix| what.starts_with(prefix))
            || ["load", "command"].contains(&what);
        if is_expected && self.thread_usage.is_called(extension) {
            return;
        }
        let Some(activity) = self.thread_usage.take_excess(extension, what, time) else {
            return;
        };
        let since = match activity.as_str() {
            "" => String::new(),
            activity => format!(", in work that began in {activity}"),
        };
        let (share, window) = (SHARE_LIMIT.as_secs(), SHARE_WINDOW.as_secs());
        let text = format!(
            "The extension has occupied the thread that all extensions share for more than {share} \
             of {window} s{since}. Meanwhile other extensions cannot run, and the agent waits for \
             their handlers. Split the work into small steps, or use a worker \
             (node:worker_threads). pi reports this once"
        );
        self.report(extension, "busy", text);
    }

    fn show_time_slice(&self) {
        if let Some(slice) = self.thread_usage.take_due_notice() {
            self.emit(Event::ExtensionWaitStart(self.wait_event(&slice)));
        }
    }

    /// Ends the current time slice and returns its attribution.
    pub(crate) fn end_time_slice(&self, outcome: WaitOutcome) -> Option<Attribution> {
        let slice = self.thread_usage.inner.lock().slice.take()?;
        if slice.is_shown {
            let wait = self.wait_event(&slice);
            self.emit(Event::ExtensionWaitEnd(WaitEnd { wait, outcome }));
        }
        self.thread_usage.over.notify_waiters();
        Some(slice.attribution)
    }

    fn wait_event(&self, slice: &LongSlice) -> ExtensionWait {
        ExtensionWait {
            extension_path: self.registry.lock().path(slice.attribution.extension),
            event: slice.attribution.what.clone(),
            elapsed_ms: milliseconds(slice.started.elapsed()),
            limit_ms: milliseconds(slice.limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_share_is_reported_once() {
        let usage = ThreadUsage::default();
        let more = Duration::from_millis(20);
        assert_eq!(usage.take_excess(1, "turn_end", SHARE_LIMIT), None);
        assert_eq!(usage.take_excess(2, "input", SHARE_LIMIT / 2), None);
        // The activity of native code is not known.
        let reported = usage.take_excess(1, "", more);
        assert_eq!(reported.as_deref(), Some("turn_end"));
        assert_eq!(usage.take_excess(1, "turn_end", more), None);
    }

    /// A notice is due when half of the limit is used, or another handler is blocked.
    #[test]
    fn notice_is_due_when_others_wait_or_at_half_limit() {
        let (usage, limit) = (ThreadUsage::default(), Duration::from_secs(10));
        let is_notice_due = |part| {
            let (extension, what) = (1, "turn_end".to_owned());
            let slice = LongSlice {
                attribution: Attribution { extension, what },
                started: Instant::now().checked_sub(limit / part).unwrap(),
                limit,
                is_shown: false,
            };
            usage.inner.lock().slice = Some(slice);
            usage.take_due_notice().is_some()
        };
        assert!(is_notice_due(2) && !is_notice_due(3));
        let own = usage.count_call(1);
        assert!(!is_notice_due(3));
        let other = usage.count_call(2);
        assert!(!is_notice_due(3), "others wait for it too");
        drop(own);
        assert!(
            is_notice_due(3) && usage.take_due_notice().is_none(),
            "already shown"
        );
        drop(other);
        assert!(!is_notice_due(3));
        let later = usage.count_call(2);
        assert!(
            usage.take_due_notice().is_some(),
            "the slice started before"
        );
        drop(later);
        usage.set_queued(Some(2));
        assert!(is_notice_due(3));
        usage.set_queued(Some(1));
        assert!(!is_notice_due(3) && is_notice_due(2));
        let _shown = usage.count_notice(1);
        assert!(!is_notice_due(2));
    }
}
