//! What the event loop of a process of its own hears from the program.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::Interest;
use tokio::net::UnixStream;

use super::Link;
use crate::commands::{Command, Commands};

pub(crate) struct Inbox {
    link: Arc<Link>,
    /// The same socket; it says when something has come.
    stream: UnixStream,
}

impl Inbox {
    /// On the tokio runtime of the event loop.
    pub fn new(link: Arc<Link>) -> io::Result<Self> {
        link.here();
        let stream = UnixStream::from_std(link.stream()?)?;
        Ok(Self { link, stream })
    }
}

impl Commands for Inbox {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Command>> {
        self.link.wakes(cx.waker());
        loop {
            if self.link.is_closed() {
                return Poll::Ready(None);
            }
            if let Some(command) = self.link.next_command() {
                return Poll::Ready(Some(command));
            }
            if self.link.hear() {
                continue;
            }
            match self.stream.poll_read_ready(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Ready(None),
                Poll::Ready(Ok(())) => {
                    // Something has come since, or it was there before the look.
                    let link = &self.link;
                    _ = self
                        .stream
                        .try_io(Interest::READABLE, || match link.hear() {
                            true => Ok(()),
                            false => Err(io::ErrorKind::WouldBlock.into()),
                        });
                }
            }
        }
    }

    fn is_empty(&mut self) -> bool {
        !self.link.has_command() && !self.link.hear() && !self.link.is_closed()
    }
}
