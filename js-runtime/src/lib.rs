//! V8 on a thread of its own: loads TypeScript module graphs, calls functions in them by name,
//! and can be stopped at any time.
//!
//! The crate knows nothing of pi. The program provides a [`Host`]; the JavaScript half of the
//! bridge (`js/bridge.ts`, in the snapshot) makes the extension API of it. All values that cross
//! the bridge are JSON text, so that the isolate can run in another process as well
//! (`backend::process`).
//!
//! # Layers
//!
//! A module uses only modules of its own layer and of those above it in this list. There are no
//! import cycles outside `loader` and `backend::process`, whose files belong together.
//!
//! 1. `error`, `node::{certificates, inspector, plain_host, private_pipe, stdio}`,
//!    `limits::process_limits`, `attribution::{heap_growth, heap_snapshot, intrinsics_guard,
//!    load_input, sampler, sources}`: each alone. `attribution::imports` uses `load_input` and
//!    `sources`.
//! 2. `limits::watchdog`, then `limits::{memory, descriptors}`: stop an isolate.
//! 3. `attribution::{interrupt, stack_dump}`: read the stack in a V8 interrupt. `js_thread` starts
//!    threads and installs the former.
//! 4. `loader`: from `import` to JavaScript. `syntax` checks a file with its parser.
//! 5. `options`, `reply`, `commands`, `bridge`: what an isolate is started with, and calls into it.
//! 6. `node::{bootstrap, web_worker}`, then `isolate`: assemble isolates.
//! 7. `event_loop` and `script`: run them.
//! 8. `backend`: a thread or a process. `runtime`: the handle of either.

mod attribution;
mod backend;
mod bridge;
mod commands;
mod error;
mod event_loop;
mod isolate;
mod js_thread;
mod limits;
mod loader;
mod node;
mod options;
mod reply;
mod runtime;
mod script;
mod standard_streams;
mod syntax;

pub use attribution::heap_snapshot::RetainedHeap;
pub use attribution::imports::Imports;
pub use attribution::load_input::{InputAnswer, InputKind, LoadInput};
pub use attribution::sources::Sources;
pub use backend::process::run_if_host_process;
pub use commands::LoadPhase;
pub use error::{CallError, LoadError, StartError, readable_stack};
pub use js_runtime_ext::{
    Author, Console, Fault, Host, HostError, ProcessEnd, SCRIPT, Stop, TamperedIntrinsic,
    ThreadEvent, ThreadShare, arguments, program, text, virtual_modules,
};
pub use limits::memory::Memory;
pub use limits::process_limits::{release_unused_memory_soon, survive_file_size_limit};
pub use loader::MemoryCache;
pub use loader::expected_files::{ExpectedFiles, expect_files};
pub use node::inspector::{inspect_processes, is_inspected, start_inspector};
pub use options::{HostProcess, RuntimeOptions};
pub use runtime::Runtime;
pub use script::{IpcChannel, Preload, Script, Source, is_script, run_script};
pub use standard_streams::{Input, Output, Reader, StandardStreams, take_standard_streams};
pub use syntax::{SyntaxProblem, check_syntax, is_javascript};
