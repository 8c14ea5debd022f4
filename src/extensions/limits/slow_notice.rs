//! Emits a notice when a handler has used half of its limit, and another when the wait is
//! over.

use std::time::{Duration, Instant};

use super::thread_usage::CountGuard;
use crate::bridge::BridgeHost;
use crate::registry::ExtensionId;
use pi_agent::event::{Event, ExtensionWait, WaitEnd, WaitOutcome};

/// One wait for an extension. Dropping it before [`Self::finish`] means that the wait was
/// cancelled.
pub struct SlowNotice<'a> {
    host: &'a BridgeHost,
    extension: ExtensionId,
    event: String,
    limit: Duration,
    /// Time after which the notice is shown; by default half of the limit.
    delay: Duration,
    started: Instant,
    shown: Option<CountGuard<'a>>,
    outcome: WaitOutcome,
}

impl BridgeHost {
    /// Starts a wait for `extension`, which was called for `event` and may take `limit`.
    pub fn slow_notice(
        &self,
        extension: ExtensionId,
        event: impl Into<String>,
        limit: Duration,
    ) -> SlowNotice<'_> {
        SlowNotice {
            host: self,
            extension,
            event: event.into(),
            limit,
            delay: limit / 2,
            started: Instant::now(),
            shown: None,
            outcome: WaitOutcome::Cancelled,
        }
    }
}

impl SlowNotice<'_> {
    /// Shows the notice after `delay` if that is less than half of the limit.
    pub fn shown_after(mut self, delay: Duration) -> Self {
        self.delay = self.delay.min(delay);
        self
    }

    /// Returns the result of `work` and shows the notice after the delay.
    /// Time in which the extension waits for the user or the thread does not count.
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        tokio::select! {
            biased;
            result = &mut work => return result,
            () = self.host.clock.expire(self.extension, self.delay) => {}
        }
        // The user may see already that its code holds the thread.
        tokio::select! {
            biased;
            result = &mut work => return result,
            () = self.host.thread_usage.wait_unseen(self.extension) => {}
        }
        self.emit_start(Duration::ZERO);
        work.await
    }

    /// Shows the notice. `before` is how long the call has run already.
    pub fn emit_start(&mut self, before: Duration) {
        self.started = self.started.checked_sub(before).unwrap_or(self.started);
        self.shown = Some(self.host.thread_usage.count_notice(self.extension));
        self.host.emit(Event::ExtensionWaitStart(self.wait_event()));
    }

    pub fn finish(mut self, outcome: WaitOutcome) {
        self.outcome = outcome;
    }

    fn wait_event(&self) -> ExtensionWait {
        ExtensionWait {
            extension_path: self.host.registry.lock().path(self.extension),
            event: self.event.clone(),
            elapsed_ms: milliseconds(self.started.elapsed()),
            limit_ms: milliseconds(self.limit),
        }
    }
}

impl Drop for SlowNotice<'_> {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let (wait, outcome) = (self.wait_event(), self.outcome);
            self.host
                .emit(Event::ExtensionWaitEnd(WaitEnd { wait, outcome }));
        }
    }
}

pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
