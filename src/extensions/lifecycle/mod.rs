//! All extensions of a session: loading them, swapping a whole set for a newer
//! one, and starting over without the one that brought its isolate down.

pub mod debugger;
pub mod generation;
mod load;
pub mod load_error;
mod notify;
mod quarantine;
mod recover;
pub mod reports;
mod shutdown;
pub mod stale_calls;
mod stats;
mod teardown;
mod user_calls;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use js_runtime::Kept;
use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::quarantine::Quarantine;
pub use self::stats::Statistics;
use super::api::session_api::Actions;
use super::api::ui::UiBroker;
use super::bridge::BridgeHost;
use super::config::{Allowance, ExtensionsConfig};
use super::diagnostics::error_context::explain;
use super::events::dispatch::Emission;
use super::lifecycle::generation::Generation;
use super::lifecycle::load_error::LoadFailure;
use super::lifecycle::reports::{RateLimiter, Reports, Stops};
use super::registry::tool::ExtensionTool;
use super::registry::{ExtensionId, ExtensionInfo, InvokableCommand, Registry};
use crate::agent::event::{Event, ExtensionError, UiAnswer, UiMethod};
use crate::resources::extension_paths::ExtensionPath;
use crate::resources::settings::Settings;
use crate::tools::tool::Tool;

/// Reports that may wait to be shown.
const REPORTS: usize = 1024;

/// What a load brought, for the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    pub loaded: Vec<String>,
    /// By path.
    pub failed: Vec<(String, LoadFailure)>,
    /// The extensions before stayed, because one of them failed to load anew.
    pub kept_old: bool,
}

pub struct Extensions {
    config: ExtensionsConfig,
    /// Of the sets that are loaded from now on.
    allowance: Mutex<Allowance>,
    /// Fires when the user does not want to wait: for what is being loaded, and for what a
    /// set that ends has to do.
    patience: Mutex<CancellationToken>,
    current: RwLock<Arc<Generation>>,
    actions: Mutex<Option<Weak<dyn Actions>>>,
    ui: Arc<UiBroker>,
    /// Values of the flags given on the command line.
    flags: Arc<Mutex<HashMap<String, Value>>>,
    /// What debuggers call the isolate.
    label: Mutex<String>,
    /// What was read for the isolates so far.
    kept: Kept,
    /// What the current generation was loaded from.
    paths: Mutex<Vec<ExtensionPath>>,
    /// Brought an isolate down.
    quarantine: Quarantine,
    generations: AtomicU32,
    reports: Reports,
    /// Another set is [`Self::current`], or was greeted.
    installed: Arc<Notify>,
    /// The generation that hears of its session just now, after a recovery.
    greeting: Mutex<Option<u32>>,
    /// One set takes the place of another at a time.
    changing: tokio::sync::Mutex<()>,
    /// Replaced, and not let go yet; see [`Self::let_old_go`].
    replaced: Mutex<Vec<Arc<Generation>>>,
    /// Let go, and in the middle of something.
    let_go: Mutex<Vec<Weak<Generation>>>,
    /// Of sets that end while nobody waits for them.
    farewells: TaskTracker,
    /// Who hears what is being waited for, also before [`Self::bind`].
    listener: Mutex<Option<Weak<dyn Actions>>>,
    /// What was reported before there was anybody to hear it.
    early: Mutex<Vec<ExtensionError>>,
    /// The session ends: what stops now stays so.
    closing: AtomicBool,
    /// The program's threads.
    handle: tokio::runtime::Handle,
}

impl Extensions {
    /// Nothing is loaded, and no isolate made, before [`Self::load`].
    pub fn new(config: ExtensionsConfig) -> Arc<Self> {
        let (news, received) = mpsc::channel(REPORTS);
        let stops = Arc::<Stops>::default();
        let reports = Reports {
            news,
            delivery: Arc::default(),
            stops: stops.clone(),
            counters: Arc::default(),
        };
        let ui = Arc::<UiBroker>::default();
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
        let farewells = TaskTracker::new();
        let this = Arc::new(Self {
            current: RwLock::new(Generation::new(
                host,
                config.allowance.limits.clone(),
                None,
                farewells.clone(),
            )),
            allowance: Mutex::new(config.allowance.clone()),
            patience: Mutex::default(),
            config,
            actions: Mutex::default(),
            ui,
            flags,
            label: Mutex::default(),
            kept: Kept::default(),
            paths: Mutex::default(),
            quarantine: Quarantine::default(),
            generations: AtomicU32::new(1),
            reports,
            installed: Arc::default(),
            greeting: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            replaced: Mutex::default(),
            let_go: Mutex::default(),
            farewells,
            listener: Mutex::default(),
            early: Mutex::default(),
            closing: AtomicBool::new(false),
            handle: tokio::runtime::Handle::current(),
        });
        tokio::spawn(watch(Arc::downgrade(&this), received, stops));
        this
    }

