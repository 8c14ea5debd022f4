//! The histogram of `monitorEventLoopDelay()` of `node:perf_hooks`. The published crate of this name
//! keeps five digits of each delay, which takes megabytes from the first one on, and counts how long
//! a task waits for its turn. Node keeps three digits and counts the time between two ticks of a
//! timer, and so does this crate.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::errors::CreationError;
use hdrhistogram::{Counter, Histogram};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// The histogram cannot be created. deno_node needs a type of its own for this error.
#[derive(Debug)]
pub struct Error(CreationError);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

impl From<CreationError> for Error {
    fn from(error: CreationError) -> Self {
        Self(error)
    }
}

pub type Result<T> = std::result::Result<T, Error>;

/// Node's `figures`.
const DIGITS: u8 = 3;

/// Delays in nanoseconds. It grows with the longest one.
pub struct EldHistogram<C: Counter> {
    delays: Arc<Mutex<Histogram<C>>>,
    beat: Duration,
    task: Cell<Option<AbortHandle>>,
}

impl<C: Counter + Send + 'static> EldHistogram<C> {
    /// `resolution` is in milliseconds.
    pub fn new(resolution: usize) -> Result<Self> {
        Ok(Self {
            delays: Arc::new(Mutex::new(Histogram::new(DIGITS)?)),
            // A timer of Node waits for at least one.
            beat: Duration::from_millis(resolution.max(1) as u64),
            task: Cell::default(),
        })
    }

    pub fn start(&self) {
        let (delays, beat) = (Arc::clone(&self.delays), self.beat);
        let task = tokio::spawn(async move {
            let mut before: Option<Instant> = None;
            loop {
                tokio::time::sleep(beat).await;
                let now = Instant::now();
                if let Some(before) = before {
                    let delay = now.duration_since(before).as_nanos();
                    // A delay above 64 bits cannot occur.
                    _ = lock(&delays).record(delay as u64);
                }
                before = Some(now);
            }
        });
        if let Some(former) = self.task.replace(Some(task.abort_handle())) {
            former.abort();
        }
    }

    pub fn stop(&self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }

    pub fn reset(&self) {
        lock(&self.delays).reset();
    }

    pub fn len(&self) -> u64 {
        lock(&self.delays).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn min(&self) -> u64 {
        lock(&self.delays).min()
    }

    pub fn max(&self) -> u64 {
        lock(&self.delays).max()
    }

    pub fn mean(&self) -> f64 {
        lock(&self.delays).mean()
    }

    pub fn stdev(&self) -> f64 {
        lock(&self.delays).stdev()
    }

    pub fn value_at_percentile(&self, percentile: f64) -> u64 {
        lock(&self.delays).value_at_percentile(percentile)
    }
}

impl<C: Counter> Drop for EldHistogram<C> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

fn lock<C: Counter>(delays: &Mutex<Histogram<C>>) -> MutexGuard<'_, Histogram<C>> {
    // Nothing panics while it holds the lock.
    delays.lock().unwrap_or_else(PoisonError::into_inner)
}
