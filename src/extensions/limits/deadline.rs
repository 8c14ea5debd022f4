//! How long an extension may take. Time in which it waits for the user, or for the thread
//! that another extension holds, does not count, nor does that in which pi is stopped.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pi_base::active_clock::sleep_slice;

use crate::extensions::registry::ExtensionId;

/// The shortest pause before the clock is looked at again.
const PAUSE: Duration = Duration::from_millis(10);

/// Which extensions wait for the user, and for how long they have, or for the thread.
#[derive(Default)]
pub struct Waits(Mutex<HashMap<ExtensionId, Wait>>);

#[derive(Default)]
struct Wait {
    open: u32,
    since: Option<Instant>,
    total: Duration,
}

impl Waits {
    /// The extension waits until the guard is dropped.
    pub fn begin(&self, extension: ExtensionId) -> WaitGuard<'_> {
        let mut waits = self.0.lock();
        let wait = waits.entry(extension).or_default();
        if wait.open == 0 {
            wait.since = Some(Instant::now());
        }
        wait.open += 1;
        WaitGuard {
            waits: self,
            extension,
        }
    }

    /// `holder` has had the thread of JavaScript, and nobody else has.
    pub fn hold(&self, holder: ExtensionId, time: Duration) {
        for (id, wait) in self.0.lock().iter_mut() {
            if *id != holder && wait.open == 0 {
                wait.total += time;
            }
        }
    }

    /// All the time it has waited; what was before this was asked first may be left out.
    pub fn total(&self, extension: ExtensionId) -> Duration {
        let mut waits = self.0.lock();
        let wait = waits.entry(extension).or_default();
        wait.total + wait.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Ends when `limit` has gone by without the time in which `extension` waited.
    pub async fn expire(&self, extension: ExtensionId, limit: Duration) {
        let mut used = Duration::ZERO;
        let mut before = self.total(extension);
        while used < limit {
            let ran = sleep_slice((limit - used).max(PAUSE)).await;
            let waited = self.total(extension);
            used += ran.saturating_sub(waited.saturating_sub(before));
            before = waited;
        }
    }
}

pub struct WaitGuard<'a> {
    waits: &'a Waits,
    extension: ExtensionId,
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let mut waits = self.waits.0.lock();
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
    async fn waiting_for_the_user_does_not_count() {
        let waits = Waits::default();
        let limit = Duration::from_millis(40);
        let guard = waits.begin(7);
        let expired = tokio::time::timeout(limit * 4, waits.expire(7, limit)).await;
        assert!(expired.is_err());
        drop(guard);
        waits.expire(7, limit).await;
    }

    #[tokio::test]
    async fn waiting_for_the_thread_does_not_count() {
        let waits = Waits::default();
        let limit = Duration::from_millis(40);
        let begun = Instant::now();
        let hold = async {
            // The clock of the call runs by then.
            tokio::task::yield_now().await;
            waits.hold(7, limit);
            assert_eq!(waits.total(7), Duration::ZERO, "its own time is no wait");
            waits.hold(8, limit);
            assert_eq!(waits.total(7), limit);
        };
        tokio::join!(waits.expire(7, limit), hold);
        assert!(begun.elapsed() >= limit * 2, "{:?}", begun.elapsed());
    }
}
