//! The start order of tool calls of one answer that may change files. The calls run
//! concurrently, but each takes its place in the queue of its file when it starts, and a model
//! means its calls in the order in which it made them. A built-in tool enters the queue at
//! once; a tool whose code runs elsewhere enters it later. Later calls therefore wait until an
//! earlier call has started. They do not wait until it has finished, and calls that change no
//! files do not wait at all.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use pi_tools::tool::Queueing;

/// When one call may start, and how its start is announced.
#[derive(Default)]
pub(super) struct Beginning {
    after: Option<Earlier>,
    /// Cancelled when the call has started; `None` if no other call waits for it.
    pub begun: Option<CancellationToken>,
}

#[derive(Clone)]
struct Earlier {
    begun: CancellationToken,
    /// Maximum time to wait: code that runs elsewhere may never start.
    within: Option<Duration>,
}

/// Returns one [`Beginning`] for each call, in order. Calls only wait if a built-in tool
/// changes files after a tool whose code runs elsewhere.
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
    /// Waits until the call may start. Returns `false` if the run was aborted meanwhile.
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
