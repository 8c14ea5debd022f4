//! The two places where an isolate can run: a thread of this process, or a process of its own.

pub(crate) mod process;
pub(crate) mod thread;
