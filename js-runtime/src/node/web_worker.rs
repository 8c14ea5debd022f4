//! Creates workers of the web and of `node:worker_threads`: deno_runtime makes another isolate on
//! another thread, with our loader. A worker ends with the isolate that made it.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use deno_core::error::{CoreError, CoreErrorKind};
use deno_core::{ModuleSpecifier, v8};
use deno_error::JsErrorBox;
use deno_runtime::deno_fs::RealFs;
use deno_runtime::deno_inspector_server::MainInspectorSessionChannel;
use deno_runtime::deno_io::Stdio;
use deno_runtime::ops::worker_host::{CreateWebWorkerArgs, CreateWebWorkerCb, ResourceLimits};
use deno_runtime::web_worker::{
    SendableWebWorkerHandle, WebWorker, WebWorkerInternalHandle, WebWorkerOptions,
    WebWorkerServiceOptions, WorkerControlEvent, WorkerId,
};
use deno_runtime::{FeatureChecker, WorkerExecutionMode};
use js_runtime_ext::{Fault, Host, IS_HOST_PROCESS, js_runtime};
use pi_base::process_tree;

use crate::bridge::remove_bridge;
use crate::limits::memory;
use crate::loader::cache::DiskCache;
use crate::loader::{Disk, Loader, Prefetched};
use crate::node::bootstrap::{bootstrap, take_many_headers};
use crate::node::certificates;
use crate::node::plain_host::SharedStores;
use crate::options::RuntimeOptions;

/// Settings of all workers of a program.
pub(crate) struct Workers {
    pub options: RuntimeOptions,
    /// Values of `process.argv` after the script.
    pub args: Vec<String>,
    pub host: Arc<dyn Host>,
    pub shared: SharedStores,
    pub stdio: fn(&Arc<dyn Host>) -> std::io::Result<Stdio>,
    pub group: WorkerGroup,
}

/// All workers that an isolate and its workers have made. deno_runtime asks workers to end when
/// their maker is gone, but a worker that spins does not notice.
#[derive(Clone, Default)]
pub(crate) struct WorkerGroup(Arc<Mutex<GroupState>>);

#[derive(Default)]
struct GroupState {
    workers: HashMap<WorkerId, RunningWorker>,
    ended: bool,
}

struct RunningWorker {
    isolate: v8::IsolateHandle,
    thread: i32,
    /// Whether the children of the worker end with it. Children of a script outlive it, as in Node;
    /// those of an extension do not.
    ends_children: bool,
}

impl RunningWorker {
    fn end_children(&self) {
        if self.ends_children {
            process_tree::terminate(process_tree::started_by_thread(self.thread));
        }
    }
}

impl WorkerGroup {
    /// Adds a worker. Must be called on its thread.
    fn add(&self, id: WorkerId, isolate: v8::IsolateHandle, owns_process: bool) -> GroupMembership {
        let mut members = self.members();
        if members.ended {
            isolate.terminate_execution();
        }
        let member = RunningWorker {
            isolate,
            thread: process_tree::current_thread_id(),
            ends_children: !owns_process && !IS_HOST_PROCESS.load(Ordering::Relaxed),
        };
        members.workers.insert(id, member);
        GroupMembership {
            id,
            group: self.clone(),
        }
    }

    /// Terminates all workers; must be called when their maker is gone.
    pub fn end(&self) {
        let mut members = self.members();
        members.ended = true;
        for member in members.workers.values() {
            member.isolate.terminate_execution();
            // The worker may wait for a child.
            member.end_children();
        }
    }

    fn members(&self) -> std::sync::MutexGuard<'_, GroupState> {
        // No code panics while it holds the lock; the data is consistent in any case.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the worker from its group when its isolate is dropped on its thread.
struct GroupMembership {
    id: WorkerId,
    group: WorkerGroup,
}

impl Drop for GroupMembership {
    fn drop(&mut self) {
        let member = self.group.members().workers.remove(&self.id);
        if let Some(member) = member {
            member.end_children();
        }
    }
}

impl Workers {
    pub fn into_callback(self) -> Arc<CreateWebWorkerCb> {
        Arc::new(Arc::new(self).maker())
    }

    /// Returns the function that makes a worker. Workers make workers with it, too.
    fn maker(
        self: Arc<Self>,
    ) -> impl Fn(CreateWebWorkerArgs) -> (WebWorker, SendableWebWorkerHandle) {
        move |args| self.create(args)
    }

