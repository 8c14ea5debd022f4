//! The clock of handlers. Time in which an extension waits for the user or for the thread,
//! or in which pi is stopped, does not count.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pi_base::active_clock::sleep_slice;

use crate::registry::ExtensionId;

/// Shortest pause before the clock is read again.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Time that each extension has spent waiting for the user or for the thread.
#[derive(Default)]
pub struct HandlerClock(Mutex<HashMap<ExtensionId, ClockState>>);

#[derive(Default)]
struct ClockState {
    open: u32,
    since: Option<Instant>,
    total: Duration,
}

impl HandlerClock {
    /// Pauses the extension's clock until the guard is dropped.
    pub fn pause(&self, extension: ExtensionId) -> PauseGuard<'_> {
        let mut waits = self.0.lock();
        let wait = waits.entry(extension).or_default();
        if wait.open == 0 {
            wait.since = Some(Instant::now());
        }
        wait.open += 1;
        PauseGuard {
            clock: self,
            extension,
        }
    }

    /// Adds `time`, in which `holder` used the thread, to the wait of all other extensions.
    pub fn add_thread_wait(&self, holder: ExtensionId, time: Duration) {
        for (id, wait) in self.0.lock().iter_mut() {
            if *id != holder && wait.open == 0 {
                wait.total += time;
            }
        }
    }

    /// Returns the total wait of the extension. Time before the first call may be left out.
    pub fn total_wait(&self, extension: ExtensionId) -> Duration {
        let mut waits = self.0.lock();
        let wait = waits.entry(extension).or_default();
        wait.total + wait.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Returns when `limit` has passed, not counting the time in which `extension` waited.
    pub async fn expire(&self, extension: ExtensionId, limit: Duration) {
        let mut used = Duration::ZERO;
        let mut before = self.total_wait(extension);
        while used < limit {
            let ran = sleep_slice((limit - used).max(MIN_POLL_INTERVAL)).await;
            let waited = self.total_wait(extension);
            used += ran.saturating_sub(waited.saturating_sub(before));
            before = waited;
        }
    }
}

pub struct PauseGuard<'a> {
    clock: &'a HandlerClock,
    extension: ExtensionId,
}

impl Drop for PauseGuard<'_> {
    fn drop(&mut self) {
        let mut waits = self.clock.0.lock();
        if let Some(wait) = waits.get_mut(&self.extension) {
            wait.open -= 1;
            if wait.open == 0
                && let Some(since) = wait.since.take()
            {
                wait.total += since.elapsed();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn wait_for_user_does_not_count() {
        let clock = HandlerClock::default();
        let limit = Duration::from_millis(40);
        let guard = clock.pause(7);
        let expired = tokio::time::timeout(limit * 4, clock.expire(7, limit)).await;
        assert!(expired.is_err());
        drop(guard);
        clock.expire(7, limit).await;
    }

    #[tokio::test]
    async fn wait_for_thread_does_not_count() {
        let clock = HandlerClock::default();
        let limit = Duration::from_millis(40);
        let started = Instant::now();
        let hold = async {
            // The clock of the call runs by then.
            tokio::task::yield_now().await;
            clock.add_thread_wait(7, limit);
            assert_eq!(
                clock.total_wait(7),
                Duration::ZERO,
                "its own time is no wait"
            );
            clock.add_thread_wait(8, limit);
            assert_eq!(clock.total_wait(7), limit);
        };
        tokio::join!(clock.expire(7, limit), hold);
        assert!(started.elapsed() >= limit * 2, "{:?}", started.elapsed());
    }
}
