//! Commands to the JavaScript thread, and the trait of their source.

use std::path::PathBuf;
use std::task::{Context, Poll};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::attribution::heap_snapshot::RetainedHeap;
use crate::limits::memory::Memory;
use crate::reply::Reply;

/// A part of the load of an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoadPhase {
    /// Reads, resolves, compiles and links all modules. No code of the extension runs.
    Prepare,
    /// Evaluates the module and calls its function. Prepares it first if that was not done.
    Run,
}

pub(crate) enum Command {
    Load {
        phase: LoadPhase,
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
    /// Closes what the extensions hold; the isolate goes on.
    Release(Reply),
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
