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
//! 3. `attribution::{interrupt, stack_dump}`: read the stack in a V8 interrupt.
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
pub use limits::process_limits::{release_unused_memory, survive_file_size_limit};
pub use loader::MemoryCache;
pub use loader::expected_files::{ExpectedFiles, expect_files};
pub use node::inspector::{inspect_processes, is_inspected, start_inspector};
pub use options::{HostProcess, RuntimeOptions};
pub use runtime::Runtime;
pub use script::{IpcChannel, Preload, Script, Source, is_script, run_script};
pub use standard_streams::{Input, Output, Reader, StandardStreams, take_standard_streams};
pub use syntax::{SyntaxProblem, check_syntax, is_javascript};

/// Prepares V8. Must be called once, on the main thread, before any [`Runtime`] starts: V8 protects
/// its code pages with memory keys that only threads started below this call inherit. Takes less
/// than a millisecond; further calls do nothing.
pub fn init() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        attribution::interrupt::park_on_deno_panic();
        limits::process_limits::tune_allocator();
        // TurboFan drops the interrupt check of loops that it unrolls, and such a
        // loop (`for (;;) all.push(new Array(1000).fill(0))`) never sees a request
        // to terminate.
        deno_core::v8::V8::set_flags_from_string("--no-turboshaft-loop-unrolling");
        let wasm = format!("--wasm-max-mem-pages={}", limits::memory::WASM_PAGES);
        deno_core::v8::V8::set_flags_from_string(&wasm);
        // V8 needs to know where an error was made, and most errors are thrown away (a file that
        // does not exist). With lazy source positions it parses the whole module again for each.
        deno_core::v8::V8::set_flags_from_string("--no-enable-lazy-source-positions");
        // Nearly all objects that are made while extensions are loaded survive. With V8's default
        // of one megabyte for young objects they are copied three times, which takes a tenth of
        // such a start.
        deno_core::v8::V8::set_flags_from_string("--min-semi-space-size=8");
        deno_core::JsRuntime::init_platform(None);
        // rustls has more than one provider compiled in, so one must be chosen, or the first TLS
        // connection panics. The call fails if the program chose one before.
        _ = deno_runtime::deno_tls::rustls::crypto::aws_lc_rs::default_provider().install_default();
    });
}
