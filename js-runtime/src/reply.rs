//! Where the answer to a command goes: to a task of this process, or back over the pipe
//! from which the command came.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use tokio::sync::oneshot;

use crate::error::Thrown;
use crate::process::Link;

pub(crate) type Answer = Result<Option<String>, Thrown>;

/// Dropped without an answer when the isolate ends.
pub(crate) enum Reply {
    Here(oneshot::Sender<Answer>),
    There(Remote),
}

/// Somebody in the program's process waits.
pub(crate) struct Remote {
    pub id: u64,
    pub link: Arc<Link>,
    /// Ends when nobody waits any more.
    pub abandoned: oneshot::Receiver<()>,
}

impl Reply {
    /// A caller that has gone away abandoned the call.
    pub fn send(self, answer: Answer) {
        match self {
            Self::Here(reply) => _ = reply.send(answer),
            Self::There(remote) => remote.link.answer(remote.id, answer),
        }
    }

    pub fn is_closed(&mut self) -> bool {
        match self {
            Self::Here(reply) => reply.is_closed(),
            Self::There(remote) => !matches!(
                remote.abandoned.try_recv(),
                Err(oneshot::error::TryRecvError::Empty)
            ),
        }
    }

    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Here(reply) => reply.poll_closed(cx),
            Self::There(remote) => remote.abandoned.poll_unpin(cx).map(drop),
        }
    }
}
