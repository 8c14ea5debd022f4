//! Makes a generation: starts an isolate, prepares the extensions and loads them one after the other.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use js_runtime::{HostProcess, LoadError, LoadPhase, Runtime, RuntimeOptions, Stop};

use super::generation::Generation;
use super::load_error::{ABORTED_LOAD, LoadFailure};
use super::load_record::LoadRecord;
use super::plan::LoadPlan;
use super::quarantine::LoadedFiles;
use super::reports::IsolateEnd;
use super::shutdown;
use super::slow_load::SLOW_LOAD;
use crate::bridge::BridgeHost;
use crate::diagnostics::error_context::find_location;
use crate::lifecycle::{Extensions, LoadReport};
use crate::registry::{ExtensionId, ExtensionInfo, Registry};
use pi_agent::event::WaitOutcome;
use pi_resources::settings::ExtensionHost;

/// Time from the start of a load in which an abort may be meant for something else. Such an abort
/// ends the load only after [`LONG_LOAD`].
const LOAD_ABORT_GRACE: Duration = Duration::from_secs(1);
/// Time from the start of a load after which every abort ends it. Most loads take milliseconds.
const LONG_LOAD: Duration = Duration::from_secs(5);

/// One isolate in which all extensions of a plan are prepared or loaded.
pub(super) struct Attempt {
    host: Arc<BridgeHost>,
    /// `None` until the first extension needs it.
    runtime: Option<Arc<Runtime>>,
}

impl Attempt {
    /// Records why an extension is not loaded.
    fn fail(&self, index: usize, failure: LoadFailure) {
        self.host.registry.lock().extensions[index].error = Some(failure);
    }
}

/// The step that follows an attempt: its generation is installed, or another attempt is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AttemptStep {
    Install,
    /// The plan has changed. An isolate never forgets a module, so a new one is needed.
    TryAgain,
}

impl Extensions {
    /// Reads, resolves and compiles all extensions in a new isolate. An extension that fails and
    /// has a last good version is planned to be loaded from that.
    pub(super) async fn prepare(&self, plan: &mut LoadPlan) -> Attempt {
        let mut attempt = self.new_attempt(plan);
        while self.run_phase(&mut attempt, plan, LoadPhase::Prepare).await == AttemptStep::TryAgain
        {
            attempt = self.next_attempt(attempt, plan, LoadPhase::Prepare).await;
        }
        attempt
    }

    /// Loads all extensions without preparing them first.
    pub(super) async fn build(&self, plan: &mut LoadPlan) -> (Arc<Generation>, LoadReport) {
        let attempt = self.new_attempt(plan);
        self.load_in(attempt, plan).await
    }

    /// Loads all extensions, in new isolates until each is loaded in its new or last good version
    /// or is left out.
    pub(super) async fn load_in(
        &self,
        mut attempt: Attempt,
        plan: &mut LoadPlan,
    ) -> (Arc<Generation>, LoadReport) {
        while self.run_phase(&mut attempt, plan, LoadPhase::Run).await == AttemptStep::TryAgain {
            attempt = self.next_attempt(attempt, plan, LoadPhase::Run).await;
        }
        let Attempt { host, runtime } = attempt;
        let mut report = LoadReport::default();
        for (index, info) in host.registry.lock().extensions.iter_mut().enumerate() {
            let path = info.path.clone();
            match &mut info.error {
                None => match plan.kept_because(index) {
                    None => report.loaded.push(path),
                    Some(failure) => {
                        info.kept = Some(failure.clone());
                        report.kept.push((path, failure.clone()));
                    }
                },
                Some(error) => {
                    // The first failure says more than those that it caused.
                    if let Some(first) = plan.first_failure(index) {
                        tracing::warn!(
                            extension = path,
                            "no version of the extension loads; the last attempt: {error:?}"
                        );
                        error.clone_from(first);
                    }
                    report.failed.push((path, error.clone()));
                }
            }
        }
        host.report_unknown_apis();
        plan.imports.extend(host.imports());
        self.last_load.send_replace(Arc::new(LoadRecord {
            paths: plan.paths.clone(),
            imports: std::mem::take(&mut plan.imports),
        }));
        let timeouts = self.limits.lock().timeouts.clone();
        let generation = Generation::new(host, timeouts, runtime, self.shutdown_tasks.clone());
        (generation, report)
    }