    /// Ends when another set of extensions takes the place of this one.
    pub fn installed(&self) -> impl Future<Output = ()> + use<> {
        self.installed.clone().notified_owned()
    }

    /// The files that extensions came from, those that are set aside included.
    pub fn files(&self) -> BTreeSet<PathBuf> {
        let current = self.current();
        let paths = self.paths.lock();
        let mut files = self.quarantine.files();
        for (id, path) in paths.iter().enumerate() {
            files.insert(path.path.clone());
            files.extend(current.host.files_of(id as ExtensionId));
        }
        files
    }

    /// The extensions that were to be loaded.
    pub fn given(&self) -> BTreeSet<PathBuf> {
        let paths = self.paths.lock();
        paths.iter().map(|path| path.path.clone()).collect()
    }

    /// What is loaded of each extension first.
    pub fn entries(&self) -> Vec<PathBuf> {
        let running = loaded_paths(&self.current());
        running.into_iter().map(PathBuf::from).collect()
    }

    /// When one of them imports a file that it had not.
    pub fn imported_more(&self) -> impl Future<Output = ()> + use<> {
        let imports = self.current().host.imports();
        async move {
            match imports {
                Some(imports) => imports.grown().await,
                None => std::future::pending().await,
            }
        }
    }

    /// From here on extensions may act, and what they report is shown.
    pub fn bind(&self, actions: Weak<dyn Actions>) {
        self.current().host.bind(actions.clone());
        *self.actions.lock() = Some(actions);
    }

    /// Who is told what the first load waits for: nothing is bound then.
    pub fn tell_waits(&self, listener: Weak<dyn Actions>) {
        *self.listener.lock() = Some(listener);
    }

    /// What extensions reported before [`Self::bind`].
    pub fn take_early_errors(&self) -> Vec<ExtensionError> {
        std::mem::take(&mut self.early.lock())
    }

    /// For debuggers: of which session the next isolates are.
    pub fn name_session(&self, id: &str, cwd: &Path) {
        *self.label.lock() = format!("pi, session {id} in {}", cwd.display());
    }

    pub fn set_flag(&self, name: &str, value: Value) {
        self.flags.lock().insert(name.to_string(), value);
    }

    pub fn flags(&self) -> Vec<super::registry::FlagRegistration> {
        self.current().host.registry.lock().flags().to_vec()
    }

    pub(super) fn with_registry<T>(&self, look: impl FnOnce(&Registry) -> T) -> T {
        look(&self.current().host.registry.lock())
    }

    fn current(&self) -> Arc<Generation> {
        self.current.read().clone()
    }

    fn actions(&self) -> Option<Arc<dyn Actions>> {
        self.actions.lock().as_ref().and_then(Weak::upgrade)
    }

    /// The first load. What fails is reported and left out.
    pub async fn load(&self, paths: Vec<ExtensionPath>) -> LoadReport {
        let _changing = self.changing.lock().await;
        let (generation, report) = self.build(&paths).await;
        *self.paths.lock() = paths;
        self.install(generation);
        report
    }

    /// Loads everything anew beside what runs, and takes over only if everything
    /// that runs now loaded again. The old set then gets `session_shutdown`, as in
    /// [`Self::shut_down`], and loses all it holds; see [`Self::let_old_go`].
    pub async fn reload(&self, paths: Vec<ExtensionPath>) -> LoadReport {
        // If one was brought down just now, the user is told, and it stays outside.
        let cancel = self.patience.lock().clone();
        self.living(&cancel).await;
        let _changing = self.changing.lock().await;
        self.quarantine.release_changed();
        let (generation, mut report) = self.build(&paths).await;
        let old = self.current();
        let running = loaded_paths(&old);
        if report.failed.iter().any(|(path, _)| running.contains(path)) {
            report.kept_old = true;
            drop(generation);
            // What runs did not bring its own isolate down.
            for path in running {
                self.quarantine.remove(Path::new(&path));
            }
            return report;
        }
        *self.paths.lock() = paths;
        self.say_goodbye(&old, "reload", None).await;
        self.replace(generation);
        report
    }

