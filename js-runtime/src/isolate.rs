//! Puts together one isolate: deno_runtime's worker, our loader, limits, and the
//! functions of the bridge.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use deno_core::{JsRuntime, ModuleSpecifier, v8};
use deno_runtime::deno_fetch;
use deno_runtime::deno_fs::RealFs;
use deno_runtime::deno_io::Stdio;
use deno_runtime::deno_node::NODE_VERSION;
use deno_runtime::deno_permissions::PermissionsContainer;
use deno_runtime::permissions::RuntimePermissionDescriptorParser;
use deno_runtime::worker::{MainWorker, WorkerOptions, WorkerServiceOptions};
use deno_runtime::{BootstrapOptions, FeatureChecker, UNSTABLE_FEATURES};
use js_runtime_ext::{Host, Places, Stop, js_runtime};
use sys_traits::impls::RealSys;

use crate::cache::DiskCache;
use crate::calls;
use crate::certificates;
use crate::control::Control;
use crate::descriptors;
use crate::error::StartError;
use crate::guest::{Shared, WorkerHost};
use crate::inspector;
use crate::loader::ahead::work_ahead;
use crate::loader::{Disk, Loader, NodeServices};
use crate::memory;
use crate::options::RuntimeOptions;
use crate::stdio::{self, Readers};
use crate::web_worker::{Family, Workers};

pub(crate) struct Isolate {
    // Fields are dropped in this order: handles before the isolate they belong to,
    // and the readers' ends of the pipes after everybody who writes.
    pub functions: HashMap<String, v8::Global<v8::Function>>,
    pub worker: MainWorker,
    pub workers: Family,
    pub loader: Rc<Loader>,
    pub readers: Readers,
}

pub(crate) fn create(
    options: &RuntimeOptions,
    host: &Arc<dyn Host>,
) -> Result<(Isolate, Control), StartError> {
    descriptors::raise_limit();
    let cache = DiskCache::new(options.cache_dir.clone(), &options.version);
    let disk = Disk::with(options.kept.clone());
    let prepared = work_ahead(&cache, &disk, options.entries.clone());
    let (loader, node_services) = Loader::new(cache, disk, prepared);
    loader.begin_set(&options.entries);
    let (stdio, readers) = stdio::redirect(host).map_err(StartError::Stdio)?;
    let shared = Shared::default();
    let family = Family::default();
    let mut worker = main_worker(Parts {
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
            // The threads that read it end when everybody who writes is gone.
            stdio: |host| stdio::redirect(host).map(|(stdio, _readers)| stdio),
            family: family.clone(),
        },
        bootstrap: BootstrapOptions {
            args: options.args.clone(),
            ..bootstrap()
        },
        max_heap: Some(options.max_heap),
    });
    inspector::announce(&mut worker.js_runtime, &**host);
    let functions = take_functions(&mut worker.js_runtime).map_err(StartError::Bootstrap)?;
    let handle = worker.js_runtime.v8_isolate().thread_safe_handle();
    let control = Control::new(handle, host.clone()).map_err(StartError::Thread)?;
    memory::watch_external(
        worker.js_runtime.v8_isolate(),
        control.clone(),
        options.max_heap,
    );
    let limited = control.clone();
    worker
        .js_runtime
        .add_near_heap_limit_callback(memory::near_limit(move |_| limited.stop(Stop::OutOfMemory)));
    let isolate = Isolate {
        functions,
        worker,
        workers: family,
        loader,
        readers,
    };
    Ok((isolate, control))
}

/// What a main worker is put together from.
pub(crate) struct Parts {
    pub main_module: ModuleSpecifier,
    pub loader: Rc<Loader>,
    pub node_services: NodeServices,
    pub shared: Shared,
    pub host: Arc<dyn Host>,
    pub stdio: Stdio,
    pub workers: Workers,
    pub bootstrap: BootstrapOptions,
    /// Bytes
    pub max_heap: Option<usize>,
}

