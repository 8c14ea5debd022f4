//! The order in which the calls of one answer begin that may change files. They run beside
//! each other, but what changes a file takes its place in that file's queue when it begins,
//! and a model means its calls in the order in which it made them. A built-in tool is in the
//! queue at once, one that code elsewhere runs only after its way there: whoever comes later
//! waits until that has been called. Not until it is done, and calls that queue for nothing
//! wait for nobody.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::tools::tool::Queueing;

/// When one call begins, and who is told of it.
#[derive(Default)]
pub(super) struct Beginning {
    after: Option<Earlier>,
    /// Cancelled when it has begun; `None` if nobody waits for that.
    pub begun: Option<CancellationToken>,
}

#[derive(Clone)]
struct Earlier {
    begun: CancellationToken,
    /// What runs elsewhere may never get there.
    within: Option<Duration>,
}

/// One for each call, in their order. Only where a built-in tool changes files after a tool
/// from elsewhere is there anything to wait for.
pub(super) fn in_order(calls: &[Queueing]) -> Vec<Beginning> {
    let is_elsewhere = |call: &Queueing| matches!(call, Queueing::Elsewhere { .. });
    let first = calls.iter().position(is_elsewhere);
    let last_at_once = calls.iter().rposition(|call| *call == Queueing::AtOnce);
    let last = calls.iter().rposition(|call| *call != Queueing::Never);
    let (Some(first), Some(last_at_once), Some(last)) = (first, last_at_once, last) else {
        return calls.iter().map(|_| Beginning::default()).collect();
    };
    let mut earlier: Option<Earlier> = None;
    let beginnings = calls.iter().enumerate().map(|(index, call)| {
        let is_ordered = first < last_at_once && index >= first;
        if !is_ordered || *call == Queueing::Never {
            return Beginning::default();
        }
        let after = earlier.take();
        let begun = (index < last).then(CancellationToken::new);
        earlier = begun.clone().map(|begun| Earlier {
            begun,
            within: match call {
                Queueing::Elsewhere { within } => Some(*within),
                Queueing::AtOnce | Queueing::Never => None,
            },
        });
        Beginning { after, begun }
    });
    beginnings.collect()
}

impl Beginning {
    /// Waits for its turn. `false` if the run was aborted meanwhile.
    pub async fn turn(&self, tool: &str, cancel: &CancellationToken) -> bool {
        let Some(Earlier { begun, within }) = &self.after else {
            return true;
        };
        let late = async {
            match within {
                Some(within) => tokio::time::sleep(*within).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => return false,
            () = begun.cancelled() => {}
            () = late => tracing::warn!(
                "{tool} goes on: the call before it has not begun for {within:?}"
            ),
        }
        true
    }
}

#[cfg(test)]
mod tests;
