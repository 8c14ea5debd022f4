//! Calls of the host for which JavaScript stands still, and with it the thread that serves
//! its process. One that does not end (a file on a disk that does not answer) is found out
//! by a task of the program, because that thread cannot: the process is given up, as a
//! thread is on which JavaScript runs for too long.

use pi_base::active_clock;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use js_runtime_ext::{Host, Stop};
use tokio::runtime::Handle;

use super::parent::Shared;

pub(super) struct Standing {
    shared: Arc<Shared>,
    host: Arc<dyn Host>,
    limit: Duration,
    /// Of the program.
    tasks: Option<Handle>,
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    /// The number of the last one.
    last: u64,
    stands: bool,
    /// There is a task that looks.
    watched: bool,
}

impl Standing {
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

    /// Runs a call. The task that looks stays for a moment, so that calls in a row start
    /// none of their own.
    pub fn during<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let mut calls = self.calls();
        calls.last += 1;
        calls.stands = true;
        if let Some(tasks) = self.tasks.as_ref().filter(|_| !calls.watched) {
            calls.watched = true;
            tasks.spawn(self.clone().watch());
        }
        drop(calls);
        let done = work();
        self.calls().stands = false;
        done
    }

    async fn watch(self: Arc<Self>) {
        let (mut call, mut left) = (0, self.limit);
        loop {
            let nap = active_clock::sleep_slice(left).await;
            let mut calls = self.calls();
            if !calls.stands {
                calls.watched = false;
                return;
            }
            left = match calls.last == call {
                true => left.saturating_sub(nap),
                false => self.limit,
            };
            call = calls.last;
            drop(calls);
            // Also if somebody else has given it up: who serves it cannot tell of that.
            if left.is_zero() || self.shared.stopped().is_some() {
                return self.give_up();
            }
        }
    }

    /// It stays watched: nothing more comes.
    fn give_up(&self) {
        self.shared.note_stop(Stop::Deadline);
        self.shared.kill();
        let stop = self.shared.stopped().unwrap_or(Stop::Deadline);
        self.shared.tell(&*self.host, stop, None, String::new());
        self.shared.close();
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        // Nothing panics while it holds the lock.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