pub(crate) fn main_worker(parts: Parts) -> MainWorker {
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
            // See `cache_scripts`.
            v8_code_cache: None,
        },
        WorkerOptions {
            bootstrap: parts.bootstrap,
            create_params: parts.max_heap.map(memory::limited),
            create_web_worker_cb: parts.workers.into_callback(),
            extensions: vec![js_runtime::init(Some(parts.host))],
            startup_snapshot: Some(js_runtime_snapshot::SNAPSHOT),
            // The snapshot has them all.
            skip_op_registration: true,
            residual_lazy_js_sources: js_runtime_snapshot::RESIDUAL_LAZY_JS,
            residual_lazy_esm_sources: js_runtime_snapshot::RESIDUAL_LAZY_ESM,
            stdio: parts.stdio,
            unsafely_ignore_certificate_errors: certificates::unchecked(),
            ..Default::default()
        },
    );
    loader.cache_scripts(&worker.js_runtime);
    let places = Places::new(worker.js_runtime.source_mapper());
    worker.js_runtime.op_state().borrow_mut().put(places);
    take_many_headers(&worker.js_runtime);
    worker
}

/// `fetch` takes as many headers of a response as Node's HTTP does. hyper refuses more than
/// 100, which some proxies and gateways send.
pub(crate) fn take_many_headers(runtime: &JsRuntime) {
    const MOST_HEADERS: usize = 2000;
    let state = runtime.op_state();
    let mut state = state.borrow_mut();
    if let Some(options) = state.try_borrow_mut::<deno_fetch::Options>() {
        options.client_builder_hook = Some(|mut builder| {
            builder.http1_max_headers(MOST_HEADERS);
            builder
        });
    }
}

/// What is the same for every isolate.
pub(crate) fn bootstrap() -> BootstrapOptions {
    let major = NODE_VERSION.split('.').next().unwrap_or(NODE_VERSION);
    BootstrapOptions {
        // `navigator.userAgent`
        user_agent: format!("Node.js/{major}"),
        has_node_modules_dir: true,
        // Else deno_node rewrites the arguments of every child process that is this
        // program to those of the `deno` command.
        is_standalone: true,
        // Node has `Object.prototype.__proto__`, and packages use it.
        unstable_features: UNSTABLE_FEATURES
            .iter()
            .filter(|feature| feature.name == "unsafe-proto")
            .map(|feature| feature.id)
            .collect(),
        ..Default::default()
    }
}

/// deno_node derives `process.argv[1]` from it (see `js/node/process.ts`).
fn script_url(script: &Path) -> Result<ModuleSpecifier, StartError> {
    ModuleSpecifier::from_file_path(script).map_err(|()| {
        StartError::Bootstrap(format!("{} is not an absolute path", script.display()))
    })
}

/// For isolates that the program does not call into.
pub(crate) fn remove_bridge(runtime: &mut JsRuntime) {
    // It is there in every isolate of the snapshot.
    let functions = take_functions(runtime).unwrap_or_default();
    if let Some(become_guest) = functions.get("becomeGuest") {
        calls::call(runtime, become_guest, |_| Some(Vec::new()));
    }
}

/// The functions that the bridge left on the global object, by name.
fn take_functions(
    runtime: &mut JsRuntime,
) -> Result<HashMap<String, v8::Global<v8::Function>>, String> {
    let context = runtime.main_context();
    deno_core::scope!(scope, runtime);
    let global = v8::Local::new(scope, context).global(scope);
    let key = v8::String::new(scope, "__pi").ok_or("V8 has no memory for a string")?;
    let bridge = global
        .get(scope, key.into())
        .filter(|value| value.is_object())
        .and_then(|value| value.to_object(scope))
        .ok_or("the snapshot has no bridge")?;
    global.delete(scope, key.into());
    let names = bridge
        .get_own_property_names(scope, Default::default())
        .ok_or("the bridge has no names")?;
    let mut functions = HashMap::new();
    for index in 0..names.length() {
        let Some(name) = names.get_index(scope, index) else {
            continue;
        };
        let value = bridge.get(scope, name);
        if let Some(Ok(function)) = value.map(v8::Local::<v8::Function>::try_from) {
            functions.insert(
                name.to_rust_string_lossy(scope),
                v8::Global::new(scope, function),
            );
        }
    }
    Ok(functions)
}
