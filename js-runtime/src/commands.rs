//! What the JavaScript thread is asked to do, and where it hears of it.

use std::path::PathBuf;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::heap_owners::HeapOwners;
use crate::memory::Memory;
use crate::reply::Reply;

pub(crate) enum Command {
    Load {
        id: u32,
        path: PathBuf,
        limit: Duration,
        reply: Reply,
    },
    Call {
        function: String,
        args: String,
        reply: Reply,
    },
    HeapUsed(Box<dyn FnOnce(usize) + Send>),
    HeapOwners(Box<dyn FnOnce(Result<HeapOwners, String>) + Send>),
    Memory(Box<dyn FnOnce(Memory) + Send>),
}

/// The queue of a thread, or the connection of a process.
pub(crate) trait Commands {
    /// `None` when nobody can send any more.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Command>>;

    /// Whether there is nothing to be had at once.
    fn is_empty(&mut self) -> bool;
}

impl Commands for mpsc::Receiver<Command> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Command>> {
        self.poll_recv(cx)
    }

    fn is_empty(&mut self) -> bool {
        mpsc::Receiver::is_empty(self)
    }
}
