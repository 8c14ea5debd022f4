//! Starts the threads of JavaScript. V8 protects its code pages with memory keys, which a thread
//! inherits from the thread that starts it. So one thread initializes V8 and starts all others, and a
//! program without JavaScript pays for neither.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use crate::attribution::interrupt;
use crate::limits::memory;
use crate::limits::process_limits::{JS_STACK_SIZE, tune_allocator};

/// Starts one thread.
type Start = Box<dyn FnOnce() + Send>;

/// Starts a thread that may have isolates. The first call initializes V8, which takes less than a
/// millisecond.
pub(crate) fn spawn<T: Send + 'static>(
    name: String,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let (started, thread) = mpsc::channel();
    let start = move || {
        let builder = thread::Builder::new().name(name).stack_size(JS_STACK_SIZE);
        // The caller waits for the thread.
        _ = started.send(builder.spawn(work));
    };
    let gone = || io::Error::other("the thread that starts others has ended");
    starter()?.send(Box::new(start)).map_err(|_| gone())?;
    thread.recv().map_err(|_| gone())?
}

/// Returns the channel to the thread that has initialized V8.
fn starter() -> io::Result<&'static Sender<Start>> {
    static STARTER: OnceLock<io::Result<Sender<Start>>> = OnceLock::new();
    let start = || {
        let (sender, starts) = mpsc::channel::<Start>();
        thread::Builder::new().name("js-starter".into()).spawn(|| {
            initialize_v8();
            starts.into_iter().for_each(|start| start());
        })?;
        Ok(sender)
    };
    let starter = STARTER.get_or_init(start).as_ref();
    starter.map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

fn initialize_v8() {
    interrupt::park_on_deno_panic();
    tune_allocator();
    let set = deno_core::v8::V8::set_flags_from_string;
    // TurboFan drops the interrupt check of loops that it unrolls, and such a loop
    // (`for (;;) all.push(new Array(1000).fill(0))`) never sees a request to terminate.
    set("--no-turboshaft-loop-unrolling");
    set(&format!("--wasm-max-mem-pages={}", memory::WASM_PAGES));
    // V8 needs to know where an error was made, and most errors are thrown away (a file that does
    // not exist). With lazy source positions it parses the whole module again for each.
    set("--no-enable-lazy-source-positions");
    // Nearly all objects that are made while extensions are loaded survive. With V8's default of
    // one megabyte for young objects they are copied three times, which takes a tenth of such a
    // start.
    set("--min-semi-space-size=8");
    deno_core::JsRuntime::init_platform(None);
    // rustls has more than one provider compiled in, so one must be chosen, or the first TLS
    // connection of JavaScript panics. The call fails if the program chose one before.
    _ = deno_runtime::deno_tls::rustls::crypto::aws_lc_rs::default_provider().install_default();
}
