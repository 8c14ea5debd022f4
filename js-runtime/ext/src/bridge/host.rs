//! What the program offers to the JavaScript it runs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use nix::sys::signal::Signal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One object per runtime. Called on the JavaScript thread, or on the thread that
/// serves the process of the isolate: nothing here may wait for JavaScript.
pub trait Host: Send + Sync + 'static {
    /// Answers at once, while JavaScript stands still. `args` and the answer are
    /// JSON; an empty answer is `undefined`.
    fn call_sync(&self, method: &str, args: &str) -> Result<String, HostError>;

    /// Everything that waits. The future runs on the JavaScript thread's event
    /// loop; heavy work belongs on another thread. Dropped with the isolate.
    fn call(
        self: Arc<Self>,
        method: String,
        args: String,
    ) -> BoxFuture<'static, Result<String, HostError>>;

    /// What JavaScript wrote with `console.*` or `process.stdout`/`stderr`, whole
    /// lines without their end.
    fn console(&self, console: Console, line: &str);

    /// Something went wrong that no call can report.
    fn fault(&self, fault: Fault);

    /// Whose code holds the thread. Called on a thread of its own, twenty times a second at
    /// most, and only while JavaScript runs.
    fn held(&self, _held: Held) {}

    /// Whether the process is the code's own, to end as it likes.
    fn owns_process(&self) -> bool {
        false
    }
}

/// Whose code it is, and what it was called for, as `js/bridge/registry.ts` marked it.
/// The mark follows the code through promises, timers and callbacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    pub id: u32,
    pub what: String,
}

/// Who has had the thread of JavaScript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Held {
    /// For how long, since this was told last.
    Time(Vec<Share>),
    /// For so long now, without giving it back; at `limit` the isolate is stopped. Told
    /// after a second, or after half of the limit if that is less or nothing says whose
    /// code it is.
    Long {
        author: Option<Author>,
        busy: Duration,
        limit: Duration,
    },
    /// What was told to be long is over.
    Over,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    pub author: Author,
    pub time: Duration,
}

/// Becomes an `Error` (or the named class) in JavaScript.
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

/// Trouble outside any call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// A throw in a timer or another callback, or a rejection that nobody
    /// handled. The isolate goes on. `plain` is the error's message, or what was thrown
    /// instead of an error; `report` has its class and the mapped stack as well. `author`
    /// is whose code threw, if that is known.
    Uncaught {
        plain: String,
        report: String,
        author: Option<Author>,
    },
    /// Code was loaded that does what its author cannot mean. It runs all the same.
    /// `stack` is where, as an error has it; empty if that is not known.
    Slip {
        message: String,
        stack: String,
        author: Option<Author>,
    },
    /// `process.exit(code)` was called. It throws an error that names itself, so the
    /// call that did it fails; the isolate and the process stay.
    Exit { code: i32, author: Option<Author> },
    /// Something else that would have ended the process, such as `process.abort()`;
    /// the same holds. `what` is a sentence.
    Refused {
        what: String,
        author: Option<Author>,
    },
    /// The isolate was stopped (see `Stop`) and is gone. `author` is whose code ran,
    /// if JavaScript ran and is marked; `stack` are its frames, mapped to the sources,
    /// and empty if none ran.
    Stopped {
        stop: Stop,
        author: Option<Author>,
        stack: String,
    },
}

impl Fault {
    /// Trouble that no code threw; `message` is a sentence.
    pub fn of_the_runtime(message: impl Into<String>) -> Self {
        let plain = message.into();
        Self::Uncaught {
            report: plain.clone(),
            plain,
            author: None,
        }
    }
}

/// Why an isolate ended. It is never resumed: promises that were pending would
/// never settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// JavaScript did not give the thread back within its deadline.
    Deadline,
    /// The heap limit was reached.
    OutOfMemory,
    /// Nothing more can be opened: files, connections, children.
    OutOfDescriptors,
    /// Something that everything in it relies on was taken away or replaced.
    Damaged(Damage),
    /// The program asked for it.
    Asked,
    /// Its process, if it has one of its own, has ended.
    Died(Death),
    /// Its process did not answer any more, and was ended.
    Unresponsive,
}

/// How a process ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Death {
    Signal(i32),
    Exit(i32),
    /// It lives, but nothing can be said to it any more.
    HungUp,
}

impl std::fmt::Display for Death {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Signal(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(f, "was killed by {signal}"),
                Err(_) => write!(f, "was killed by signal {number}"),
            },
            Self::Exit(code) => write!(f, "ended with exit code {code}"),
            Self::HungUp => f.write_str("closed its connection"),
        }
    }
}

/// A sentence about what is gone. There are few, and they are kept for good.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Damage(&'static str);

impl Damage {
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

impl Serialize for Damage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Damage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|sentence| Self::new(&sentence))
    }
}

impl std::fmt::Debug for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}
