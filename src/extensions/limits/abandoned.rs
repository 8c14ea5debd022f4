//! Handlers that the agent went on without, because their time was up or the user did not
//! want to wait. One whose answer counts is called again all the same: it may be a gate, or
//! take out what must not be said. But as long as it has not settled it is waited for less
//! and less.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::extensions::lifecycle::generation::Generation;
use crate::extensions::registry::{ExtensionId, FunctionId};

/// By this its time is divided each time, so many times at most: of 30 seconds half a
/// second is left.
const FRACTION: u32 = 4;
const LEAST: u32 = 3;

/// The handlers that were left behind when their time was up, and have not settled.
#[derive(Default)]
pub struct Behind(Mutex<HashMap<FunctionId, Late>>);

#[derive(Default)]
struct Late {
    times: u32,
    /// Waits until the last call has settled.
    watch: Option<AbortHandle>,
}

impl Drop for Late {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.abort();
        }
    }
}

impl Behind {
    /// How long the handler may take that otherwise might take `usual`.
    pub fn limit(&self, handler: FunctionId, usual: Duration) -> Duration {
        let late = self.0.lock();
        let times = late.get(&handler).map_or(0, |late| late.times);
        usual / FRACTION.pow(times.min(LEAST))
    }

    /// It has settled.
    pub fn settled(&self, handler: FunctionId) {
        self.0.lock().remove(&handler);
    }

    fn missed(&self, handler: FunctionId) {
        self.0.lock().entry(handler).or_default().times += 1;
    }

    fn watched(&self, handler: FunctionId, watch: AbortHandle) {
        match self.0.lock().get_mut(&handler) {
            Some(late) => {
                if let Some(before) = late.watch.replace(watch) {
                    before.abort();
                }
            }
            // It has settled already.
            None => watch.abort(),
        }
    }
}

/// Of which it is asked when it has settled.
#[derive(Clone, Copy)]
pub enum Work {
    /// A handler in the queue.
    Queued(FunctionId),
    /// A call of a handler whose answer counts.
    Asked(FunctionId, u64),
}

/// What the user is told of it.
pub fn sentence(limit: Duration) -> String {
    format!(
        "The handler did not settle within {} s (settings: extensionTimeouts) and was left \
         behind; it is not called again before it has settled",
        limit.as_secs_f64()
    )
}

impl Generation {
    /// A handler whose answer counts has used up its time, which the user is told of.
    pub fn leave_behind(&self, handler: FunctionId, call: u64) {
        self.behind.missed(handler);
        let settled = self.when_settled(Work::Asked(handler, call));
        let behind = self.behind.clone();
        let watch = tokio::spawn(async move {
            settled.await;
            behind.settled(handler);
        });
        self.behind.watched(handler, watch.abort_handle());
    }

    /// An abort went past a handler. If it does not settle within its time from now on, the
    /// user is told.
    pub fn passed(&self, extension: ExtensionId, work: Work, event: &str, limit: Duration) {
        let settled = self.when_settled(work);
        let (host, behind) = (self.host.clone(), self.behind.clone());
        let event = event.to_owned();
        tokio::spawn(async move {
            tokio::pin!(settled);
            tokio::select! {
                biased;
                () = &mut settled => return,
                () = host.waits.expire(extension, limit) => {}
            }
            let Work::Asked(handler, _) = work else {
                return host.report(extension, &event, sentence(limit));
            };
            let error = format!(
                "The handler did not settle within {} s (settings: extensionTimeouts) after the \
                 wait for it was aborted",
                limit.as_secs_f64()
            );
            host.report(extension, &event, error);
            behind.missed(handler);
            settled.await;
            behind.settled(handler);
        });
    }

    /// When it is at work no more, or nobody is there who could say. Does not keep the
    /// isolate.
    fn when_settled(&self, work: Work) -> impl Future<Output = ()> + Send + use<> {
        let runtime = self.runtime.clone();
        async move {
            if let Some(runtime) = runtime {
                let settled = match work {
                    Work::Queued(handler) => {
                        runtime.call("whenAbandonedSettled", handler.to_string())
                    }
                    Work::Asked(_, call) => runtime.call("whenDispatchSettled", call.to_string()),
                };
                // Nothing comes of it but that it has come.
                let _ = settled.await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_not_settled_is_waited_for_less_and_less() {
        let behind = Behind::default();
        let usual = Duration::from_secs(64);
        let seconds = || behind.limit(7, usual).as_secs();
        let mut all = vec![seconds()];
        for _ in 0..5 {
            behind.missed(7);
            all.push(seconds());
        }
        assert_eq!(all, [64, 16, 4, 1, 1, 1]);
        assert_eq!(behind.limit(8, usual), usual);
        behind.settled(7);
        assert_eq!(seconds(), 64);
    }
}