    /// The settings have changed: they hold for what is loaded from now on.
    pub fn allow(&self, settings: &Settings) {
        *self.allowance.lock() = Allowance::new(settings);
    }

    /// The user waits no longer. What is being loaded is given up if it takes long, and what
    /// comes after it is loaded all the same. Handlers that are still to hear of the end, or
    /// of what has happened, and of what is still to be told of `run`, are told and left to
    /// themselves.
    pub fn abort(&self, run: Option<u64>) {
        std::mem::take(&mut *self.patience.lock()).cancel();
        self.current().event_queue.abort(run);
    }

    /// Lets an extension back in that brought an isolate down; the next load has it.
    pub fn release(&self, name: &str) -> Result<(), String> {
        self.quarantine.release(name)
    }

    /// Loads everything anew for another session; there is no way back, the old
    /// set has had its `session_shutdown`; see [`Self::let_old_go`].
    pub async fn restart(&self, paths: Vec<ExtensionPath>) -> LoadReport {
        let _changing = self.changing.lock().await;
        self.quarantine.release_changed();
        let (generation, report) = self.build(&paths).await;
        *self.paths.lock() = paths;
        self.replace(generation);
        report
    }

    /// The old set can act no more, but it may finish what it is in the middle of
    /// (a command that asked for the reload, say).
    fn replace(&self, generation: Arc<Generation>) {
        let old = self.install(generation);
        old.host.begin_shutdown();
        old.host.retire();
        self.clear_shown();
        self.replaced.lock().push(old);
    }

    /// The set that showed it can show nothing more, the new one has not begun to.
    fn clear_shown(&self) {
        if let Some(actions) = self.actions() {
            actions.clear_shown();
        }
    }

    /// The new set has been greeted: what a reload or restart replaced ends, at the
    /// latest after the time of a shutdown.
    pub fn let_old_go(&self) {
        for old in self.replaced.lock().drain(..) {
            let (limit, host) = (old.limits.shutdown, old.host.clone());
            // Only what it is in the middle of keeps it; otherwise it goes now.
            let old = Arc::downgrade(&old);
            let mut let_go = self.let_go.lock();
            let_go.retain(|old| old.strong_count() > 0);
            let_go.push(old.clone());
            tokio::spawn(async move {
                host.stale_calls.over(limit).await;
                if let Some(old) = old.upgrade() {
                    for error in old.end(0).await {
                        host.emit(Event::ExtensionError(error));
                    }
                }
            });
        }
    }

    fn install(&self, generation: Arc<Generation>) -> Arc<Generation> {
        if let Some(actions) = &*self.actions.lock() {
            generation.host.bind(actions.clone());
        }
        let registered = &generation.host.provisions.registered;
        self.config.models.provide(registered.clone());
        generation.host.provisions.installed.notify_waiters();
        let old = std::mem::replace(&mut *self.current.write(), generation);
        self.installed.notify_waiters();
        old
    }

    /// Whether anybody would hear of it; if not, nothing needs to be made.
    pub fn has_handlers(&self, event: &str) -> bool {
        self.current().has_handlers(event)
    }

