//! Calls of a replaced generation that may still run: a command that asked for the
//! replacement continues, or a `withSession` callback works on the new session. While such
//! a call is open, the generation's bridge calls that name its number are allowed, and its
//! isolate is kept alive.

use std::collections::HashSet;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::timeout;

/// The number that JavaScript gave the call.
pub type StaleCallId = u64;

#[derive(Default)]
pub struct StaleCalls {
    open: watch::Sender<HashSet<StaleCallId>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    #[serde(default)]
    stale_call: Option<StaleCallId>,
}

impl StaleCalls {
    pub fn begin(&self, id: StaleCallId) {
        self.open.send_modify(|open| {
            open.insert(id);
        });
    }

    pub fn end(&self, id: StaleCallId) {
        self.open.send_modify(|open| {
            open.remove(&id);
        });
    }

    /// Returns whether a call is open.
    pub fn is_any_open(&self) -> bool {
        !self.open.borrow().is_empty()
    }

    /// Returns whether the arguments name an open call.
    pub fn allows(&self, args: &str) -> bool {
        let args: Option<Args> = serde_json::from_str(args).unwrap_or_default();
        let call = args.unwrap_or_default().stale_call;
        call.is_some_and(|call| self.open.borrow().contains(&call))
    }

    /// Returns when no call is open and none has started within `limit`.
    pub async fn wait_ended(&self, limit: Duration) {
        let mut open = self.open.subscribe();
        // The sender is owned by `self`, so waiting does not fail.
        let started = |open: &HashSet<StaleCallId>| !open.is_empty();
        while timeout(limit, open.wait_for(started)).await.is_ok() {
            let _ = open.wait_for(HashSet::is_empty).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stale_call_is_allowed_until_it_ends() {
        let calls = StaleCalls::default();
        calls.begin(7);
        assert!(calls.allows(r#"{"staleCall":7}"#));
        for args in [r#"{"staleCall":8}"#, "{}", "null", "7", ""] {
            assert!(!calls.allows(args), "{args}");
        }
        calls.end(7);
        calls.wait_ended(Duration::from_millis(1)).await;
        assert!(!calls.allows(r#"{"staleCall":7}"#));
    }
}
