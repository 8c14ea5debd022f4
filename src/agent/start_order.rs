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
pub(super) struct StartSlot {
    after: Option<Predecessor>,
    /// Cancelled when the call has started; `None` if no other call waits for it.
    pub started: Option<CancellationToken>,
}

#[derive(Clone)]
struct Predecessor {
    started: CancellationToken,
    /// Maximum time to wait: code that runs elsewhere may never start.
    within: Option<Duration>,
}

/// Returns one [`StartSlot`] for each call, in order. Calls only wait if a built-in tool
/// changes files after a tool whose code runs elsewhere.
pub(super) fn start_slots(calls: &[Queueing]) -> Vec<StartSlot> {
    let is_elsewhere = |call: &Queueing| matches!(call, Queueing::Remote { .. });
    let first = calls.iter().position(is_elsewhere);
    let last_at_once = calls.iter().rposition(|call| *call == Queueing::AtOnce);
    let last = calls.iter().rposition(|call| *call != Queueing::Never);
    let (Some(first), Some(last_at_once), Some(last)) = (first, last_at_once, last) else {
        return calls.iter().map(|_| StartSlot::default()).collect();
    };
    let mut predecessor: Option<Predecessor> = None;
    let slots = calls.iter().enumerate().map(|(index, call)| {
        let is_ordered = first < last_at_once && index >= first;
        if !is_ordered || *call == Queueing::Never {
            return StartSlot::default();
        }
        let after = predecessor.take();
        let started = (index < last).then(CancellationToken::new);
        predecessor = started.clone().map(|started| Predecessor {
            started,
            within: match call {
                Queueing::Remote { within } => Some(*within),
                Queueing::AtOnce | Queueing::Never => None,
            },
        });
        StartSlot { after, started }
    });
    slots.collect()
}

impl StartSlot {
    /// Waits until the call may start. Returns `false` if the run was aborted meanwhile.
    pub async fn wait(&self, tool: &str, cancel: &CancellationToken) -> bool {
        let Some(Predecessor { started, within }) = &self.after else {
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
            () = started.cancelled() => {}
            () = late => tracing::warn!(
                "{tool} goes on: the call before it has not begun for {within:?}"
            ),
        }
        true
    }
}

#[cfg(test)]
mod tests;
