//! Commands to the JavaScript thread, and the trait of their source.

use std::path::PathBuf;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::attribution::heap_snapshot::RetainedHeap;
use crate::limits::memory::Memory;
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
    RetainedHeap(Box<dyn FnOnce(Result<RetainedHeap, String>) + Send>),
    Memory(Box<dyn FnOnce(Memory) + Send>),
}

/// Source of commands: the queue of a thread, or the connection of a process.
pub(crate) trait CommandSource {
    /// Resolves to `None` when there can be no more commands.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Command>>;

    /// Returns true if no command is ready.
    fn is_empty(&mut self) -> bool;
}

impl CommandSource for mpsc::Receiver<Command> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Command>> {
        self.poll_recv(cx)
    }

    fn is_empty(&mut self) -> bool {
        mpsc::Receiver::is_empty(self)
    }
}
