//! This program as `node SCRIPT`: extensions fork modules and start
//! `process.execPath` with a script, and there may be no node on the machine.

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

use crate::cache::DiskCache;
use crate::error::{StartError, Thrown};
use crate::guest::{ProcessHost, Shared};
use crate::loader::{Disk, Loader, Prepared};
use crate::local::STACK;
use crate::options::RuntimeOptions;
use crate::web_worker::{Family, Workers};
use crate::whereabouts;
use crate::worker::{Parts, main_worker, remove_bridge};

/// As `node -e` has it: no script among the arguments, and Node's modules by their names.
const EVAL: &str = r#"{
    const { argv, getBuiltinModule } = process;
    argv.splice(1, 1);
    // Those that are forked have the options without it.
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

/// What comes in has a place among the arguments.
const INPUT: &str = "process.argv[1] = \"-\";";

/// As `node -p` has it: a script, whose last value is printed.
const PRINT: &str = r#"{
    const { cwd, getBuiltinModule } = process;
    const require = getBuiltinModule("module").createRequire(`${cwd()}/[eval]`);
    const exports = {};
    Object.assign(globalThis, { require, exports, module: { exports }, __filename: "[eval]", __dirname: "." });
    console.log(getBuiltinModule("vm").runInThisContext(CODE, { filename: "[eval]" }));
}"#;

/// How a script is run.
#[derive(Clone, Debug)]
pub struct Script {
    /// `process.argv` from 2 on.
    pub args: Vec<String>,
    /// `process.execArgv`: options that come before the script.
    pub options: Vec<String>,
    /// Run before it, in this order.
    pub preloads: Vec<Preload>,
    pub source: Source,
    /// The parent process listens here (`child_process.fork`).
    pub channel: Option<Channel>,
    /// Where the frames of what runs are written when SIGQUIT comes.
    pub whereabouts: Option<PathBuf>,
}

/// A module that runs before the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preload {
    /// `--import`
    Import(String),
    /// `--require`
    Require(String),
}

/// What is run. All but the file run in its place, and it need not be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `options.script`
    File,
    /// A module, which is not in `process.argv`.
    Code(String),
    /// A script of which the last value is printed.
    Printed(String),
    /// A module that has come in, which is `-` in `process.argv`.
    Input(String),
}

impl Source {
    /// What stands for the file, if that is not to be read.
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
            Self::Input(_) => Some(INPUT.to_owned()),
        }
    }
}

/// JSON is JavaScript.
fn as_literal(value: &(impl serde::Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("texts have a JSON")
}

/// One module that has them run in turn, as if it were beside the files of the folder.
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
pub struct Channel {
    pub descriptor: i64,
    /// V8's serialization instead of JSON.
    pub advanced: bool,
}

/// Runs the module `options.script` on the process's own standard streams until it
/// has nothing more to do. Returns the exit code; `process.exit` ends the process
/// itself. Call [`crate::init`] before.
pub fn run_script(options: RuntimeOptions, script: Script) -> Result<u8, StartError> {
    let thread = std::thread::Builder::new()
        .name("js".into())
        .stack_size(STACK)
        .spawn(move || {
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
    let (loader, node_services) = Loader::new(cache, Disk::default(), Prepared::default());
    let host: Arc<dyn Host> = Arc::new(ProcessHost);
    let shared = Shared::default();
    let workers = Workers {
        options: options.clone(),
        args: script.args.clone(),
        host: host.clone(),
        shared: shared.clone(),
        stdio: |_| Ok(Stdio::default()),
        family: Family::default(),
    };
    let node_ipc_init = script.channel.map(|channel| {
        let serialization = match channel.advanced {
            true => ChildIpcSerialization::Advanced,
            false => ChildIpcSerialization::Json,
        };
        (channel.descriptor, serialization)
    });
    let module = match script.source.text() {
        Some(code) => loader.give(options.script.clone(), &code),
        None => loader.entry(0, &options.script),
    };
    let module = module.map_err(StartError::Bootstrap)?;
    let mut worker = main_worker(Parts {
        main_module: module.clone(),
        loader: loader.clone(),
        node_services,
        shared,
        host,
        stdio: Stdio::default(),
        workers,
        bootstrap: BootstrapOptions {
            args: script.args,
            // As it was given: Node tells of it, and has its own path in `process.argv`.
            argv0: std::env::args_os()
                .next()
                .map(|word| word.to_string_lossy().into_owned()),
            node_ipc_init,
            ..crate::worker::bootstrap()
        },
        max_heap: None,
    });
    remove_bridge(&mut worker.js_runtime);
    if let Some(file) = script.whereabouts {
        whereabouts::tell_when_asked(&mut worker.js_runtime, file);
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
            let given = loader.give(folder.join("[preload].mjs"), &preloading(preloads));
            Some(given.map_err(StartError::Bootstrap)?)
        }
    };
    let code = match live(&mut worker, preloads.as_ref(), &module).await {
        Ok(()) => worker.exit_code(),
        Err(error) => {
            eprintln!("{}", Thrown::from(&error).report());
            1
        }
    };
    whereabouts::forget();
    loader.sweep_cache_soon();
    // As Node does: the lowest eight bits.
    Ok(code.to_le_bytes()[0])
}

/// From `import` to `exit`, with the events between.
async fn live(
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
        // Handlers may start something new.
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

/// Whether it is something that node would run, and no other file of which somebody speaks.
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
    // The commands of packages are links without an extension.
    path.is_file()
        && (is_named(path)
            || path.canonicalize().is_ok_and(|path| is_named(&path))
            || asks_for_node(path))
}

/// Whether its first line is that of a program for node.
fn asks_for_node(path: &Path) -> bool {
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