    fn create(self: &Arc<Self>, args: CreateWebWorkerArgs) -> (WebWorker, SendableWebWorkerHandle) {
        let cache = DiskCache::new(self.options.cache_dir.clone(), &self.options.version);
        let (loader, node_services) = Loader::new(cache, Disk::default(), Prefetched::default());
        // A panic ends the new thread only; `new Worker` throws.
        let stdio = (self.stdio)(&self.host).expect("there are file descriptors left");
        let (mut worker, handle) = WebWorker::bootstrap_from_options(
            WebWorkerServiceOptions {
                blob_store: self.shared.blobs.clone(),
                broadcast_channel: self.shared.broadcast.clone(),
                bundle_provider: None,
                compiled_wasm_module_store: Some(self.shared.wasm.clone()),
                deno_rt_native_addon_loader: None,
                feature_checker: Arc::new(FeatureChecker::default()),
                fs: Arc::new(RealFs),
                main_inspector_session_tx: MainInspectorSessionChannel::new(),
                module_loader: loader,
                node_services: Some(node_services),
                npm_process_state_provider: None,
                permissions: args.permissions,
                root_cert_store_provider: Some(certificates::roots()),
                shared_array_buffer_store: Some(self.shared.array_buffers.clone()),
            },
            WebWorkerOptions {
                name: args.name,
                main_module: args.main_module.clone(),
                worker_id: args.worker_id,
                bootstrap: deno_runtime::BootstrapOptions {
                    args: self.args.clone(),
                    location: Some(args.main_module),
                    mode: WorkerExecutionMode::Worker,
                    close_on_idle: args.close_on_idle,
                    ..bootstrap()
                },
                extensions: vec![js_runtime::init(Some(self.host.clone()))],
                startup_snapshot: Some(js_runtime_snapshot::SNAPSHOT),
                residual_lazy_js_sources: js_runtime_snapshot::RESIDUAL_LAZY_JS,
                residual_lazy_esm_sources: js_runtime_snapshot::RESIDUAL_LAZY_ESM,
                unsafely_ignore_certificate_errors: certificates::unchecked(),
                create_params: Some(self.heap(args.resource_limits.as_ref())),
                seed: None,
                create_web_worker_cb: Arc::new(self.clone().maker()),
                format_js_error_fn: None,
                worker_type: args.worker_type,
                cache_storage_dir: None,
                stdio,
                trace_ops: None,
                close_on_idle: args.close_on_idle,
                maybe_worker_metadata: args.maybe_worker_metadata,
                maybe_main_module_blob: args.maybe_main_module_blob,
                maybe_coverage_dir: None,
                maybe_cpu_prof_config: None,
                enable_raw_imports: false,
                enable_stack_trace_arg_in_ops: false,
                wait_for_debugger_on_start: false,
                wait_for_page_wait_for_debugger: false,
            },
        );
        remove_bridge(&mut worker.js_runtime);
        take_many_headers(&worker.js_runtime);
        let isolate = worker.js_runtime.v8_isolate().thread_safe_handle();
        let owns_process = self.host.owns_process();
        let membership = (self.group).add(args.worker_id, isolate.clone(), owns_process);
        worker.js_runtime.op_state().borrow_mut().put(membership);
        let (host, script) = (self.host.clone(), path(&worker.main_module));
        let oom_triggered = worker.oom_triggered.clone();
        let is_requested = requested_heap(args.resource_limits.as_ref()).is_some();
        let mut own = worker
            .js_runtime
            .op_state()
            .borrow()
            .borrow::<WebWorkerInternalHandle>()
            .clone();
        worker
            .js_runtime
            .add_near_heap_limit_callback(memory::near_heap_limit(move |limit| {
                if !oom_triggered.swap(true, Ordering::SeqCst) {
                    // A limit that the maker set is reported to the maker.
                    if !is_requested {
                        host.fault(Fault::from_runtime(format!(
                            "the worker {script} was stopped: it used more than {} MB of memory",
                            limit >> 20
                        )));
                    }
                    // deno_runtime reports this itself only while a module is evaluated. An error
                    // would mean that the maker of the worker is gone.
                    _ = own.post_event(WorkerControlEvent::TerminalError(out_of_memory(), 1));
                    own.terminate();
                }
                isolate.terminate_execution();
            }));
        (worker, handle)
    }

    fn heap(&self, limits: Option<&ResourceLimits>) -> v8::CreateParams {
        let bytes = match requested_heap(limits) {
            Some(megabytes) => megabytes.saturating_mul(1 << 20).min(self.options.max_heap),
            None => self.options.max_heap,
        };
        memory::create_params(bytes)
    }
}

/// Returns the heap limit that the maker set, in megabytes.
fn requested_heap(limits: Option<&ResourceLimits>) -> Option<usize> {
    let requested = limits.and_then(|limits| limits.max_old_generation_size_mb);
    requested.filter(|megabytes| *megabytes > 0)
}

/// Returns Node's error.
fn out_of_memory() -> CoreError {
    let text = "Worker terminated due to reaching memory limit: JS heap out of memory";
    CoreErrorKind::JsBox(JsErrorBox::new("ERR_WORKER_OUT_OF_MEMORY", text)).into_box()
}

fn path(module: &ModuleSpecifier) -> String {
    let url = module.as_str();
    url.strip_prefix("file://").unwrap_or(url).to_string()
}
