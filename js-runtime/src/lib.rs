//! V8 on a thread of its own: loads TypeScript module graphs, calls functions in
//! them by name, and can be stopped whatever they do.
//!
//! Knows nothing of pi. The program gives it a [`Host`]; the JavaScript half of
//! the bridge (`js/bridge.ts`, in the snapshot) turns what the host offers into
//! the API that extensions see. Everything that crosses is JSON text, so that the
//! thread can as well be one of another process (`process`).

mod apart;
#[path = "loader/cache/store.rs"]
mod cache;
#[path = "bridge.rs"]
mod calls;
#[path = "node/certificates.rs"]
mod certificates;
mod commands;
#[path = "limits/watchdog.rs"]
mod control;
#[path = "loader/transpile/decorators.rs"]
mod decorators;
#[path = "limits/descriptors.rs"]
mod descriptors;
mod error;
#[path = "attribution/intrinsics_guard.rs"]
mod essentials;
mod event_loop;
mod file_size;
#[path = "node/plain_host.rs"]
mod guest;
#[path = "attribution/heap_snapshot.rs"]
mod heap_owners;
#[path = "attribution/heap_growth.rs"]
mod heap_shares;
#[path = "attribution/sampler.rs"]
mod hold;
#[path = "attribution/imports.rs"]
mod imports;
#[path = "node/inspector.rs"]
mod inspector;
mod loader;
#[path = "backend/thread.rs"]
mod local;
#[path = "limits/process_limits.rs"]
mod malloc;
#[path = "limits/memory.rs"]
mod memory;
mod options;
#[path = "loader/transpile/parsing.rs"]
mod parsing;
#[path = "loader/preload.rs"]
mod preload;
#[path = "backend/process/mod.rs"]
mod process;
mod reply;
mod runtime;
mod script;
mod standard_streams;
#[path = "node/stdio.rs"]
mod stdio;
mod syntax;
#[path = "node/web_worker.rs"]
mod web_worker;
#[path = "attribution/stack_dump.rs"]
mod whereabouts;
#[path = "attribution/interrupt.rs"]
mod witness;
#[path = "isolate.rs"]
mod worker;

pub use error::{CallError, LoadError, StartError, readable_stack};
pub use file_size::survive_file_size_limit;
pub use heap_owners::HeapOwners;
pub use imports::Imports;
pub use inspector::{inspect_processes, is_inspected, start_inspector};
pub use js_runtime_ext::{
    Author, Console, Damage, Death, Fault, Held, Host, HostError, SCRIPT, Share, Stop, arguments,
    program, text, virtual_modules,
};
pub use loader::Kept;
pub use memory::Memory;
pub use options::{HostProcess, RuntimeOptions};
pub use process::serve_if_asked;
pub use runtime::Runtime;
pub use script::{Channel, Preload, Script, Source, is_script, run_script};
pub use standard_streams::{Input, Output, Reader, StandardStreams, take_standard_streams};
pub use syntax::{SyntaxProblem, check_syntax, is_javascript};

/// Must be called once, on the main thread, before any [`Runtime`] starts: V8
/// protects its code pages with memory keys that only threads started below this
/// call inherit. Cheap (under a millisecond); further calls do nothing.
pub fn init() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        witness::hold_still_when_stopped();
        malloc::take_more_at_once();
        // TurboFan drops the interrupt check of loops that it unrolls, and such a
        // loop (`for (;;) all.push(new Array(1000).fill(0))`) never sees a request
        // to terminate.
        deno_core::v8::V8::set_flags_from_string("--no-turboshaft-loop-unrolling");
        let wasm = format!("--wasm-max-mem-pages={}", memory::WASM_PAGES);
        deno_core::v8::V8::set_flags_from_string(&wasm);
        // An error needs to know where it was made, and most are thrown away (a file
        // that is not there): without this V8 parses the whole module again for it.
        deno_core::v8::V8::set_flags_from_string("--no-enable-lazy-source-positions");
        // Of what is made while extensions are loaded nearly all stays. With V8's own megabyte for
        // what is new it is copied three times over, which is a tenth of such a start.
        deno_core::v8::V8::set_flags_from_string("--min-semi-space-size=8");
        deno_core::JsRuntime::init_platform(None);
        // rustls has more than one provider compiled in, so one must be chosen, or
        // the first TLS connection panics. Fails if the program chose one before.
        _ = deno_runtime::deno_tls::rustls::crypto::aws_lc_rs::default_provider().install_default();
    });
}
