//! Measures only the time in which this process runs. The system's clock goes on while the
//! process is stopped (Ctrl-Z, `SIGSTOP`, a frozen container), so deadlines would pass before
//! the other side had a chance to answer.

use std::time::Duration;

use tokio::time::Instant;

/// Length of one sleep. At most this much of the remaining time is lost when the process stops.
const SLICE: Duration = Duration::from_secs(1);

/// A sleep that lasts this much longer than requested means that the process was stopped.
pub const LATE: Duration = Duration::from_secs(1);

/// Sleeps for `limit`, at most [`SLICE`], and returns how much of that time counts: zero if the
/// process was stopped meanwhile.
pub async fn sleep_slice(limit: Duration) -> Duration {
    let slice = limit.min(SLICE);
    let begun = Instant::now();
    tokio::time::sleep(slice).await;
    let slept = begun.elapsed();
    match slept < slice + LATE {
        true => slept,
        false => Duration::ZERO,
    }
}

/// Sleeps until `limit` of active time has passed. Returns by how much the system's clock went
/// further than `limit`.
pub async fn sleep(limit: Duration) -> Duration {
    let begun = Instant::now();
    let mut left = limit;
    while !left.is_zero() {
        left = left.saturating_sub(sleep_slice(left).await);
    }
    begun.elapsed().saturating_sub(limit)
}

/// Runs `work` for at most `limit` of active time. Returns `None` if it is not done by then.
pub async fn timeout<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        _ = sleep(limit) => None,
    }
}