    /// Asks the handlers of an event whose answers count; see [`Generation::emit`].
    pub async fn emit(
        &self,
        name: &'static str,
        event: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Emission {
        let generation = self.living(cancel).await;
        if name != "session_start" && !generation.has_handlers(name) {
            return Emission {
                event,
                ..Emission::default()
            };
        }
        let run = self.actions().and_then(|actions| actions.run());
        let mut emission = generation.emit(name, event, run, cancel).await;
        for error in emission.errors.drain(..) {
            self.show(error).await;
        }
        emission
    }

    /// A run was aborted: its signals fire.
    pub async fn abort_run(&self, run: u64) {
        // An error means that nobody is there who could hold the signal.
        let _ = self.current().call("abortRun", &run).await;
    }

    /// Providers that could not be registered while the extensions loaded: the file
    /// of the extension, and why.
    pub fn refused_providers(&self) -> Vec<(String, String)> {
        let host = &self.current().host;
        let refused = host.provisions.refused();
        let registry = host.registry.lock();
        let named = refused.into_iter();
        named
            .map(|(id, error)| (registry.path(id), error))
            .collect()
    }

    /// The file of an extension that is loaded.
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

    /// Runs a command to its end, without a deadline if the settings have none: the
    /// user waits for it and sees it. `None` if there is none of that name. An exception becomes an
    /// `extension_error`.
    pub async fn run_command(&self, name: &str, args: &str) -> Option<()> {
        let generation = self.living(&CancellationToken::new()).await;
        let commands = generation.host.registry.lock().commands();
        let found = commands.into_iter().find(|command| command.name == name)?;
        let extension = found.command.extension;
        let run = self.actions().and_then(|actions| actions.run());
        let call = json!({
            "extension": extension,
            "command": found.command.id,
            "args": args,
            "run": run,
        });
        let limit = generation.limits.command;
        let what = || format!("The command /{name}");
        let ran = generation
            .call_within_some(extension, "command", limit, what, "runCommand", &call)
            .await;
        if let Err(failure) = ran {
            let place = generation
                .position_if_timed_out(&failure, found.command.id)
                .await;
            let path = generation.host.registry.lock().path(extension);
            let error = failure.tell_of(format!("command:{name}"), "command");
            let mut error = error.in_frame(place);
            explain(&mut error, Some(&path));
            self.show(error).await;
        }
        Some(())
    }

    /// Completions of a command's arguments, as the extension gave them.
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
            .limits
            .command
            .unwrap_or(generation.limits.handler);
        let what = || format!("getArgumentCompletions of {name}");
        let answer = generation
            .call_within(
                extension,
                "command",
                limit,
                what,
                "completeArguments",
                &call,
            )
            .await;
        serde_json::from_str(&answer.ok()??).ok()
    }

    /// The user's answer to a question; `false` if nobody waits for it.
    pub fn answer(&self, id: &str, answer: UiAnswer) -> bool {
        self.ui.answer(id, answer)
    }

    /// Whether the user is asked for a yes or a no.
    pub fn confirms(&self, id: &str) -> bool {
        self.ui.confirms(id)
    }

    /// Whether anybody waits for an answer to the question.
    pub fn asks(&self, id: &str) -> bool {
        self.ui.asks(id)
    }

    /// Changes when there may be questions that nobody asks any more.
    pub fn withdrawn_questions(&self) -> watch::Receiver<u64> {
        self.ui.withdrawn()
    }

    /// A question of the program's own.
    pub async fn ask(&self, actions: &dyn Actions, method: UiMethod) -> UiAnswer {
        self.ui.ask(actions, method, None, None).await
    }

    async fn show(&self, mut error: ExtensionError) {
        explain(&mut error, None);
        tracing::warn!(
            extension = error.extension_path,
            event = error.event,
            "{}",
            error.error
        );
        let actions = {
            let actions = self.actions.lock();
            if actions.is_none() {
                self.early.lock().push(error);
                return;
            }
            actions.as_ref().and_then(Weak::upgrade)
        };
        if let Some(actions) = actions {
            actions.emit(error.into()).await;
        }
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}

async fn watch(extensions: Weak<Extensions>, mut news: mpsc::Receiver<Event>, stops: Arc<Stops>) {
    let mut bursts = RateLimiter::default();
    loop {
        tokio::select! {
            biased;
            stops = stops.take() => {
                let Some(extensions) = extensions.upgrade() else { return };
                for stopped in stops {
                    extensions.recover(stopped).await;
                }
            }
            event = news.recv() => {
                let (Some(event), Some(extensions)) = (event, extensions.upgrade()) else {
                    return;
                };
                match event {
                    Event::ExtensionError(error) => {
                        if let Some(error) = bursts.pass(error) {
                            extensions.show(error).await;
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

fn loaded_paths(generation: &Generation) -> HashSet<String> {
    let registry = generation.host.registry.lock();
    let loaded = registry
        .extensions
        .iter()
        .filter(|info| info.error.is_none());
    loaded.map(|info| info.path.clone()).collect()
}
