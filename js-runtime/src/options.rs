//! Options of a runtime.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use js_runtime_ext::SCRIPT;
use pi_base::VERSION;

use crate::attribution::sources::Sources;
use crate::loader::MemoryCache;

#[derive(Clone, Debug)]
pub struct RuntimeOptions {
    /// Folder of transpiled code and V8's code caches. Several processes may share it. `None` turns
    /// the disk cache off.
    pub cache_dir: Option<PathBuf>,
    /// Size of V8's heap in bytes at which the isolate is stopped.
    pub max_heap: usize,
    /// Maximum length of one time slice: an uninterrupted run of JavaScript.
    pub spin_limit: Duration,
    /// Value of `process.argv[1]`. Extensions that start the program again take it for a script
    /// unless it is a path by which they recognize a compiled program.
    pub script: PathBuf,
    /// Values that follow in `process.argv`.
    pub args: Vec<String>,
    /// Ids and paths of the extensions that will be loaded. They are prefetched while the isolate
    /// starts, if there is a cache.
    pub entries: Vec<(u32, PathBuf)>,
    /// Sources that extensions are loaded from instead of their files, by id.
    pub kept_sources: HashMap<u32, Sources>,
    /// Memory cache of earlier isolates. Isolates with the same cache share what they read.
    pub memory_cache: MemoryCache,
    /// `name/version`, for the `User-Agent` of requests and the cache.
    pub version: String,
    /// Name of the isolate in debuggers.
    pub label: String,
    /// Runs the isolate in a process of its own.
    pub process: Option<HostProcess>,
    /// Methods of the host whose result is always empty. An isolate in a process of its own does
    /// not wait for them.
    pub one_way: Vec<String>,
}

/// Program and arguments that start the process of an isolate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostProcess {
    /// Program that calls [`crate::run_if_host_process`] before anything else.
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

impl HostProcess {
    /// Returns this program as it was when it started. Its file may have been replaced since.
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
            kept_sources: HashMap::new(),
            memory_cache: MemoryCache::default(),
            version: format!("pi/{VERSION}"),
            label: String::new(),
            process: None,
            one_way: Vec::new(),
        }
    }
}
