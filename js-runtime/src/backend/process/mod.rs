//! The isolate in a process of its own: what V8 cannot survive (a native addon that
//! crashes, `abort`, running out of address space) then costs the extensions, not the
//! program.
//!
//! The process is the same binary, started under the name [`NAME`]; its standard input
//! and output are two sockets. Over the first go commands, answers and what JavaScript
//! asks of the host, read on the far side by the JavaScript thread itself. The second
//! is read whatever that thread does: it carries stops and the question whether
//! JavaScript spins, and its end means that the program is gone. All that comes back
//! comes over the first.

mod child;
#[path = "child_inbox.rs"]
mod inbox;
#[path = "crash_report.rs"]
mod last_words;
#[path = "child_link.rs"]
mod link;
#[path = "writer.rs"]
mod outgoing;
mod parent;
#[path = "host_proxy.rs"]
mod proxy;
#[path = "supervisor.rs"]
mod serving;
#[path = "sync_call_watchdog.rs"]
mod standing;
mod wire;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use js_runtime_ext::program;
use serde::{Deserialize, Serialize};

use crate::error::Thrown;
use crate::loader::Kept;
use crate::options::RuntimeOptions;

pub use self::child::serve_if_asked;
pub(crate) use self::link::Link;
pub(crate) use self::parent::Parent;

/// `argv[0]` of the process. No argument of a user can be taken for it, and whatever
/// the process starts does not inherit it.
const NAME: &str = "pi-extension-host";

/// What the process is told first. Paths as the system has them: not all are Unicode.
#[derive(Debug, Serialize, Deserialize)]
struct Start {
    cache_dir: Option<OsString>,
    max_heap: usize,
    spin_limit: Duration,
    script: OsString,
    args: Vec<String>,
    entries: Vec<(u32, OsString)>,
    version: String,
    label: String,
    one_way: Vec<String>,
    /// What `process.execPath` says.
    program: Option<OsString>,
    inspect: Option<Inspect>,
}

/// How a debugger gets in.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Inspect {
    pub address: SocketAddr,
    /// The first module waits for it.
    pub wait: bool,
}

impl Start {
    fn of(options: &RuntimeOptions, inspect: Option<Inspect>) -> Self {
        Self {
            cache_dir: options.cache_dir.clone().map(PathBuf::into_os_string),
            max_heap: options.max_heap,
            spin_limit: options.spin_limit,
            script: options.script.clone().into_os_string(),
            args: options.args.clone(),
            entries: options
                .entries
                .iter()
                .map(|(id, path)| (*id, path.clone().into_os_string()))
                .collect(),
            version: options.version.clone(),
            label: options.label.clone(),
            one_way: options.one_way.clone(),
            program: program().ok().map(|path| path.as_os_str().to_owned()),
            inspect,
        }
    }

    fn options(self) -> RuntimeOptions {
        RuntimeOptions {
            cache_dir: self.cache_dir.map(PathBuf::from),
            max_heap: self.max_heap,
            spin_limit: self.spin_limit,
            script: self.script.into(),
            args: self.args,
            entries: self
                .entries
                .into_iter()
                .map(|(id, path)| (id, path.into()))
                .collect(),
            // A process has one isolate.
            kept: Kept::default(),
            version: self.version,
            label: self.label,
            process: None,
            one_way: self.one_way,
        }
    }
}

/// The head of [`wire::Kind::Load`].
#[derive(Debug, Serialize, Deserialize)]
struct Load {
    extension: u32,
    limit: Duration,
}

/// The head of a [`wire::Kind::HostAnswer`] that is an error.
#[derive(Debug, Serialize, Deserialize)]
struct Refusal {
    class: String,
    message: String,
}

/// The head of [`wire::Kind::Thrown`].
#[derive(Debug, Serialize, Deserialize)]
struct Exception {
    message: String,
    plain: String,
    place: Option<String>,
    stack: String,
}

impl From<Thrown> for Exception {
    fn from(thrown: Thrown) -> Self {
        Self {
            message: thrown.message,
            plain: thrown.plain,
            place: thrown.place,
            stack: thrown.stack,
        }
    }
}

impl From<Exception> for Thrown {
    fn from(exception: Exception) -> Self {
        Self {
            message: exception.message,
            plain: exception.plain,
            place: exception.place,
            stack: exception.stack,
        }
    }
}
