//! Handlers that timed out or were aborted and still run. A handler whose result counts is
//! called again all the same, because it may block tools or remove secrets. Its limit
//! shrinks with each timeout until it has settled.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::lifecycle::generation::Generation;
use crate::registry::{ExtensionId, FunctionId};

/// After each timeout the handler's limit is divided by [`LIMIT_DIVISOR`], at most
/// [`MAX_DIVISIONS`] times: 30 s become about 0.5 s.
const LIMIT_DIVISOR: u32 = 4;
const MAX_DIVISIONS: u32 = 3;

/// Handlers that timed out and have not settled.
#[derive(Default)]
pub struct AbandonedHandlers(Mutex<HashMap<FunctionId, TimeoutRecord>>);

#[derive(Default)]
struct TimeoutRecord {
    timeouts: u32,
    /// Task that waits until the last call has settled.
    watch: Option<AbortHandle>,
}

impl Drop for TimeoutRecord {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.abort();
        }
    }
}

impl AbandonedHandlers {
    /// Returns the limit of `handler`, whose normal limit is `usual`.
    pub fn limit_for(&self, handler: FunctionId, usual: Duration) -> Duration {
        let records = self.0.lock();
        let timeouts = records.get(&handler).map_or(0, |record| record.timeouts);
        usual / LIMIT_DIVISOR.pow(timeouts.min(MAX_DIVISIONS))
    }

    /// Removes a handler that has settled.
    pub fn mark_returned(&self, handler: FunctionId) {
        self.0.lock().remove(&handler);
    }

    fn record_timeout(&self, handler: FunctionId) {
        self.0.lock().entry(handler).or_default().timeouts += 1;
    }

    fn set_watch(&self, handler: FunctionId, watch: AbortHandle) {
        match self.0.lock().get_mut(&handler) {
            Some(record) => {
                if let Some(before) = record.watch.replace(watch) {
                    before.abort();
                }
            }
            // The handler has settled already.
            None => watch.abort(),
        }
    }
}

/// A call whose handler was abandoned.
#[derive(Clone, Copy)]
pub enum PendingCall {
    /// A handler of a queued event.
    Queued(FunctionId),
    /// A call of a handler whose result counts, with the number of the call.
    Dispatched(FunctionId, u64),
}

/// Returns the error message for a queued handler that timed out.
pub fn timeout_message(limit: Duration) -> String {
    format!(
        "The handler did not settle within {} s (setting `extensionTimeouts`); pi continues \
         without it, and does not call it again before it has settled",
        limit.as_secs_f64()
    )
}

impl Generation {
    /// Records that a handler whose result counts has timed out.
    pub fn abandon(&self, handler: FunctionId, call: u64) {
        self.abandoned.record_timeout(handler);
        let settled = self.when_returned(PendingCall::Dispatched(handler, call));
        let abandoned = self.abandoned.clone();
        let watch = tokio::spawn(async move {
            settled.await;
            abandoned.mark_returned(handler);
        });
        self.abandoned.set_watch(handler, watch.abort_handle());
    }

    /// Watches a handler that an abort skipped. Reports it if it does not settle within
    /// `limit`.
    pub fn watch_skipped(
        &self,
        extension: ExtensionId,
        call: PendingCall,
        event: &str,
        limit: Duration,
    ) {
        let settled = self.when_returned(call);
        let (host, abandoned) = (self.host.clone(), self.abandoned.clone());
        let event = event.to_owned();
        tokio::spawn(async move {
            tokio::pin!(settled);
            tokio::select! {
                biased;
                () = &mut settled => return,
                () = host.clock.expire(extension, limit) => {}
            }
            let PendingCall::Dispatched(handler, _) = call else {
                return host.report(extension, &event, timeout_message(limit));
            };
            let error = format!(
                "The handler did not settle within {} s (setting `extensionTimeouts`) after the \
                 wait for it was aborted",
                limit.as_secs_f64()
            );
            host.report(extension, &event, error);
            abandoned.record_timeout(handler);
            settled.await;
            abandoned.mark_returned(handler);
        });
    }

    /// Returns when the call has settled or the isolate is gone. Does not keep the isolate
    /// alive.
    fn when_returned(&self, call: PendingCall) -> impl Future<Output = ()> + Send + use<> {
        let runtime = self.runtime.clone();
        async move {
            if let Some(runtime) = runtime {
                let settled = match call {
                    PendingCall::Queued(handler) => {
                        runtime.call("whenAbandonedSettled", handler.to_string())
                    }
                    PendingCall::Dispatched(_, call) => {
                        runtime.call("whenDispatchSettled", call.to_string())
                    }
                };
                // Only the settling matters, not the result.
                let _ = settled.await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_shrinks_until_handler_settles() {
        let abandoned = AbandonedHandlers::default();
        let usual = Duration::from_secs(64);
        let seconds = || abandoned.limit_for(7, usual).as_secs();
        let mut all = vec![seconds()];
        for _ in 0..5 {
            abandoned.record_timeout(7);
            all.push(seconds());
        }
        assert_eq!(all, [64, 16, 4, 1, 1, 1]);
        assert_eq!(abandoned.limit_for(8, usual), usual);
        abandoned.mark_returned(7);
        assert_eq!(seconds(), 64);
    }
}
