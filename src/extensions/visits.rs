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
pub type VisitId = u64;

#[derive(Default)]
pub struct Visits {
    open: watch::Sender<HashSet<VisitId>>,
}

#[derive(Default, Deserialize)]
struct Args {
    #[serde(default)]
    visit: Option<VisitId>,
}

impl Visits {
    pub fn begin(&self, id: VisitId) {
        self.open.send_modify(|open| {
            open.insert(id);
        });
    }

    pub fn finish(&self, id: VisitId) {
        self.open.send_modify(|open| {
            open.remove(&id);
        });
    }

    /// Whether a call with these arguments is one of a visit that lasts.
    pub fn allow(&self, args: &str) -> bool {
        let args: Option<Args> = serde_json::from_str(args).unwrap_or_default();
        let visit = args.unwrap_or_default().visit;
        visit.is_some_and(|visit| self.open.borrow().contains(&visit))
    }

    /// Returns when there is none, and none has begun within `limit`: whoever visited
    /// has as long to finish.
    pub async fn over(&self, limit: Duration) {
        let mut open = self.open.subscribe();
        // The sender is ours, so that waiting does not fail.
        let begun = |open: &HashSet<VisitId>| !open.is_empty();
        while timeout(limit, open.wait_for(begun)).await.is_ok() {
            let _ = open.wait_for(HashSet::is_empty).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_visit_is_let_through_until_it_ends() {
        let visits = Visits::default();
        visits.begin(7);
        assert!(visits.allow(r#"{"visit":7}"#));
        for args in [r#"{"visit":8}"#, "{}", "null", "7", ""] {
            assert!(!visits.allow(args), "{args}");
        }
        visits.finish(7);
        visits.over(Duration::from_millis(1)).await;
        assert!(!visits.allow(r#"{"visit":7}"#));
    }
}
