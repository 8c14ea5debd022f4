//! Functions of the program for the JavaScript that it runs, and the events of an isolate.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use nix::sys::signal::Signal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The program's side of an isolate. Its methods are called on the JavaScript thread, or on the
/// thread that supervises the process of the isolate, and must not wait for JavaScript.
pub trait Host: Send + Sync + 'static {
    /// Calls a method that returns at once, while JavaScript waits. `args` and the result are JSON;
    /// an empty result is `undefined`.
    fn call_sync(&self, method: &str, args: &str) -> Result<String, HostError>;

    /// Calls a method that may wait. The future runs on the event loop of the JavaScript thread, so
    /// heavy work belongs on another thread. It is dropped with the isolate.
    fn call(
        self: Arc<Self>,
        method: String,
        args: String,
    ) -> BoxFuture<'static, Result<String, HostError>>;

    /// Receives output of `console.*` and `process.stdout`/`stderr`, in whole lines without their
    /// ends.
    fn console(&self, console: Console, line: &str);

    /// Receives an error outside any call.
    fn fault(&self, fault: Fault);

    /// Receives the usage of the thread. Called on a thread of its own, at most twenty times a
    /// second, and only while JavaScript runs.
    fn thread_event(&self, _event: ThreadEvent) {}

    /// Returns true if the code may end the process.
    fn owns_process(&self) -> bool {
        false
    }
}

/// Extension whose code runs, and the activity for which it was called, as `js/bridge/registry.ts`
/// marked it. The mark follows the code through promises, timers and callbacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    pub id: u32,
    pub what: String,
}

/// Usage of the JavaScript thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ThreadEvent {
    /// Time of each extension since the last event of this kind.
    Usage(Vec<ThreadShare>),
    /// The current time slice has lasted for `busy`; at `limit` the isolate is stopped. Sent after
    /// one second, or after half of the limit if that is less or the author is not known.
    LongSlice {
        author: Option<Author>,
        busy: Duration,
        limit: Duration,
    },
    /// The slice that was reported as long has ended.
    SliceEnded,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadShare {
    pub author: Author,
    pub time: Duration,
}

/// Error of the host. Becomes an `Error` (or the named class) in JavaScript.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HostError {
    /// `Error`, `TypeError` or `RangeError`.
    pub class: &'static str,
    pub message: String,
}

impl HostError {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            class: "Error",
            message: message.into(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Console {
    Out,
    Err,
}

/// An error outside any call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// An exception in a timer or another callback, or an unhandled rejection. The isolate
    /// continues. `plain` is the message of the error, or another thrown value; `report` has the
    /// class and the mapped stack as well. `author` is known if the code was marked.
    Uncaught {
        plain: String,
        report: String,
        author: Option<Author>,
    },
    /// Code was loaded that contains a likely mistake. It runs all the same. `stack` has its
    /// position in the format of an error's stack; empty if that is not known.
    Diagnostic {
        message: String,
        stack: String,
        author: Option<Author>,
    },
    /// `process.exit(code)` was called. It throws an error that names itself, so the call that did
    /// it fails; the isolate and the process continue.
    Exit { code: i32, author: Option<Author> },
    /// Another call that would have ended the process, such as `process.abort()`. It throws, too.
    /// `what` is a sentence.
    Refused {
        what: String,
        author: Option<Author>,
    },
    /// The isolate was stopped (see `Stop`) and is gone. `author` is the offender, if JavaScript
    /// ran and was marked; `stack` has its frames, mapped to the sources, and is empty if no code
    /// ran.
    Stopped {
        stop: Stop,
        author: Option<Author>,
        stack: String,
    },
}

impl Fault {
    /// Returns a fault that was not thrown by code; `message` is a sentence.
    pub fn from_runtime(message: impl Into<String>) -> Self {
        let plain = message.into();
        Self::Uncaught {
            report: plain.clone(),
            plain,
            author: None,
        }
    }
}

/// Reason for which an isolate was stopped. It is never resumed: pending promises would never
/// settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// A time slice exceeded its limit.
    Deadline,
    /// The heap limit was reached.
    OutOfMemory,
    /// The process is about to run out of descriptors: files, connections, children.
    OutOfDescriptors,
    /// A built-in object that all code relies on was modified.
    Tampered(TamperedIntrinsic),
    /// The program requested the stop.
    Requested,
    /// The process of the isolate has ended.
    Exited(ProcessEnd),
    /// The process of the isolate did not answer, and was killed.
    Unresponsive,
}

/// How a process ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessEnd {
    Signal(i32),
    Exit(i32),
    /// The process runs, but its connection is closed.
    Disconnected,
}

impl std::fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Signal(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(f, "was killed by {signal}"),
                Err(_) => write!(f, "was killed by signal {number}"),
            },
            Self::Exit(code) => write!(f, "ended with exit code {code}"),
            Self::Disconnected => f.write_str("closed its connection"),
        }
    }
}

/// Sentence about a modified built-in object. There are few different ones, and they are never
/// freed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TamperedIntrinsic(&'static str);

impl TamperedIntrinsic {
    pub fn new(sentence: &str) -> Self {
        static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        Self(match known.get(sentence) {
            Some(sentence) => sentence,
            None => {
                let sentence: &'static str = Box::leak(sentence.into());
                known.insert(sentence);
                sentence
            }
        })
    }

    pub fn sentence(self) -> &'static str {
        self.0
    }
}

impl Serialize for TamperedIntrinsic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for TamperedIntrinsic {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|sentence| Self::new(&sentence))
    }
}

impl std::fmt::Debug for TamperedIntrinsic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}
