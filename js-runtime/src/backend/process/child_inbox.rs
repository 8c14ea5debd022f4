//! Source of commands for the event loop of a host process: the frames of the program.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::Interest;
use tokio::net::UnixStream;

use super::ChildLink;
use crate::commands::{Command, CommandSource};

pub(crate) struct ChildInbox {
    link: Arc<ChildLink>,
    /// The socket of the link, registered with tokio for readiness.
    stream: UnixStream,
}

impl ChildInbox {
    /// Must be called on the tokio runtime of the event loop.
    pub fn new(link: Arc<ChildLink>) -> io::Result<Self> {
        link.bind_thread();
        let stream = UnixStream::from_std(link.stream()?)?;
        Ok(Self { link, stream })
    }
}

impl CommandSource for ChildInbox {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Command>> {
        self.link.register_event_loop(cx.waker());
        loop {
            if self.link.is_closed() {
                return Poll::Ready(None);
            }
            if let Some(command) = self.link.next_command() {
                return Poll::Ready(Some(command));
            }
            if self.link.receive() {
                continue;
            }
            match self.stream.poll_read_ready(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Ready(None),
                Poll::Ready(Ok(())) => {
                    // A frame may have arrived since the last attempt.
                    let link = &self.link;
                    _ = self
                        .stream
                        .try_io(Interest::READABLE, || match link.receive() {
                            true => Ok(()),
                            false => Err(io::ErrorKind::WouldBlock.into()),
                        });
                }
            }
        }
    }

    fn is_empty(&mut self) -> bool {
        !self.link.has_command() && !self.link.receive() && !self.link.is_closed()
    }
}
