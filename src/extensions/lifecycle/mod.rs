//! All extensions of a session: loads them, replaces a generation by a newer one, and
//! reloads without an extension that stopped the isolate.

pub mod debugger;
mod deliver;
pub mod generation;
mod load;
pub mod load_error;
pub mod load_record;
mod plan;
mod quarantine;
mod recover;
pub mod reports;
mod shutdown;
mod slow_load;
pub mod stale_calls;
mod stats;
mod teardown;
mod user_calls;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use js_runtime::{MemoryCache, Sources, release_unused_memory_soon};
use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::load_record::LoadRecord;
use self::quarantine::Quarantine;
pub use self::stats::Statistics;
use super::api::session_api::SessionApi;
use super::api::ui::DialogBroker;
use super::bridge::BridgeHost;
use super::child::ChildHooks;
use super::config::{ExtensionsConfig, GenerationLimits};
use super::diagnostics::error_context::explain;
use super::lifecycle::generation::{CallFailure, Generation};
use super::lifecycle::load::Attempt;
use super::lifecycle::load_error::LoadFailure;
use super::lifecycle::plan::LoadPlan;
use super::lifecycle::reports::{RateLimiter, Reports, Stops};
use super::registry::tool::ExtensionTool;
use super::registry::{ExtensionId, ExtensionInfo, InvokableCommand, Registry};
use pi_agent::event::{Event, ExtensionError, UiAnswer, UiMethod};
use pi_resources::discovery::extensions::ExtensionPath;
use pi_resources::settings::Settings;
use pi_tools::tool::Tool;

/// Capacity of the channel of reports.
const REPORT_CAPACITY: usize = 1024;

/// Result of a load, for the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Paths of extensions that were loaded from their files.
    pub loaded: Vec<String>,
    /// Extensions by path whose last good version was loaded, with the reason why their files do not
    /// load.
    pub kept: Vec<(String, LoadFailure)>,
    /// Paths of extensions that ran before the reload and no longer exist.
    pub gone: Vec<String>,
    /// Extensions by path that are not loaded at all, with the reason.
    pub failed: Vec<(String, LoadFailure)>,
}

pub struct Extensions {
    config: ExtensionsConfig,
    /// Limits of generations that are loaded from now on.
    limits: Mutex<GenerationLimits>,
    /// Cancelled when the user aborts a wait for a load or for handlers of a shutdown.
    wait_cancel: Mutex<CancellationToken>,
    current: RwLock<Arc<Generation>>,
    actions: Mutex<Option<Weak<dyn SessionApi>>>,
    ui: Arc<DialogBroker>,
    /// Values of flags from the command line.
    flags: Arc<Mutex<HashMap<String, Value>>>,
    /// Name of the isolate in debuggers.
    label: Mutex<String>,
    /// Module sources that were read for earlier isolates.
    module_cache: MemoryCache,
    /// Extensions that the current generation was loaded from.
    paths: Mutex<Vec<ExtensionPath>>,
    /// The last load.
    last_load: watch::Sender<Arc<LoadRecord>>,
    /// Extensions that stopped an isolate.
    quarantine: Quarantine,
    /// Sources of the extensions of the generation before the current one, by path.
    last_good: Mutex<HashMap<PathBuf, Sources>>,
    generations: AtomicU32,
    reports: Reports,
    /// Notified when another generation is current, or has handled `session_start`.
    pub(super) installed: Arc<Notify>,
    /// The generation that handles `session_start` after a recovery.
    session_starting: Mutex<Option<u32>>,
    /// Held while one generation replaces another.
    replace_lock: tokio::sync::Mutex<()>,
    /// Whether the current generation has been closed and the next one is being loaded.
    replacing: AtomicBool,
    /// Replaced generations that [`Self::release_replaced`] has not released yet.
    replaced: Mutex<Vec<Arc<Generation>>>,
    /// Released generations that still have open stale calls.
    released: Mutex<Vec<Weak<Generation>>>,
    /// Shutdowns without a caller that waits.
    shutdown_tasks: TaskTracker,
    /// Receives slow notices, also before [`Self::bind`].
    listener: Mutex<Option<Weak<dyn SessionApi>>>,
    /// Errors that are not shown yet, because they were reported before [`Self::bind`]. Locked
    /// while errors are shown, which keeps their order.
    waiting_errors: tokio::sync::Mutex<Vec<ExtensionError>>,
    /// Set when the session ends; an isolate that stops from then on is not replaced.
    closing: AtomicBool,
    /// Runs tasks on the threads of pi.
    handle: tokio::runtime::Handle,
    /// Functions of the parent, if this is a child session.
    child_hooks: OnceLock<Arc<ChildHooks>>,
}