    /// Makes an attempt without an isolate.
    fn new_attempt(&self, plan: &LoadPlan) -> Attempt {
        let infos = plan.paths.iter().map(|path| ExtensionInfo {
            path: path.path.to_string_lossy().into_owned(),
            source: path.source_info.clone(),
            error: None,
            kept: None,
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
        Attempt {
            host,
            runtime: None,
        }
    }

    /// Ends an attempt with everything that its extensions hold, and makes the next one.
    async fn next_attempt(&self, ended: Attempt, plan: &mut LoadPlan, phase: LoadPhase) -> Attempt {
        let next = self.new_attempt(plan);
        plan.imports.extend(ended.host.imports());
        // The user does not get the same warning twice.
        std::mem::swap(
            &mut *next.host.reported_warnings.lock(),
            &mut *ended.host.reported_warnings.lock(),
        );
        if phase == LoadPhase::Run
            && let Some(runtime) = ended.runtime
        {
            ended.host.begin_shutdown();
            ended.host.retire();
            let limit = self.limits.lock().timeouts.shutdown;
            shutdown::emit_exit_and_stop(runtime.clone(), ended.host, limit).await;
            runtime.wait_ended().await;
        }
        next
    }

    /// Prepares or loads all extensions of the plan in the isolate of the attempt. Failures change
    /// the plan.
    async fn run_phase(
        &self,
        attempt: &mut Attempt,
        plan: &mut LoadPlan,
        phase: LoadPhase,
    ) -> AttemptStep {
        let mut next = AttemptStep::Install;
        for index in 0..plan.paths.len() {
            let path = plan.path(index).to_owned();
            if !plan.is_kept(index)
                && let Some(reason) = self.quarantine.reason(&path)
            {
                attempt.fail(index, reason.into());
                continue;
            }
            let runtime = match self.runtime_of(attempt, plan) {
                Ok(runtime) => runtime,
                Err(error) => {
                    attempt.fail(index, error.into());
                    continue;
                }
            };
            let id = index as ExtensionId;
            attempt.host.enter(id, "load");
            let error = match self
                .load_one(&attempt.host, &runtime, id, &path, phase)
                .await
            {
                Ok(()) => continue,
                Err(LoadError::Stopped(stop)) => {
                    self.note_stop(&attempt.host, plan, index, stop);
                    return AttemptStep::TryAgain;
                }
                Err(error) => error,
            };
            if plan.can_keep(index) {
                // In quarantine this version is not tried again, so that no reload waits for it.
                if let LoadError::TimedOut(limit) = &error {
                    let why = format!("still loading after {} s", limit.as_secs_f64());
                    let loaded_files = LoadedFiles::for_extension(&attempt.host, id);
                    self.quarantine.add(&path, loaded_files, why);
                }
                plan.keep(index, error.into());
                next = AttemptStep::TryAgain;
            } else if phase == LoadPhase::Run {
                attempt.fail(index, error.into());
                let streams = attempt.host.discard(id);
                if !streams.is_empty() {
                    let streams = serde_json::json!(streams).to_string();
                    // An error means that the isolate is gone, and the streams with it.
                    let _ = runtime.call("forgetStreams", streams).await;
                }
            }
        }
        next
    }

    /// Plans what follows a stop of the isolate while the extension `index` was loaded: the last
    /// good version of the offender, or a load without it.
    fn note_stop(&self, host: &BridgeHost, plan: &mut LoadPlan, index: usize, stop: Stop) {
        // A timer of an extension that was loaded before may have been the cause.
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
        let reason = match stop {
            Stop::Requested => ABORTED_LOAD.to_owned(),
            stop => LoadError::Stopped(stop).to_string(),
        };
        let text = format!("{reason}{}", place.unwrap_or_default());
        let can_keep = plan.can_keep(index);
        // After an abort the next reload tries again.
        if stop != Stop::Requested || !can_keep {
            let loaded_files = LoadedFiles::for_extension(host, index as ExtensionId);
            let why = ending.to_string();
            self.quarantine.add(plan.path(index), loaded_files, why);
        }
        match can_keep {
            true => plan.keep(index, text.into()),
            false => plan.give_up(index, text.into()),
        }
    }

    /// Returns the isolate of the attempt, and starts it if there is none yet.
    fn runtime_of(&self, attempt: &mut Attempt, plan: &LoadPlan) -> Result<Arc<Runtime>, String> {
        if let Some(runtime) = &attempt.runtime {
            return Ok(runtime.clone());
        }
        // The process may have been killed while it started, without a fault of an extension.
        let started = self.start_isolate(&attempt.host, plan);
        let runtime = started.or_else(|_| self.start_isolate(&attempt.host, plan))?;
        attempt.runtime = Some(runtime.clone());
        Ok(runtime)
    }

    /// Prepares or loads one extension, until it has finished, its limit is over or the user aborts.
    async fn load_one(
        &self,
        host: &BridgeHost,
        runtime: &Runtime,
        id: ExtensionId,
        path: &Path,
        phase: LoadPhase,
    ) -> Result<(), LoadError> {
        let limit = self.limits.lock().timeouts.load;
        let mut is_aborted = false;
        // An abort replaces the token, so the load takes it before it begins.
        let early_cancel = self.wait_cancel.lock().clone();
        let aborted = async {
            tokio::time::sleep(LOAD_ABORT_GRACE).await;
            let cancel = self.wait_cancel.lock().clone();
            tokio::select! {
                () = cancel.cancelled() => {}
                () = async {
                    early_cancel.cancelled().await;
                    tokio::time::sleep(LONG_LOAD - LOAD_ABORT_GRACE).await;
                } => {}
            }
            is_aborted = true;
        };
        let mut wait = host.slow_notice(id, "load", limit);
        // Before the session exists the mode shows that pi starts.
        let is_replacing = self.actions.lock().is_some();
        if is_replacing {
            wait = wait.shown_after(SLOW_LOAD);
        }
        let _called = host.thread_usage.count_call(id);
        let started = Instant::now();
        let load = async {
            match phase {
                LoadPhase::Prepare => runtime.prepare(id, path, limit).await,
                LoadPhase::Run => runtime.load(id, path, limit).await,
            }
        };
        let loaded = tokio::select! {
            biased;
            loaded = wait.during(load) => loaded,
            () = aborted => Err(give_up_load(runtime).await),
            () = self.show_slow_load(path), if is_replacing => Err(LoadError::Gone),
        };
        if phase == LoadPhase::Run {
            host.add_load(id, started.elapsed());
        }
        wait.finish(match &loaded {
            Err(_) if is_aborted => WaitOutcome::Cancelled,
            Ok(()) | Err(LoadError::Failed { .. }) => WaitOutcome::Settled,
            Err(LoadError::TimedOut(_)) => WaitOutcome::Abandoned,
            Err(LoadError::Stopped(_) | LoadError::Gone) => WaitOutcome::Stopped,
        });
        loaded
    }

    /// Starts an isolate with the kept sources of the plan.
    fn start_isolate(
        &self,
        host: &Arc<BridgeHost>,
        plan: &LoadPlan,
    ) -> Result<Arc<Runtime>, String> {
        let wanted = (0..).zip(&plan.paths);
        let wanted = wanted.filter(|(id, path)| {
            !plan.is_kept(*id as usize) && self.quarantine.reason(&path.path).is_none()
        });
        let limits = self.limits.lock().clone();
        let process = match limits.host {
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
            max_heap: limits.max_heap,
            spin_limit: limits.timeouts.spin,
            label: self.label.lock().clone(),
            memory_cache: self.module_cache.clone(),
            entries: wanted.map(|(id, path)| (id, path.path.clone())).collect(),
            kept_sources: plan.kept_sources(),
            ..RuntimeOptions::default()
        };
        let runtime = Runtime::start(options, host.clone()).map_err(|error| error.to_string())?;
        host.set_imports(runtime.imports().clone());
        Ok(Arc::new(runtime))
    }
}

/// Ends a load that the user aborted, and returns its error. The isolate stops only if code runs: if
/// the load awaits something, the other extensions can be loaded in the isolate.
async fn give_up_load(runtime: &Runtime) -> LoadError {
    if runtime.busy_for().await.is_some() {
        runtime.stop(Stop::Requested);
        return LoadError::Stopped(Stop::Requested);
    }
    LoadError::Failed {
        message: ABORTED_LOAD.into(),
        stack: String::new(),
    }
}
