//! JavaScript beside the extensions: worker threads, and scripts that are run by this
//! program as if it were node. It has everything but the program's own API, which
//! belongs to one isolate.

use std::sync::Arc;

use deno_runtime::deno_core::{CompiledWasmModuleStore, SharedArrayBufferStore};
use deno_runtime::deno_web::{BlobStore, BlobStoreTrait, InMemoryBroadcastChannel};
use futures::FutureExt;
use futures::future::BoxFuture;
use js_runtime_ext::{Console, Fault, Host, HostError};

/// What isolates that talk to each other share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub blobs: Arc<dyn BlobStoreTrait>,
    pub broadcast: InMemoryBroadcastChannel,
    pub array_buffers: SharedArrayBufferStore,
    pub wasm: CompiledWasmModuleStore,
}

impl Default for Shared {
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

/// For a worker of an extension.
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

/// For a process that runs nothing but a script.
pub(crate) struct ProcessHost;

impl Host for ProcessHost {
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

    /// Its standard streams are the process's own: nothing comes here.
    fn console(&self, _console: Console, _line: &str) {}

    fn fault(&self, fault: Fault) {
        match fault {
            Fault::Exit { code, .. } => std::process::exit(code),
            Fault::Uncaught { report, .. } => eprintln!("{report}"),
            Fault::Refused { .. } | Fault::Stopped { .. } | Fault::Slip { .. } => {}
        }
    }

    fn owns_process(&self) -> bool {
        true
    }
}