impl Extensions {
    /// Creates an empty set. No isolate starts before [`Self::load`].
    pub fn new(config: ExtensionsConfig) -> Arc<Self> {
        let (events, received) = mpsc::channel(REPORT_CAPACITY);
        let stops = Arc::<Stops>::default();
        let reports = Reports {
            events,
            delivery: Arc::default(),
            stops: stops.clone(),
            counters: Arc::default(),
        };
        let ui = Arc::<DialogBroker>::default();
        let flags = Arc::<Mutex<HashMap<String, Value>>>::default();
        let host = BridgeHost::new(
            0,
            Registry::default(),
            ui.clone(),
            flags.clone(),
            config.models.clone(),
            reports.clone(),
            config.console.clone(),
        );
        let shutdown_tasks = TaskTracker::new();
        let this = Arc::new(Self {
            current: RwLock::new(Generation::new(
                host,
                config.limits.timeouts.clone(),
                None,
                shutdown_tasks.clone(),
            )),
            limits: Mutex::new(config.limits.clone()),
            wait_cancel: Mutex::default(),
            config,
            actions: Mutex::default(),
            ui,
            flags,
            label: Mutex::default(),
            module_cache: MemoryCache::default(),
            paths: Mutex::default(),
            last_load: watch::Sender::default(),
            quarantine: Quarantine::default(),
            last_good: Mutex::default(),
            generations: AtomicU32::new(1),
            reports,
            installed: Arc::default(),
            session_starting: Mutex::default(),
            replace_lock: tokio::sync::Mutex::default(),
            replacing: AtomicBool::new(false),
            replaced: Mutex::default(),
            released: Mutex::default(),
            shutdown_tasks,
            listener: Mutex::default(),
            waiting_errors: tokio::sync::Mutex::default(),
            closing: AtomicBool::new(false),
            handle: tokio::runtime::Handle::current(),
            child_hooks: OnceLock::new(),
        });
        tokio::spawn(forward_reports(Arc::downgrade(&this), received, stops));
        this
    }

    /// Connects the session: extensions may act, and their reports are shown.
    pub fn bind(&self, actions: Weak<dyn SessionApi>) {
        self.current().host.bind(actions.clone());
        *self.actions.lock() = Some(actions);
    }

    /// Sets the receiver of slow notices during the first load, before [`Self::bind`].
    pub fn set_wait_listener(&self, listener: Weak<dyn SessionApi>) {
        *self.listener.lock() = Some(listener);
    }

    /// Takes the errors that were reported before [`Self::bind`], instead of showing them.
    pub async fn take_waiting_errors(&self) -> Vec<ExtensionError> {
        self.current().host.wait_shown().await;
        std::mem::take(&mut *self.waiting_errors.lock().await)
    }

    /// Shows the errors that were reported before [`Self::bind`].
    pub async fn show_waiting_errors(&self) {
        self.show_errors(&mut *self.waiting_errors.lock().await)
            .await;
    }

    /// Names the session of later isolates for debuggers.
    pub fn name_session(&self, id: &str, cwd: &Path) {
        *self.label.lock() = format!("pi, session {id} in {}", cwd.display());
    }

    pub fn set_flag(&self, name: &str, value: Value) {
        self.flags.lock().insert(name.to_string(), value);
    }

    pub fn flags(&self) -> Vec<super::registry::FlagRegistration> {
        self.current().host.registry.lock().flags().to_vec()
    }

    pub(super) fn with_registry<T>(&self, read: impl FnOnce(&Registry) -> T) -> T {
        read(&self.current().host.registry.lock())
    }

    pub(super) fn current(&self) -> Arc<Generation> {
        self.current.read().clone()
    }

    fn actions(&self) -> Option<Arc<dyn SessionApi>> {
        self.actions.lock().as_ref().and_then(Weak::upgrade)
    }

