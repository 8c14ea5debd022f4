//! Naming whom the agent waits for: when a handler has used up half of its time, the
//! user is told, and told again when the wait is over.

use std::time::{Duration, Instant};

use super::thread_usage::Counted;
use crate::agent::event::{Event, ExtensionWait, WaitEnd};
use crate::extensions::bridge::BridgeHost;
use crate::extensions::registry::ExtensionId;

pub use crate::agent::event::WaitOutcome as Outcome;

/// One wait. Dropped before it is over, it was cancelled.
pub struct Patience<'a> {
    host: &'a BridgeHost,
    extension: ExtensionId,
    event: String,
    limit: Duration,
    begun: Instant,
    shown: Option<Counted<'a>>,
    outcome: Outcome,
}

impl BridgeHost {
    /// Waits for `extension`, which was called for `event` and may take `limit`.
    pub fn patience(
        &self,
        extension: ExtensionId,
        event: impl Into<String>,
        limit: Duration,
    ) -> Patience<'_> {
        Patience {
            host: self,
            extension,
            event: event.into(),
            limit,
            begun: Instant::now(),
            shown: None,
            outcome: Outcome::Cancelled,
        }
    }
}

impl Patience<'_> {
    /// The answer of `work`. Time in which the extension waits for the user, or for the
    /// thread, does not count.
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        tokio::select! {
            biased;
            answer = &mut work => return answer,
            () = self.host.waits.expire(self.extension, self.limit / 2) => {}
        }
        // Its code may be shown already, for holding the thread.
        tokio::select! {
            biased;
            answer = &mut work => return answer,
            () = self.host.holds.unseen(self.extension) => {}
        }
        self.show(Duration::ZERO);
        work.await
    }

    /// Tells the user. `before` is how long it had been going on already.
    pub fn show(&mut self, before: Duration) {
        self.begun = self.begun.checked_sub(before).unwrap_or(self.begun);
        self.shown = Some(self.host.holds.show(self.extension));
        self.host.tell(Event::ExtensionWaitStart(self.wait()));
    }

    pub fn over(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    fn wait(&self) -> ExtensionWait {
        ExtensionWait {
            extension_path: self.host.registry.lock().path(self.extension),
            event: self.event.clone(),
            elapsed_ms: milliseconds(self.begun.elapsed()),
            limit_ms: milliseconds(self.limit),
        }
    }
}

impl Drop for Patience<'_> {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let (wait, outcome) = (self.wait(), self.outcome);
            self.host
                .tell(Event::ExtensionWaitEnd(WaitEnd { wait, outcome }));
        }
    }
}

pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
