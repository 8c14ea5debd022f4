//! What a runtime is started with.

use pi_base::VERSION;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use js_runtime_ext::SCRIPT;

use crate::loader::Kept;

#[derive(Clone, Debug)]
pub struct RuntimeOptions {
    /// Where transpiled code and V8's code cache are kept. Several processes may
    /// share it. `None` keeps nothing.
    pub cache_dir: Option<PathBuf>,
    /// Bytes of V8 heap at which the isolate is stopped.
    pub max_heap: usize,
    /// The longest uninterrupted run of JavaScript.
    pub spin_limit: Duration,
    /// What `process.argv[1]` says. Extensions that start the program again take it
    /// for a script unless it is a path by which they recognize a compiled program.
    pub script: PathBuf,
    /// What follows in `process.argv`.
    pub args: Vec<String>,
    /// What will be loaded, with the numbers it will be loaded by: read and compiled beside
    /// the start of the isolate, if there is a cache.
    pub entries: Vec<(u32, PathBuf)>,
    /// What isolates before have read of these, if they were given the same.
    pub kept: Kept,
    /// `name/version`, for the `User-Agent` of requests and the cache.
    pub version: String,
    /// What debuggers call the isolate.
    pub label: String,
    /// Gives the isolate a process of its own.
    pub process: Option<HostProcess>,
    /// Methods of the host that always answer with nothing: a process of its own does
    /// not wait for them.
    pub one_way: Vec<String>,
}

/// How the process of an isolate is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostProcess {
    /// Calls [`crate::serve_if_asked`] before anything else.
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

impl HostProcess {
    /// This program, as it was when it started: it may have been replaced since.
    pub fn this_program() -> std::io::Result<Self> {
        let program = match cfg!(target_os = "linux") {
            true => PathBuf::from("/proc/self/exe"),
            false => js_runtime_ext::program()?.to_owned(),
        };
        Ok(Self {
            program,
            args: Vec::new(),
        })
    }
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            cache_dir: None,
            max_heap: 1 << 30,
            spin_limit: Duration::from_secs(10),
            script: PathBuf::from(SCRIPT),
            args: Vec::new(),
            entries: Vec::new(),
            kept: Kept::default(),
            version: format!("pi/{VERSION}"),
            label: String::new(),
            process: None,
            one_way: Vec::new(),
        }
    }
}
