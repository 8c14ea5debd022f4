//! The way back of a command's result: to a task of this process, or over the connection of a
//! process.

use std::pin::pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::FutureExt;
use js_runtime_ext::Stop;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use crate::error::Thrown;

pub(crate) type CallResult = Result<Option<String>, Thrown>;

/// Time in which a stopped thread may still answer its calls itself. It takes longer only when
/// native code (`execSync`) blocks the thread, which nothing can interrupt.
const STOP_GRACE: Duration = Duration::from_millis(50);

/// Time for which a caller spins for the result before its task sleeps. Most handlers take a few
/// microseconds; waking a thread takes 25 and more on either side.
const REPLY_SPIN: Duration = Duration::from_micros(40);

/// Reason why there is no result: the stop of the isolate, or `None` if the isolate is gone without
/// one.
pub(crate) type Unanswered = Option<Stop>;

/// Destination of a result. Dropped without one when the isolate ends.
pub(crate) enum Reply {
    Local(oneshot::Sender<CallResult>),
    Remote(RemoteReply),
}

/// Reply to a caller in the program's process.
pub(crate) struct RemoteReply {
    /// Sends the result over the connection of the process.
    pub send: Box<dyn FnOnce(CallResult) + Send>,
    /// Completes when the caller no longer waits.
    pub abandoned: oneshot::Receiver<()>,
}

impl Reply {
    /// Sends the result. A caller that has dropped its future has abandoned the call.
    pub fn send(self, result: CallResult) {
        match self {
            Self::Local(reply) => _ = reply.send(result),
            Self::Remote(remote) => (remote.send)(result),
        }
    }

    pub fn is_closed(&mut self) -> bool {
        match self {
            Self::Local(reply) => reply.is_closed(),
            Self::Remote(remote) => {
                !matches!(remote.abandoned.try_recv(), Err(TryRecvError::Empty))
            }
        }
    }

    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Local(reply) => reply.poll_closed(cx),
            Self::Remote(remote) => remote.abandoned.poll_unpin(cx).map(drop),
        }
    }
}

/// Waits for the result or the stop of the isolate, whichever comes first. `replied` resolves to
/// `None` if there will be no result; `reported` when the isolate was stopped and the host knows.
/// The host knows of a stop before the caller does: the caller may end the program next.
pub(crate) async fn unless_stopped(
    replied: impl Future<Output = Option<CallResult>>,
    reported: impl Future<Output = Stop>,
    stopped: impl Fn() -> Option<Stop>,
) -> Result<CallResult, Unanswered> {
    let (mut replied, mut reported) = (pin!(replied), pin!(reported));
    tokio::select! {
        biased;
        result = &mut replied => match result {
            Some(result) => Ok(result),
            None if stopped().is_some() => Err(Some(reported.await)),
            None => Err(None),
        },
        stop = &mut reported => match tokio::time::timeout(STOP_GRACE, replied).await {
            Ok(Some(result)) => Ok(result),
            Ok(None) | Err(_) => Err(Some(stop)),
        },
    }
}

/// Returns the result if it arrives while this spins; `Some(None)` means that there will be none.
/// After `Some` the receiver must not be polled again.
pub(crate) fn spin_for_reply<T>(result: &mut oneshot::Receiver<T>) -> Option<Option<T>> {
    let start = Instant::now();
    while start.elapsed() < REPLY_SPIN {
        match result.try_recv() {
            Ok(result) => return Some(Some(result)),
            Err(TryRecvError::Closed) => return Some(None),
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program ended before the report, when the thread of the isolate ended first.
    #[tokio::test]
    async fn a_stop_is_reported_before_its_calls_fail() {
        let (report, reported) = oneshot::channel();
        let reported = async { reported.await.unwrap() };
        let unanswered = std::future::ready(None);
        let mut call = pin!(unless_stopped(unanswered, reported, || Some(
            Stop::Deadline
        )));
        assert!((&mut call).now_or_never().is_none());
        report.send(Stop::Deadline).unwrap();
        assert!(matches!(call.await, Err(Some(Stop::Deadline))));
    }
}
