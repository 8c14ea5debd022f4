//! Time in which this process runs. The clock goes on while it is stopped (Ctrl-Z,
//! `SIGSTOP`, a frozen container), and what was due meanwhile comes at once when it goes
//! on: before whoever had the time to answer could use it.

use std::time::Duration;

use tokio::time::Instant;

/// What is lost at most of the time that was left before.
const SLICE: Duration = Duration::from_secs(1);

/// Who wakes up so much later than asked for was stopped, or as good as.
pub(crate) const LATE: Duration = Duration::from_secs(1);

/// Sleeps for `most`, or a part of it, and tells how much of it counts.
pub async fn nap(most: Duration) -> Duration {
    let slice = most.min(SLICE);
    let begun = Instant::now();
    tokio::time::sleep(slice).await;
    let slept = begun.elapsed();
    match slept < slice + LATE {
        true => slept,
        false => Duration::ZERO,
    }
}

/// Tells how much longer it has taken by the clock.
pub async fn sleep(limit: Duration) -> Duration {
    let begun = Instant::now();
    let mut left = limit;
    while !left.is_zero() {
        left = left.saturating_sub(nap(left).await);
    }
    begun.elapsed().saturating_sub(limit)
}

/// `None` if `work` is not done within `limit`.
pub async fn timeout<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        _ = sleep(limit) => None,
    }
}
