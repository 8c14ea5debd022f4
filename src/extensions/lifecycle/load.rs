//! Makes a generation: starts an isolate and loads the extensions one after the other.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use js_runtime::{HostProcess, LoadError, Runtime, RuntimeOptions, Stop};

use super::generation::Generation;
use super::load_error::LoadFailure;
use super::load_record::LoadRecord;
use super::quarantine::LoadedFiles;
use super::reports::IsolateEnd;
use crate::bridge::BridgeHost;
use crate::diagnostics::error_context::find_location;
use crate::lifecycle::{Extensions, LoadReport};
use crate::registry::{ExtensionId, ExtensionInfo, Registry};
use pi_agent::event::WaitOutcome;
use pi_resources::discovery::extensions::ExtensionPath;
use pi_resources::settings::ExtensionHost;

/// Most loads take milliseconds. An abort within [`LOAD_ABORT_GRACE`] may be meant for something
/// else, and gives up only a load that takes longer than [`LONG_LOAD`].
const LOAD_ABORT_GRACE: Duration = Duration::from_secs(1);
const LONG_LOAD: Duration = Duration::from_secs(5);

/// The isolate stopped while this extension was loaded.
struct FatalLoad {
    index: usize,
    why: String,
}

impl Extensions {
    pub(super) async fn build(&self, paths: &[ExtensionPath]) -> (Arc<Generation>, LoadReport) {
        let mut report = LoadReport::default();
        let mut imports = Vec::new();
        // An extension that stops the isolate during its load is left out of the next
        // attempt.
        loop {
            let infos = paths.iter().map(|path| ExtensionInfo {
                path: path.path.to_string_lossy().into_owned(),
                source: path.source_info.clone(),
                error: None,
            });
            let number = self.generations.fetch_add(1, Ordering::Relaxed);
            let host = BridgeHost::new(
                number,
                Registry::new(infos.collect()),
                self.ui.clone(),
                self.flags.clone(),
                self.config.models.clone(),
                self.reports.clone(),
                self.config.console.clone(),
            );
            let loaded = self.load_into(&host, paths).await;
            imports.extend(host.imports());
            let runtime = match loaded {
                Ok(runtime) => runtime,
                Err(FatalLoad { index, why }) => {
                    let loaded_files = LoadedFiles::for_extension(&host, index as ExtensionId);
                    self.quarantine.add(&paths[index].path, loaded_files, why);
                    let info = &host.registry.lock().extensions[index];
                    let reason = info.error.clone().unwrap_or_default();
                    report.failed.push((info.path.clone(), reason));
                    continue;
                }
            };
            for info in &mut host.registry.lock().extensions {
                let Some(error) = &mut info.error else {
                    report.loaded.push(info.path.clone());
                    continue;
                };
                // The first failure says more than the quarantine it caused.
                match report.failed.iter().find(|(path, _)| *path == info.path) {
                    Some((_, first)) => error.clone_from(first),
                    None => report.failed.push((info.path.clone(), error.clone())),
                }
            }
            host.report_unknown_apis();
            let paths = paths.to_vec();
            self.last_load
                .send_replace(Arc::new(LoadRecord { paths, imports }));
            let limits = self.allowance.lock().limits.clone();
            return (
                Generation::new(host, limits, runtime, self.shutdown_tasks.clone()),
                report,
            );
        }
    }

    async fn load_into(
        &self,
        host: &Arc<BridgeHost>,
        paths: &[ExtensionPath],
    ) -> Result<Option<Arc<Runtime>>, FatalLoad> {
        let fail = |index: usize, error: LoadFailure| {
            host.registry.lock().extensions[index].error = Some(error);
        };
        let mut runtime = None;
        for (index, path) in paths.iter().enumerate() {
            if let Some(reason) = self.quarantine.reason(&path.path) {
                fail(index, reason.into());
                continue;
            }
            if runtime.is_none() {
                // The process may have been killed while it started, without a fault of an
                // extension.
                let started = self.start_isolate(host, paths);
                match started.or_else(|_| self.start_isolate(host, paths)) {
                    Ok(started) => runtime = Some(started),
                    Err(error) => {
                        fail(index, error.into());
                        continue;
                    }
                }
            }
            let Some(runtime) = &runtime else { continue };
            let id = index as ExtensionId;
            host.enter(id, "load");
            match self.load_one(host, runtime, id, &path.path).await {
                Ok(()) => {}
                Err(error @ LoadError::Stopped(stop)) => {
                    // A timer of an extension that was loaded before may have been the
                    // cause.
                    let attribution = host.current().extension as usize;
                    let index = match stop {
                        Stop::Requested => index,
                        _ => attribution.min(index),
                    };
                    let ending = host.isolate_end().unwrap_or(IsolateEnd {
                        reason: stop,
                        stack: String::new(),
                    });
                    let place = find_location(&ending.stack);
                    let place = place.map(|place| format!(" ({place})"));
                    let text = format!("{error}{}", place.unwrap_or_default());
                    fail(index, text.into());
                    let why = ending.to_string();
                    return Err(FatalLoad { index, why });
                }
                Err(error) => {
                    fail(index, error.into());
                    let streams = host.discard(id);
                    if !streams.is_empty() {
                        let streams = serde_json::json!(streams).to_string();
                        // An error means that the isolate is gone, and the streams with it.
                        let _ = runtime.call("forgetStreams", streams).await;
                    }
                }
            }
        }
        Ok(runtime)
    }

