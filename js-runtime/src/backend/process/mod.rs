//! Runs the isolate in a process of its own. Crashes that V8 cannot survive (native addons,
//! `abort`, lack of address space) then end the extensions, not the program.
//!
//! The process is the same binary, started under the name [`PROCESS_NAME`]; its standard input and
//! output are two sockets. The first carries commands, results and calls of the host, and the
//! JavaScript thread itself reads it. The second is the control channel, which is read while
//! JavaScript runs: it carries stops and the question whether JavaScript spins, and its end means
//! that the program is gone. All frames to the program use the first.

mod child;
mod child_inbox;
mod child_link;
mod crash_report;
mod host_proxy;
mod parent;
mod supervisor;
mod sync_call_watchdog;
mod wire;
mod writer;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use js_runtime_ext::program;
use serde::{Deserialize, Serialize};

use crate::attribution::load_input::{InputAnswer, InputKind};
use crate::attribution::sources::Sources;
use crate::commands::LoadPhase;
use crate::error::Thrown;
use crate::loader::MemoryCache;
use crate::loader::expected_files::{self, ExpectedFiles, expect_files};
use crate::node::inspector::Inspect;
use crate::options::RuntimeOptions;

pub use self::child::run_if_host_process;
pub(crate) use self::child_link::ChildLink;
pub(crate) use self::parent::ProcessBackend;

/// `argv[0]` of the process. No argument of a user can be mistaken for it, and child processes do
/// not inherit it.
const PROCESS_NAME: &str = "pi-extension-host";

/// First frame to the process. Paths are in the system's form: not all are Unicode.
#[derive(Debug, Serialize, Deserialize)]
struct StartRequest {
    cache_dir: Option<OsString>,
    max_heap: usize,
    spin_limit: Duration,
    script: OsString,
    args: Vec<String>,
    entries: Vec<(u32, OsString)>,
    kept_sources: HashMap<u32, Sources>,
    version: String,
    label: String,
    one_way: Vec<String>,
    /// Value of `process.execPath`.
    program: Option<OsString>,
    inspect: Option<Inspect>,
    expected_files: Vec<ExpectedProject>,
}

/// A project, its expected files and the folders of which no others are loaded.
type ExpectedProject = (OsString, Vec<(OsString, String)>, Vec<OsString>);

impl StartRequest {
    fn from_options(options: &RuntimeOptions, inspect: Option<Inspect>) -> Self {
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
            kept_sources: options.kept_sources.clone(),
            version: options.version.clone(),
            label: options.label.clone(),
            one_way: options.one_way.clone(),
            program: program().ok().map(|path| path.as_os_str().to_owned()),
            inspect,
            expected_files: expected_files::all()
                .into_iter()
                .map(|(project, expected)| {
                    let files = expected.files.into_iter();
                    let files = files.map(|(path, hash)| (path.into_os_string(), hash));
                    let folders = expected.folders.into_iter().map(PathBuf::into_os_string);
                    (project.into_os_string(), files.collect(), folders.collect())
                })
                .collect(),
        }
    }

    fn options(self) -> RuntimeOptions {
        for (project, files, folders) in self.expected_files {
            let files = files.into_iter().map(|(path, hash)| (path.into(), hash));
            let expected = ExpectedFiles {
                files: files.collect(),
                folders: folders.into_iter().map(PathBuf::from).collect(),
            };
            expect_files(Path::new(&project), Some(expected));
        }
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
            kept_sources: self.kept_sources,
            // A process has one isolate.
            memory_cache: MemoryCache::default(),
            version: self.version,
            label: self.label,
            process: None,
            one_way: self.one_way,
        }
    }
}

/// Head of [`wire::Kind::Load`].
#[derive(Debug, Serialize, Deserialize)]
struct LoadRequest {
    phase: LoadPhase,
    extension: u32,
    limit: Duration,
}

/// Head of [`wire::Kind::LoadInput`].
#[derive(Debug, Serialize, Deserialize)]
struct InputFrame {
    extension: Option<u32>,
    kind: InputKind,
    answer: InputAnswer,
}

/// Head of a [`wire::Kind::HostResult`] that is an error.
#[derive(Debug, Serialize, Deserialize)]
struct HostErrorFrame {
    class: String,
    message: String,
}

/// Head of [`wire::Kind::Thrown`].
#[derive(Debug, Serialize, Deserialize)]
struct ThrownFrame {
    message: String,
    plain: String,
    position: Option<String>,
    stack: String,
}

impl From<Thrown> for ThrownFrame {
    fn from(thrown: Thrown) -> Self {
        Self {
            message: thrown.message,
            plain: thrown.plain,
            position: thrown.position,
            stack: thrown.stack,
        }
    }
}

impl From<ThrownFrame> for Thrown {
    fn from(exception: ThrownFrame) -> Self {
        Self {
            message: exception.message,
            plain: exception.plain,
            position: exception.position,
            stack: exception.stack,
        }
    }
}
