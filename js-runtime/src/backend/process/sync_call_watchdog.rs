//! Limits synchronous calls of the host. JavaScript waits during such a call, and so does the
//! supervisor thread, which cannot notice a call that does not end (a file on a disk that does not
//! answer). A task of the program watches the calls and kills the process, as the watchdog stops a
//! thread on which JavaScript runs for too long.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use js_runtime_ext::{Host, Stop};
use pi_base::active_clock;
use tokio::runtime::Handle;

use super::parent::Shared;

pub(super) struct SyncCallWatchdog {
    shared: Arc<Shared>,
    host: Arc<dyn Host>,
    limit: Duration,
    /// Tokio runtime of the program.
    tasks: Option<Handle>,
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    /// Number of the latest call.
    last: u64,
    active: bool,
    /// Whether the watching task runs.
    watched: bool,
}

impl SyncCallWatchdog {
    pub fn new(
        shared: Arc<Shared>,
        host: Arc<dyn Host>,
        limit: Duration,
        tasks: Option<Handle>,
    ) -> Arc<Self> {
        Arc::new(Self {
            shared,
            host,
            limit,
            tasks,
            calls: Mutex::default(),
        })
    }

    /// Runs a call. The watching task stays for a moment, so that a series of calls does not start
    /// one for each.
    pub fn run<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let mut calls = self.calls();
        calls.last += 1;
        calls.active = true;
        if let Some(tasks) = self.tasks.as_ref().filter(|_| !calls.watched) {
            calls.watched = true;
            tasks.spawn(self.clone().watch());
        }
        drop(calls);
        let done = work();
        self.calls().active = false;
        done
    }

    async fn watch(self: Arc<Self>) {
        let (mut call, mut left) = (0, self.limit);
        loop {
            let slept = active_clock::sleep_slice(left).await;
            let mut calls = self.calls();
            if !calls.active {
                calls.watched = false;
                return;
            }
            left = match calls.last == call {
                true => left.saturating_sub(slept),
                false => self.limit,
            };
            call = calls.last;
            drop(calls);
            // If the process was killed for another reason, the blocked supervisor cannot report it
            // either.
            if left.is_zero() || self.shared.stopped().is_some() {
                return self.stop_process();
            }
        }
    }

    /// Kills the process and reports the stop. `watched` stays true: there will be no further
    /// calls.
    fn stop_process(&self) {
        self.shared.note_stop(Stop::Deadline);
        self.shared.kill();
        let stop = self.shared.stopped().unwrap_or(Stop::Deadline);
        self.shared
            .report_stop(&*self.host, stop, None, String::new());
        self.shared.close();
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        // No code panics while it holds the lock.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