    async fn load_one(
        &self,
        host: &BridgeHost,
        runtime: &Runtime,
        id: ExtensionId,
        path: &Path,
    ) -> Result<(), LoadError> {
        let limit = self.allowance.lock().limits.load;
        let mut is_patient = true;
        let aborted = async {
            let early = self.wait_cancel.lock().clone();
            tokio::time::sleep(LOAD_ABORT_GRACE).await;
            let patience = self.wait_cancel.lock().clone();
            tokio::select! {
                () = patience.cancelled() => {}
                () = async {
                    early.cancelled().await;
                    tokio::time::sleep(LONG_LOAD - LOAD_ABORT_GRACE).await;
                } => {}
            }
            is_patient = false;
        };
        let mut wait = host.slow_notice(id, "load", limit);
        let _called = host.thread_usage.count_call(id);
        let started = Instant::now();
        let loaded = tokio::select! {
            biased;
            loaded = wait.during(runtime.load(id, path, limit)) => loaded,
            () = aborted => Err(give_up_load(runtime).await),
        };
        host.add_load(id, started.elapsed());
        wait.finish(match &loaded {
            Err(_) if !is_patient => WaitOutcome::Cancelled,
            Ok(()) | Err(LoadError::Failed { .. }) => WaitOutcome::Settled,
            Err(LoadError::TimedOut(_)) => WaitOutcome::Abandoned,
            Err(LoadError::Stopped(_) | LoadError::Gone) => WaitOutcome::Stopped,
        });
        loaded
    }

    fn start_isolate(
        &self,
        host: &Arc<BridgeHost>,
        paths: &[ExtensionPath],
    ) -> Result<Arc<Runtime>, String> {
        let wanted = (0..).zip(paths);
        let wanted = wanted.filter(|(_, path)| self.quarantine.reason(&path.path).is_none());
        let allowance = self.allowance.lock().clone();
        let process = match allowance.place {
            ExtensionHost::Thread => None,
            ExtensionHost::Process => {
                let program = HostProcess::this_program();
                let program = program.map_err(|error| format!("cannot find pi itself: {error}"));
                Some(program?)
            }
        };
        let words = js_runtime::arguments();
        let options = RuntimeOptions {
            process,
            // Extensions read the arguments of pi there.
            args: words
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            one_way: ["enter", "tool.started"].map(str::to_string).into(),
            cache_dir: self.config.cache_dir.clone(),
            max_heap: allowance.max_heap,
            spin_limit: allowance.limits.spin,
            label: self.label.lock().clone(),
            memory_cache: self.module_cache.clone(),
            entries: wanted.map(|(id, path)| (id, path.path.clone())).collect(),
            ..RuntimeOptions::default()
        };
        let runtime = Runtime::start(options, host.clone()).map_err(|error| error.to_string())?;
        host.set_imports(runtime.imports().clone());
        Ok(Arc::new(runtime))
    }
}

/// Gives up a load that the user aborted. If it only awaits something, the other extensions
/// can be loaded meanwhile.
async fn give_up_load(runtime: &Runtime) -> LoadError {
    if runtime.busy_for().await.is_some() {
        runtime.stop(Stop::Requested);
        return LoadError::Stopped(Stop::Requested);
    }
    LoadError::Failed {
        message: "it was still loading when the user had waited long enough".into(),
        stack: String::new(),
    }
}
