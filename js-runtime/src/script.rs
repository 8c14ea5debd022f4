//! Runs a script as `node SCRIPT` does. Extensions fork modules and start `process.execPath` with a
//! script, and the machine may have no Node.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deno_core::PollEventLoopOptions;
use deno_core::error::CoreError;
use deno_runtime::BootstrapOptions;
use deno_runtime::deno_io::Stdio;
use deno_runtime::deno_node::ops::ipc::ChildIpcSerialization;
use deno_runtime::worker::MainWorker;
use js_runtime_ext::{Host, probe};

use crate::attribution::stack_dump;
use crate::bridge::remove_bridge;
use crate::error::{StartError, Thrown};
use crate::isolate::{WorkerParts, main_worker};
use crate::js_thread;
use crate::loader::cache::DiskCache;
use crate::loader::{Disk, Loader, Prefetched};
use crate::node::bootstrap::bootstrap;
use crate::node::plain_host::{ScriptHost, SharedStores};
use crate::node::web_worker::{WorkerGroup, Workers};
use crate::options::RuntimeOptions;

/// Prepares the isolate as `node -e` does: no script among the arguments, and Node's modules as
/// global names.
const EVAL: &str = r#"{
    const { argv, getBuiltinModule } = process;
    argv.splice(1, 1);
    // Forked scripts get the options without this one.
    process._eval = CODE;
    for (const name of getBuiltinModule("module").builtinModules) {
        if (!/^[a-z]\w*$/.test(name) || name in globalThis) continue;
        const define = (value) => Object.defineProperty(globalThis, name, { value, writable: true });
        Object.defineProperty(globalThis, name, {
            configurable: true,
            get: () => getBuiltinModule(name),
            set: define,
        });
    }
}"#;

/// Replaces the script in `process.argv` when the code comes from standard input.
const STDIN_ARGV: &str = "process.argv[1] = \"-\";";

/// Runs code as `node -p` does: a script whose last value is printed.
const PRINT: &str = r#"{
    const { cwd, getBuiltinModule } = process;
    const require = getBuiltinModule("module").createRequire(`${cwd()}/[eval]`);
    const exports = {};
    Object.assign(globalThis, { require, exports, module: { exports }, __filename: "[eval]", __dirname: "." });
    console.log(getBuiltinModule("vm").runInThisContext(CODE, { filename: "[eval]" }));
}"#;

/// Source and arguments of a script, and how it is run.
#[derive(Clone, Debug)]
pub struct Script {
    /// Values of `process.argv` from index 2 on.
    pub args: Vec<String>,
    /// `process.execArgv`: options that come before the script.
    pub options: Vec<String>,
    /// Modules that run before the script, in this order.
    pub preloads: Vec<Preload>,
    pub source: Source,
    /// Pipe to the parent process, if it used `child_process.fork`.
    pub channel: Option<IpcChannel>,
    /// File for the stack of the running code when SIGQUIT arrives.
    pub stack_dump_file: Option<PathBuf>,
}

/// A module that runs before the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preload {
    /// `--import`
    Import(String),
    /// `--require`
    Require(String),
}

/// Code to run. All variants but `File` run as if they were that file, which need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `options.script`
    File,
    /// A module, which is not in `process.argv`.
    Code(String),
    /// A script whose last value is printed.
    Printed(String),
    /// A module from standard input, which is `-` in `process.argv`.
    Input(String),
}

impl Source {
    /// Returns the code that replaces the content of the file.
    fn text(&self) -> Option<String> {
        match self {
            Self::File => None,
            Self::Code(code) | Self::Input(code) => Some(code.clone()),
            Self::Printed(code) => Some(PRINT.replace("CODE", &as_literal(code))),
        }
    }

    fn preparation(&self) -> Option<String> {
        match self {
            Self::File => None,
            Self::Code(code) | Self::Printed(code) => Some(EVAL.replace("CODE", &as_literal(code))),
            Self::Input(_) => Some(STDIN_ARGV.to_owned()),
        }
    }
}

/// Converts a value to JSON, which is a JavaScript literal.
fn as_literal(value: &(impl serde::Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("texts have a JSON")
}

/// Returns one module that runs all preloads in turn. It is resolved like a file of the current
/// folder.
fn preloading(preloads: &[Preload]) -> String {
    let each = preloads.iter().map(|preload| match preload {
        Preload::Import(name) => format!("await import({});", as_literal(name)),
        Preload::Require(name) => format!("require({});", as_literal(name)),
    });
    let require =
        "const require = process.getBuiltinModule('module').createRequire(import.meta.url);";
    std::iter::once(require.to_owned()).chain(each).collect()
}

/// One end of the pipe between a forked script and its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpcChannel {
    pub descriptor: i64,
    /// V8's serialization instead of JSON.
    pub advanced: bool,
}

/// Runs the module `options.script` on the process's own standard streams until no work is pending.
/// Returns the exit code; `process.exit` ends the process itself.
pub fn run_script(options: RuntimeOptions, script: Script) -> Result<u8, StartError> {
    let thread = js_thread::spawn("js".into(), move || {
        let tokio = deno_runtime::tokio_util::create_basic_runtime();
        let code = tokio.block_on(run(options, script));
        tokio.shutdown_background();
        code
    })
    .map_err(StartError::Thread)?;
    thread
        .join()
        .unwrap_or_else(|_| Err(StartError::Bootstrap("its thread panicked".into())))
}