    /// Loads extensions for the first time. Those that fail are reported and left out.
    pub async fn load(&self, paths: Vec<ExtensionPath>) -> LoadReport {
        let _replacing = self.replace_lock.lock().await;
        let mut plan = LoadPlan::new(paths);
        let (generation, report) = self.build(&mut plan).await;
        *self.paths.lock() = plan.paths;
        self.install(generation);
        report
    }

    /// Loads all extensions again, in this order: the new ones are prepared while the current
    /// generation serves; that one gets `session_shutdown`, as in [`Self::shut_down`], and is
    /// closed; the new ones are loaded. An extension whose files do not load is loaded in its last
    /// good version. The caller calls [`Self::release_replaced`] afterwards.
    pub async fn reload(&self, paths: Vec<ExtensionPath>) -> LoadReport {
        // If an extension has just stopped the isolate, the recovery reports and
        // quarantines it first.
        let cancel = self.wait_cancel.lock().clone();
        self.wait_ready(&cancel).await;
        let _replacing = self.replace_lock.lock().await;
        self.quarantine.release_changed();
        let old = self.current();
        let mut plan = self.plan(paths, &old, None).await;
        let prepared = self.prepare(&mut plan).await;
        self.emit_shutdown(&old, "reload", None).await;
        let replacing = Replacing::begin(self);
        self.close(&old).await;
        self.replace(replacing, old, prepared, plan).await
    }

    /// Takes over changed settings, for generations that are loaded from now on.
    pub fn set_limits(&self, settings: &Settings) {
        *self.limits.lock() = GenerationLimits::new(settings);
    }

    /// Aborts waits for extensions. A load that takes long is given up and the next one
    /// starts. Handlers of a shutdown, of earlier events and of later events of `run` are
    /// called with a short limit.
    pub fn abort(&self, run: Option<u64>) {
        std::mem::take(&mut *self.wait_cancel.lock()).cancel();
        self.current().event_queue.abort(run);
    }

    /// Releases an extension from quarantine by name; the next load includes it.
    pub fn release(&self, name: &str) -> Result<(), String> {
        self.quarantine.release(name)
    }

    /// Loads all extensions for another session. The old generation has had its
    /// `session_shutdown`: it is closed while the new extensions are prepared, which runs none of
    /// their code.
    pub async fn restart(&self, paths: Vec<ExtensionPath>) -> LoadReport {
        let _replacing = self.replace_lock.lock().await;
        self.quarantine.release_changed();
        let old = self.current();
        let mut plan = self.plan(paths, &old, None).await;
        let replacing = Replacing::begin(self);
        let (prepared, ()) = tokio::join!(self.prepare(&mut plan), self.close(&old));
        self.replace(replacing, old, prepared, plan).await
    }

    /// Loads the prepared extensions and installs them. The old generation is closed, but may
    /// finish open calls, such as the command that asked for the reload.
    async fn replace(
        &self,
        replacing: Replacing<'_>,
        old: Arc<Generation>,
        prepared: Attempt,
        mut plan: LoadPlan,
    ) -> LoadReport {
        let (generation, mut report) = self.load_in(prepared, &mut plan).await;
        let requested: HashSet<String> = (plan.paths.iter())
            .map(|path| path.path.to_string_lossy().into_owned())
            .collect();
        let gone = loaded_paths(&old).into_iter();
        report.gone = gone.filter(|path| !requested.contains(path)).collect();
        report.gone.sort_unstable();
        *self.paths.lock() = plan.paths;
        self.clear_ui();
        self.install(generation);
        drop(replacing);
        self.replaced.lock().push(old);
        report
    }

    /// Returns whether the current generation is closed and the next one is being loaded.
    fn is_replacing(&self) -> bool {
        self.replacing.load(Ordering::Relaxed)
    }

    /// Clears UI elements of the old generation before the new one shows its own.
    fn clear_ui(&self) {
        if let Some(actions) = self.actions() {
            actions.clear_ui();
        }
    }

