//! Assembles one isolate: deno_runtime's worker, the loader, the limits, and the functions of the
//! bridge.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use deno_core::{ModuleSpecifier, v8};
use deno_runtime::deno_fs::RealFs;
use deno_runtime::deno_io::Stdio;
use deno_runtime::deno_permissions::PermissionsContainer;
use deno_runtime::permissions::RuntimePermissionDescriptorParser;
use deno_runtime::worker::{MainWorker, WorkerOptions, WorkerServiceOptions};
use deno_runtime::{BootstrapOptions, FeatureChecker};
use js_runtime_ext::{Host, SourcePositions, Stop, js_runtime};
use sys_traits::impls::RealSys;

use crate::attribution::interrupt;
use crate::bridge;
use crate::error::StartError;
use crate::limits::memory;
use crate::limits::process_limits::raise_descriptor_limit;
use crate::limits::watchdog::Watchdog;
use crate::loader::cache::DiskCache;
use crate::loader::cache::prefetch::start_prefetch;
use crate::loader::{Disk, Loader, NodeServices};
use crate::node::bootstrap::{bootstrap, take_many_headers};
use crate::node::certificates;
use crate::node::inspector;
use crate::node::plain_host::{SharedStores, WorkerHost};
use crate::node::stdio::{self, Readers};
use crate::node::web_worker::{WorkerGroup, Workers};
use crate::options::RuntimeOptions;

pub(crate) struct Isolate {
    // Fields are dropped in this order: handles before the isolate they belong to, and the read
    // ends of the pipes after all their writers.
    pub functions: HashMap<String, v8::Global<v8::Function>>,
    pub worker: MainWorker,
    pub workers: WorkerGroup,
    pub loader: Rc<Loader>,
    pub readers: Readers,
}

pub(crate) fn create(
    options: &RuntimeOptions,
    host: &Arc<dyn Host>,
) -> Result<(Isolate, Watchdog), StartError> {
    raise_descriptor_limit();
    let cache = DiskCache::new(options.cache_dir.clone(), &options.version);
    let disk = Disk::with_memory_cache(options.memory_cache.clone());
    let prefetched = start_prefetch(&cache, &disk, options.entries.clone());
    let (loader, node_services) = Loader::new(cache, disk, prefetched);
    loader.set_kept_sources(options.kept_sources.clone());
    loader.record_manifest(&options.entries);
    let (stdio, readers) = stdio::redirect(host).map_err(StartError::Stdio)?;
    let shared = SharedStores::default();
    let group = WorkerGroup::default();
    let mut worker = main_worker(WorkerParts {
        main_module: script_url(&options.script)?,
        loader: loader.clone(),
        node_services,
        shared: shared.clone(),
        host: host.clone(),
        stdio,
        workers: Workers {
            options: options.clone(),
            args: Vec::new(),
            host: Arc::new(WorkerHost(host.clone())),
            shared,
            // The threads that read these pipes end when all writers are gone.
            stdio: |host| stdio::redirect(host).map(|(stdio, _readers)| stdio),
            group: group.clone(),
        },
        bootstrap: BootstrapOptions {
            args: options.args.clone(),
            ..bootstrap()
        },
        max_heap: Some(options.max_heap),
    });
    inspector::announce(&mut worker.js_runtime, &**host);
    let functions =
        bridge::take_functions(&mut worker.js_runtime).map_err(StartError::Bootstrap)?;
    let handle = worker.js_runtime.v8_isolate().thread_safe_handle();
    let watchdog =
        Watchdog::new(handle, interrupt::CALLBACKS, host.clone()).map_err(StartError::Thread)?;
    memory::limit_external(
        worker.js_runtime.v8_isolate(),
        watchdog.clone(),
        options.max_heap,
    );
    let limited = watchdog.clone();
    worker
        .js_runtime
        .add_near_heap_limit_callback(memory::near_heap_limit(move |_| {
            limited.stop(Stop::OutOfMemory)
        }));
    let isolate = Isolate {
        functions,
        worker,
        workers: group,
        loader,
        readers,
    };
    Ok((isolate, watchdog))
}

/// Components of a main worker.
pub(crate) struct WorkerParts {
    pub main_module: ModuleSpecifier,
    pub loader: Rc<Loader>,
    pub node_services: NodeServices,
    pub shared: SharedStores,
    pub host: Arc<dyn Host>,
    pub stdio: Stdio,
    pub workers: Workers,
    pub bootstrap: BootstrapOptions,
    /// Maximum size of V8's heap in bytes.
    pub max_heap: Option<usize>,
}

pub(crate) fn main_worker(parts: WorkerParts) -> MainWorker {
    let descriptors = Arc::new(RuntimePermissionDescriptorParser::new(RealSys));
    let loader = parts.loader.clone();
    let worker = MainWorker::bootstrap_from_options(
        &parts.main_module,
        WorkerServiceOptions {
            blob_store: parts.shared.blobs,
            broadcast_channel: parts.shared.broadcast,
            bundle_provider: None,
            compiled_wasm_module_store: Some(parts.shared.wasm),
            deno_rt_native_addon_loader: None,
            feature_checker: Arc::new(FeatureChecker::default()),
            fetch_dns_resolver: Default::default(),
            fs: Arc::new(RealFs),
            module_loader: parts.loader,
            node_services: Some(parts.node_services),
            npm_process_state_provider: None,
            permissions: PermissionsContainer::allow_all(descriptors),
            root_cert_store_provider: Some(certificates::roots()),
            shared_array_buffer_store: Some(parts.shared.array_buffers),
            // Scripts get their code caches from `cache_scripts`.
            v8_code_cache: None,
        },
        WorkerOptions {
            bootstrap: parts.bootstrap,
            create_params: parts.max_heap.map(memory::create_params),
            create_web_worker_cb: parts.workers.into_callback(),
            extensions: vec![js_runtime::init(Some(parts.host))],
            startup_snapshot: Some(js_runtime_snapshot::SNAPSHOT),
            // The ops are registered in the snapshot.
            skip_op_registration: true,
            residual_lazy_js_sources: js_runtime_snapshot::RESIDUAL_LAZY_JS,
            residual_lazy_esm_sources: js_runtime_snapshot::RESIDUAL_LAZY_ESM,
            stdio: parts.stdio,
            unsafely_ignore_certificate_errors: certificates::unchecked(),
            ..Default::default()
        },
    );
    loader.cache_scripts(&worker.js_runtime);
    let positions = SourcePositions::new(worker.js_runtime.source_mapper());
    worker.js_runtime.op_state().borrow_mut().put(positions);
    take_many_headers(&worker.js_runtime);
    worker
}

/// Returns the URL from which deno_node derives `process.argv[1]` (see `js/node/process.ts`).
fn script_url(script: &Path) -> Result<ModuleSpecifier, StartError> {
    ModuleSpecifier::from_file_path(script).map_err(|()| {
        StartError::Bootstrap(format!("{} is not an absolute path", script.display()))
    })
}