async fn run(options: RuntimeOptions, script: Script) -> Result<u8, StartError> {
    let cache = DiskCache::new(options.cache_dir.clone(), &options.version);
    let (loader, node_services) = Loader::new(cache, Disk::default(), Prefetched::default());
    let host: Arc<dyn Host> = Arc::new(ScriptHost);
    let shared = SharedStores::default();
    let workers = Workers {
        options: options.clone(),
        args: script.args.clone(),
        host: host.clone(),
        shared: shared.clone(),
        stdio: |_| Ok(Stdio::default()),
        group: WorkerGroup::default(),
    };
    let node_ipc_init = script.channel.map(|channel| {
        let serialization = match channel.advanced {
            true => ChildIpcSerialization::Advanced,
            false => ChildIpcSerialization::Json,
        };
        (channel.descriptor, serialization)
    });
    let module = match script.source.text() {
        Some(code) => loader.add_virtual_file(options.script.clone(), &code),
        None => loader.entry(0, &options.script),
    };
    let module = module.map_err(StartError::Bootstrap)?;
    let mut worker = main_worker(WorkerParts {
        main_module: module.clone(),
        loader: loader.clone(),
        node_services,
        shared,
        host,
        stdio: Stdio::default(),
        workers,
        bootstrap: BootstrapOptions {
            args: script.args,
            // Node reports the first argument as it was given, and has its own path in
            // `process.argv`.
            argv0: std::env::args_os()
                .next()
                .map(|word| word.to_string_lossy().into_owned()),
            node_ipc_init,
            ..bootstrap()
        },
        max_heap: None,
    });
    remove_bridge(&mut worker.js_runtime);
    if let Some(file) = script.stack_dump_file {
        stack_dump::dump_on_sigquit(&mut worker.js_runtime, file);
    }
    let mut prepare = |code: String| {
        let prepared = worker.js_runtime.execute_script("pi:script", code);
        prepared.map_err(|error| StartError::Bootstrap(error.to_string()))
    };
    if let Some(preparation) = script.source.preparation() {
        prepare(preparation)?;
    }
    if !script.options.is_empty() {
        let options = as_literal(&script.options);
        prepare(format!("process.execArgv.push(...{options});"))?;
    }
    let preloads = match script.preloads.as_slice() {
        [] => None,
        preloads => {
            let folder = std::env::current_dir()
                .map_err(|error| StartError::Bootstrap(format!("there is no folder: {error}")))?;
            let module =
                loader.add_virtual_file(folder.join("[preload].mjs"), &preloading(preloads));
            Some(module.map_err(StartError::Bootstrap)?)
        }
    };
    if script.channel.is_some() {
        // Lets the event loop see the pipe. Messages wait for that, and those of a script that ends
        // at once would be lost.
        tokio::task::yield_now().await;
    }
    let code = match run_to_completion(&mut worker, preloads.as_ref(), &module).await {
        Ok(()) => worker.exit_code(),
        Err(error) => {
            eprintln!("{}", Thrown::from(&error).full_report());
            1
        }
    };
    stack_dump::uninstall();
    loader.sweep_cache_soon();
    // Node reports the lowest eight bits.
    Ok(code.to_le_bytes()[0])
}

/// Runs the module from its import to the `exit` event, with the events between.
async fn run_to_completion(
    worker: &mut MainWorker,
    preloads: Option<&deno_core::ModuleSpecifier>,
    module: &deno_core::ModuleSpecifier,
) -> Result<(), CoreError> {
    if let Some(preloads) = preloads {
        worker.execute_side_module(preloads).await?;
    }
    worker.execute_main_module(module).await?;
    worker.dispatch_load_event()?;
    loop {
        worker
            .js_runtime
            .run_event_loop(PollEventLoopOptions::default())
            .await?;
        // Handlers may start new work.
        let more =
            worker.dispatch_beforeunload_event()? || worker.dispatch_process_beforeexit_event()?;
        if !more {
            break;
        }
    }
    worker.dispatch_unload_event()?;
    worker.dispatch_process_exit_event()?;
    Ok(())
}

/// Returns true if `path` is something that node would run, rather than another file or a word of a
/// prompt.
pub fn is_script(path: &Path) -> bool {
    if path.is_dir() {
        let is_meant = path.is_absolute() || path.starts_with(".") || path.starts_with("..");
        return is_meant && probe(path).is_some();
    }
    let is_named = |path: &Path| {
        let name = path.extension().and_then(|extension| extension.to_str());
        matches!(
            name,
            Some("js" | "mjs" | "cjs" | "ts" | "mts" | "cts" | "tsx" | "jsx")
        )
    };
    // Commands of packages are links without an extension.
    path.is_file()
        && (is_named(path)
            || path.canonicalize().is_ok_and(|path| is_named(&path))
            || names_node(path))
}

/// Returns true if the first line of the file starts node.
fn names_node(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(256).read_to_end(&mut start));
    let line = start.split(|byte| *byte == b'\n').next();
    let line = read.ok().and(line).map(String::from_utf8_lossy);
    let program = line.as_deref().and_then(|line| line.strip_prefix("#!"));
    program.is_some_and(|program| {
        program
            .split_whitespace()
            .any(|word| word == "node" || word.ends_with("/node"))
    })
}
