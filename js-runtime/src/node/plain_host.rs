//! Hosts of JavaScript outside the extensions: worker threads, and scripts that this program runs
//! as Node would. Such code has everything but the extension API, which belongs to one isolate.

use std::sync::Arc;

use deno_runtime::deno_core::{CompiledWasmModuleStore, SharedArrayBufferStore};
use deno_runtime::deno_web::{BlobStore, BlobStoreTrait, InMemoryBroadcastChannel};
use futures::FutureExt;
use futures::future::BoxFuture;
use js_runtime_ext::{Console, Fault, Host, HostError};

/// Stores that isolates which send messages to each other share.
#[derive(Clone)]
pub(crate) struct SharedStores {
    pub blobs: Arc<dyn BlobStoreTrait>,
    pub broadcast: InMemoryBroadcastChannel,
    pub array_buffers: SharedArrayBufferStore,
    pub wasm: CompiledWasmModuleStore,
}

impl Default for SharedStores {
    fn default() -> Self {
        Self {
            blobs: BlobStore::default_arc(),
            broadcast: InMemoryBroadcastChannel::default(),
            array_buffers: SharedArrayBufferStore::default(),
            wasm: CompiledWasmModuleStore::default(),
        }
    }
}

fn refuse(method: &str) -> HostError {
    HostError::new(format!(
        "{method} is only there in the thread of the extensions, not in workers and child \
         processes: send a message to the extension and let it do that"
    ))
}

/// Host of a worker of an extension.
pub(crate) struct WorkerHost(pub Arc<dyn Host>);

impl Host for WorkerHost {
    fn call_sync(&self, method: &str, _args: &str) -> Result<String, HostError> {
        Err(refuse(method))
    }

    fn call(
        self: Arc<Self>,
        method: String,
        _args: String,
    ) -> BoxFuture<'static, Result<String, HostError>> {
        async move { Err(refuse(&method)) }.boxed()
    }

    fn console(&self, console: Console, line: &str) {
        self.0.console(console, line);
    }

    fn fault(&self, fault: Fault) {
        self.0.fault(fault);
    }
}

/// Host of a process that runs only a script.
pub(crate) struct ScriptHost;

impl Host for ScriptHost {
    fn call_sync(&self, method: &str, _args: &str) -> Result<String, HostError> {
        Err(refuse(method))
    }

    fn call(
        self: Arc<Self>,
        method: String,
        _args: String,
    ) -> BoxFuture<'static, Result<String, HostError>> {
        async move { Err(refuse(&method)) }.boxed()
    }

    /// Never called: the script uses the process's own standard streams.
    fn console(&self, _console: Console, _line: &str) {}

    fn fault(&self, fault: Fault) {
        match fault {
            Fault::Exit { code, .. } => std::process::exit(code),
            Fault::Uncaught { report, .. } => eprintln!("{report}"),
            Fault::Refused { .. } | Fault::Stopped { .. } | Fault::Diagnostic { .. } => {}
        }
    }

    fn owns_process(&self) -> bool {
        true
    }
}
