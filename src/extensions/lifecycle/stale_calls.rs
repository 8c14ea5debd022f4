//! What a replaced generation still has to do: a command that asked for the
//! replacement goes on, a callback works on the session that took the place of its
//! own (`withSession`). While that lasts its calls are let through, if they name
//! the visit, and its isolate is not ended.

use std::collections::HashSet;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::timeout;

/// The number that JavaScript gave a visit.
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

    pub fn finish(&self, id: StaleCallId) {
        self.open.send_modify(|open| {
            open.remove(&id);
        });
    }

    /// Whether a call with these arguments is one of a visit that lasts.
    pub fn allow(&self, args: &str) -> bool {
        let args: Option<Args> = serde_json::from_str(args).unwrap_or_default();
        let call = args.unwrap_or_default().stale_call;
        call.is_some_and(|call| self.open.borrow().contains(&call))
    }

    /// Returns when there is none, and none has begun within `limit`: whoever visited
    /// has as long to finish.
    pub async fn over(&self, limit: Duration) {
        let mut open = self.open.subscribe();
        // The sender is ours, so that waiting does not fail.
        let begun = |open: &HashSet<StaleCallId>| !open.is_empty();
        while timeout(limit, open.wait_for(begun)).await.is_ok() {
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
        assert!(calls.allow(r#"{"staleCall":7}"#));
        for args in [r#"{"staleCall":8}"#, "{}", "null", "7", ""] {
            assert!(!calls.allow(args), "{args}");
        }
        calls.finish(7);
        calls.over(Duration::from_millis(1)).await;
        assert!(!calls.allow(r#"{"staleCall":7}"#));
    }
}
