//! `new Worker()`, of the web and of `node:worker_threads`: one more isolate on one
//! more thread, which deno_runtime makes, with our loader. It ends with the isolate
//! that made it.

use pi_base::process_tree;
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

use crate::cache::DiskCache;
use crate::certificates;
use crate::guest::Shared;
use crate::loader::{Disk, Loader, Prepared};
use crate::memory;
use crate::options::RuntimeOptions;
use crate::worker::{bootstrap, remove_bridge, take_many_headers};

/// What all workers of a program are made of.
pub(crate) struct Workers {
    pub options: RuntimeOptions,
    /// `process.argv` after the script.
    pub args: Vec<String>,
    pub host: Arc<dyn Host>,
    pub shared: Shared,
    pub stdio: fn(&Arc<dyn Host>) -> std::io::Result<Stdio>,
    pub family: Family,
}

/// All workers that an isolate and its workers have made. deno_runtime asks them to
/// end when their maker is gone; one that spins does not hear it.
#[derive(Clone, Default)]
pub(crate) struct Family(Arc<Mutex<Members>>);

#[derive(Default)]
struct Members {
    workers: HashMap<WorkerId, Member>,
    ended: bool,
}

struct Member {
    isolate: v8::IsolateHandle,
    thread: i32,
    /// What a script has started outlives it, as in Node; what an extension has does not.
    ends_children: bool,
}

impl Member {
    fn end_children(&self) {
        if self.ends_children {
            process_tree::terminate(process_tree::started_by_thread(self.thread));
        }
    }
}

impl Family {
    /// On the thread of the worker.
    fn join(&self, id: WorkerId, isolate: v8::IsolateHandle, owns_process: bool) -> Membership {
        let mut members = self.members();
        if members.ended {
            isolate.terminate_execution();
        }
        let member = Member {
            isolate,
            thread: process_tree::current_thread_id(),
            ends_children: !owns_process && !IS_HOST_PROCESS.load(Ordering::Relaxed),
        };
        members.workers.insert(id, member);
        Membership {
            id,
            family: self.clone(),
        }
    }

    /// Interrupts what they do; call it when their maker is gone.
    pub fn end(&self) {
        let mut members = self.members();
        members.ended = true;
        for member in members.workers.values() {
            member.isolate.terminate_execution();
            // It may wait for one of them.
            member.end_children();
        }
    }

    fn members(&self) -> std::sync::MutexGuard<'_, Members> {
        // Nothing panics while it holds the lock; the data is whole in any case.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lives in a worker's isolate, and goes with it on its thread.
struct Membership {
    id: WorkerId,
    family: Family,
}

impl Drop for Membership {
    fn drop(&mut self) {
        let member = self.family.members().workers.remove(&self.id);
        if let Some(member) = member {
            member.end_children();
        }
    }
}

impl Workers {
    pub fn into_callback(self) -> Arc<CreateWebWorkerCb> {
        Arc::new(Arc::new(self).maker())
    }

    /// A worker makes workers in the same way.
    fn maker(
        self: Arc<Self>,
    ) -> impl Fn(CreateWebWorkerArgs) -> (WebWorker, SendableWebWorkerHandle) {
        move |args| self.create(args)
    }

    fn create(self: &Arc<Self>, args: CreateWebWorkerArgs) -> (WebWorker, SendableWebWorkerHandle) {
        let cache = DiskCache::new(self.options.cache_dir.clone(), &self.options.version);
        let (loader, node_services) = Loader::new(cache, Disk::default(), Prepared::default());
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
        let membership = (self.family).join(args.worker_id, isolate.clone(), owns_process);
        worker.js_runtime.op_state().borrow_mut().put(membership);
        let (host, script) = (self.host.clone(), path(&worker.main_module));
        let too_much = worker.oom_triggered.clone();
        let is_asked = asked_heap(args.resource_limits.as_ref()).is_some();
        let mut own = worker
            .js_runtime
            .op_state()
            .borrow()
            .borrow::<WebWorkerInternalHandle>()
            .clone();
        worker
            .js_runtime
            .add_near_heap_limit_callback(memory::near_limit(move |limit| {
                if !too_much.swap(true, Ordering::SeqCst) {
                    // A limit that was asked for is told to the worker's maker.
                    if !is_asked {
                        host.fault(Fault::of_the_runtime(format!(
                            "the worker {script} was stopped: it used more than {} MB of memory",
                            limit >> 20
                        )));
                    }
                    // deno_runtime says so itself only while a module is evaluated. An
                    // error would mean that the maker of the worker is gone.
                    _ = own.post_event(WorkerControlEvent::TerminalError(out_of_memory(), 1));
                    own.terminate();
                }
                isolate.terminate_execution();
            }));
        (worker, handle)
    }

    fn heap(&self, limits: Option<&ResourceLimits>) -> v8::CreateParams {
        let bytes = match asked_heap(limits) {
            Some(megabytes) => megabytes.saturating_mul(1 << 20).min(self.options.max_heap),
            None => self.options.max_heap,
        };
        memory::limited(bytes)
    }
}

/// In megabytes.
fn asked_heap(limits: Option<&ResourceLimits>) -> Option<usize> {
    let asked = limits.and_then(|limits| limits.max_old_generation_size_mb);
    asked.filter(|megabytes| *megabytes > 0)
}

/// As Node says it.
fn out_of_memory() -> CoreError {
    let text = "Worker terminated due to reaching memory limit: JS heap out of memory";
    CoreErrorKind::JsBox(JsErrorBox::new("ERR_WORKER_OUT_OF_MEMORY", text)).into_box()
}

fn path(module: &ModuleSpecifier) -> String {
    let url = module.as_str();
    url.strip_prefix("file://").unwrap_or(url).to_string()
}