    /// Ends replaced generations once their stale calls are over, or their shutdown limit
    /// has passed. Called after `session_start` of the new generation.
    pub fn release_replaced(&self) {
        for old in self.replaced.lock().drain(..) {
            let (limit, host) = (old.timeouts.shutdown, old.host.clone());
            // Only open stale calls keep the generation alive.
            let old = Arc::downgrade(&old);
            let mut released = self.released.lock();
            released.retain(|old| old.strong_count() > 0);
            released.push(old.clone());
            tokio::spawn(async move {
                host.stale_calls.wait_ended(limit).await;
                if let Some(old) = old.upgrade() {
                    for error in old.end(0).await {
                        host.emit(Event::ExtensionError(error));
                    }
                    old.wait_ended().await;
                }
                release_unused_memory_soon();
            });
        }
    }

    fn install(&self, generation: Arc<Generation>) -> Arc<Generation> {
        if let Some(actions) = &*self.actions.lock() {
            generation.host.bind(actions.clone());
        }
        let registered = &generation.host.provider_registrations.registered;
        self.config
            .models
            .set_extension_providers(registered.clone());
        generation
            .host
            .provider_registrations
            .installed
            .notify_waiters();
        let old = std::mem::replace(&mut *self.current.write(), generation);
        self.installed.notify_waiters();
        old
    }

    /// Fires the abort signals of a run.
    pub async fn abort_run(&self, run: u64) {
        // An error means that no isolate is left that could hold the signal.
        let _ = self.current().call("abortRun", &run).await;
    }

    /// Returns the providers that could not be registered during the load: file of the
    /// extension and reason.
    pub fn refused_providers(&self) -> Vec<(String, String)> {
        let host = &self.current().host;
        let refused = host.provider_registrations.refused();
        let registry = host.registry.lock();
        let named = refused.into_iter();
        named
            .map(|(id, error)| (registry.path(id), error))
            .collect()
    }

    /// Returns the file of a loaded extension.
    pub fn path_of(&self, id: ExtensionId) -> String {
        self.current().host.registry.lock().path(id)
    }

    pub fn tools(&self) -> Vec<(Arc<dyn Tool>, ExtensionInfo)> {
        let generation = self.current();
        let registry = generation.host.registry.lock();
        registry
            .tools()
            .iter()
            .map(|tool| {
                let info = registry.extensions[tool.extension as usize].clone();
                let tool = ExtensionTool::new(generation.clone(), tool.clone());
                (Arc::new(tool) as Arc<dyn Tool>, info)
            })
            .collect()
    }

    pub fn commands(&self) -> Vec<(InvokableCommand, ExtensionInfo)> {
        let generation = self.current();
        let registry = generation.host.registry.lock();
        registry
            .commands()
            .into_iter()
            .map(|command| {
                let info = registry.extensions[command.command.extension as usize].clone();
                (command, info)
            })
            .collect()
    }

    /// Runs a command until it ends, with a limit only if the settings have one, because
    /// the user sees it and can abort. Returns `None` for an unknown command. An exception
    /// becomes an `extension_error`.
    pub async fn run_command(&self, name: &str, args: &str) -> Option<()> {
        let generation = self.wait_ready(&CancellationToken::new()).await;
        let commands = generation.host.registry.lock().commands();
        let found = commands.into_iter().find(|command| command.name == name)?;
        let extension = found.command.extension;
        let run = self.actions().and_then(|actions| actions.current_run());
        let call = json!({
            "extension": extension,
            "command": found.command.id,
            "args": args,
            "run": run,
        });
        let limit = generation.timeouts.command;
        let what = || format!("The command /{name}");
        let ran = generation
            .call_with_limit(extension, "command", limit, what, "runCommand", &call)
            .await;
        if let Err(failure) = ran {
            let failure = match (&failure, generation.is_closed()) {
                (CallFailure::Stopped(_) | CallFailure::Gone, true) => CallFailure::Replaced,
                _ => failure,
            };
            let place = generation
                .position_if_timed_out(&failure, found.command.id)
                .await;
            let path = generation.host.registry.lock().path(extension);
            let error = failure.to_error(format!("command:{name}"), "command");
            let mut error = error.with_frame(place);
            explain(&mut error, Some(&path));
            self.show_error(error).await;
        }
        Some(())
    }

    /// Returns the completions of a command's arguments.
    pub async fn complete(&self, name: &str, prefix: &str) -> Option<Value> {
        let generation = self.current();
        let commands = generation.host.registry.lock().commands();
        let found = commands
            .into_iter()
            .find(|command| command.name == name && command.command.completes)?;
        let extension = found.command.extension;
        let call = json!({
            "extension": extension,
            "command": found.command.id,
            "prefix": prefix,
        });
        let limit = generation
            .timeouts
            .command
            .unwrap_or(generation.timeouts.handler);
        let what = || format!("getArgumentCompletions of {name}");
        let result = generation
            .call_within(
                extension,
                "command",
                limit,
                what,
                "completeArguments",
                &call,
            )
            .await;
        serde_json::from_str(&result.ok()??).ok()
    }

    /// Passes on the user's answer. Returns `false` if no dialog with this id is open.
    pub fn answer_dialog(&self, id: &str, answer: UiAnswer) -> bool {
        self.ui.respond(id, answer)
    }

    /// Returns whether the dialog is a confirmation.
    pub fn is_confirm_dialog(&self, id: &str) -> bool {
        self.ui.is_confirm(id)
    }

    /// Returns whether the dialog is open.
    pub fn has_dialog(&self, id: &str) -> bool {
        self.ui.is_open(id)
    }

    /// Changes when dialogs were withdrawn.
    pub fn withdrawn_dialogs(&self) -> watch::Receiver<u64> {
        self.ui.withdrawn()
    }

    /// Opens a dialog of pi itself.
    pub async fn request_dialog(&self, actions: &dyn SessionApi, method: UiMethod) -> UiAnswer {
        self.ui.request(actions, method, None, None).await
    }

    /// [`Self::request_dialog`] with a limit, after which the dialog counts as cancelled.
    pub async fn request_dialog_within(
        &self,
        actions: &dyn SessionApi,
        method: UiMethod,
        limit: Option<Duration>,
    ) -> UiAnswer {
        self.ui.request(actions, method, None, limit).await
    }

    async fn show_error(&self, mut error: ExtensionError) {
        explain(&mut error, None);
        tracing::warn!(
            extension = error.extension_path,
            event = error.event,
            "{}",
            error.error
        );
        let mut waiting = self.waiting_errors.lock().await;
        waiting.push(error);
        self.show_errors(&mut waiting).await;
    }

    /// Empties the list, unless there is no session to show it.
    async fn show_errors(&self, errors: &mut Vec<ExtensionError>) {
        let Some(actions) = self.actions.lock().clone() else {
            return;
        };
        let actions = actions.upgrade();
        for error in errors.drain(..) {
            if let Some(actions) = &actions {
                actions.emit(error.into()).await;
            }
        }
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}

async fn forward_reports(
    extensions: Weak<Extensions>,
    mut events: mpsc::Receiver<Event>,
    stops: Arc<Stops>,
) {
    let mut limiter = RateLimiter::default();
    loop {
        tokio::select! {
            biased;
            stops = stops.take() => {
                let Some(extensions) = extensions.upgrade() else { return };
                for stopped in stops {
                    extensions.recover(stopped).await;
                }
            }
            event = events.recv() => {
                let (Some(event), Some(extensions)) = (event, extensions.upgrade()) else {
                    return;
                };
                match event {
                    Event::ExtensionError(error) => {
                        if let Some(error) = limiter.pass(error) {
                            extensions.show_error(error).await;
                        }
                    }
                    event => {
                        let listener = extensions.listener.lock().clone();
                        if let Some(listener) = listener.and_then(|one| one.upgrade()) {
                            listener.emit(event).await;
                        }
                    }
                }
                extensions.reports.delivery.mark_shown();
            }
        }
    }
}

/// Marks that the next generation is being loaded, until it is dropped.
struct Replacing<'a>(&'a Extensions);

impl<'a> Replacing<'a> {
    fn begin(extensions: &'a Extensions) -> Self {
        extensions.replacing.store(true, Ordering::Relaxed);
        Self(extensions)
    }
}

impl Drop for Replacing<'_> {
    fn drop(&mut self) {
        self.0.replacing.store(false, Ordering::Relaxed);
        self.0.installed.notify_waiters();
    }
}

fn loaded_paths(generation: &Generation) -> HashSet<String> {
    let registry = generation.host.registry.lock();
    let loaded = registry
        .extensions
        .iter()
        .filter(|info| info.error.is_none());
    loaded.map(|info| info.path.clone()).collect()
}
