//! All extensions of a session: loading them, swapping a whole set for a newer
//! one, and starting over without the one that brought its isolate down.

mod ending;
mod user;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use js_runtime::{LoadError, Runtime, RuntimeOptions};
use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::actions::Actions;
use super::config::ExtensionsConfig;
use super::dispatch::Emission;
use super::explain::explain;
use super::generation::{Generation, stop_text};
use super::host::{BridgeHost, Reports, Stopped, Stops};
use super::registry::{ExtensionId, ExtensionInfo, InvokableCommand, Registry};
use super::tool::ExtensionTool;
use super::ui::UiBroker;
use crate::agent::event::{Event, ExtensionError, UiAnswer, UiMethod};
use crate::resources::extension_paths::ExtensionPath;
use crate::tools::tool::Tool;

/// Reports that may wait to be shown.
const REPORTS: usize = 1024;

/// What a load brought, for the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    pub loaded: Vec<String>,
    /// Path and reason.
    pub failed: Vec<(String, String)>,
    /// The extensions before stayed, because one of them failed to load anew.
    pub kept_old: bool,
}

pub struct Extensions {
    config: ExtensionsConfig,
    current: RwLock<Arc<Generation>>,
    actions: Mutex<Option<Weak<dyn Actions>>>,
    ui: Arc<UiBroker>,
    /// Values of the flags given on the command line.
    flags: Arc<Mutex<HashMap<String, Value>>>,
    /// What the current generation was loaded from.
    paths: Mutex<Vec<ExtensionPath>>,
    /// Brought an isolate down; left out until the user reloads.
    quarantine: Mutex<HashSet<PathBuf>>,
    generations: AtomicU32,
    reports: Reports,
    /// One set takes the place of another at a time.
    changing: tokio::sync::Mutex<()>,
    /// Replaced, and not let go yet; see [`Self::let_old_go`].
    replaced: Mutex<Vec<Arc<Generation>>>,
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
        let (errors, received) = mpsc::channel(REPORTS);
        let stops = Arc::<Stops>::default();
        let reports = Reports {
            errors,
            stops: stops.clone(),
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
        let this = Arc::new(Self {
            current: RwLock::new(Generation::new(host, config.limits, None)),
            config,
            actions: Mutex::default(),
            ui,
            flags,
            paths: Mutex::default(),
            quarantine: Mutex::default(),
            generations: AtomicU32::new(1),
            reports,
            changing: tokio::sync::Mutex::default(),
            replaced: Mutex::default(),
            early: Mutex::default(),
            closing: AtomicBool::new(false),
            handle: tokio::runtime::Handle::current(),
        });
        tokio::spawn(watch(Arc::downgrade(&this), received, stops));
        this
    }

    /// From here on extensions may act, and what they report is shown.
    pub fn bind(&self, actions: Weak<dyn Actions>) {
        self.current().host.bind(actions.clone());
        *self.actions.lock() = Some(actions);
    }

    /// What extensions reported before [`Self::bind`].
    pub fn take_early_errors(&self) -> Vec<ExtensionError> {
        std::mem::take(&mut self.early.lock())
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
    /// that runs now loaded again. The old set then gets `session_shutdown` and
    /// loses all it holds; see [`Self::let_old_go`].
    pub async fn reload(&self, paths: Vec<ExtensionPath>) -> LoadReport {
        let _changing = self.changing.lock().await;
        self.quarantine.lock().clear();
        let (generation, mut report) = self.build(&paths).await;
        let old = self.current();
        let running = loaded_paths(&old);
        if report.failed.iter().any(|(path, _)| running.contains(path)) {
            report.kept_old = true;
            generation.stop();
            return report;
        }
        *self.paths.lock() = paths;
        self.say_goodbye(&old, "reload", None).await;
        self.replace(generation);
        report
    }

    /// Loads everything anew for another session; there is no way back, the old
    /// set has had its `session_shutdown`; see [`Self::let_old_go`].
    pub async fn restart(&self, paths: Vec<ExtensionPath>) -> LoadReport {
        let _changing = self.changing.lock().await;
        let (generation, report) = self.build(&paths).await;
        *self.paths.lock() = paths;
        self.replace(generation);
        report
    }

    /// The old set can act no more, but it may finish what it is in the middle of
    /// (a command that asked for the reload, say).
    fn replace(&self, generation: Arc<Generation>) {
        let old = self.install(generation);
        old.host.leave();
        old.host.retire();
        self.replaced.lock().push(old);
    }

    /// The new set has been greeted: what a reload or restart replaced ends, at the
    /// latest after the time of a shutdown.
    pub fn let_old_go(&self) {
        for old in self.replaced.lock().drain(..) {
            let (limit, host) = (old.limits.shutdown, old.host.clone());
            // Only what it is in the middle of keeps it; otherwise it goes now.
            let old = Arc::downgrade(&old);
            tokio::spawn(async move {
                host.visits.over(limit).await;
                if let Some(old) = old.upgrade() {
                    old.stop();
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
        std::mem::replace(&mut *self.current.write(), generation)
    }

    async fn build(&self, paths: &[ExtensionPath]) -> (Arc<Generation>, LoadReport) {
        let mut report = LoadReport::default();
        // An extension that brings the isolate down while it loads is left out of
        // the next attempt.
        loop {
            let quarantine = self.quarantine.lock().clone();
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
            let attempt = self.load_into(&host, paths, &quarantine).await;
            let runtime = match attempt {
                Ok(runtime) => runtime,
                Err(index) => {
                    self.quarantine.lock().insert(paths[index].path.clone());
                    let info = &host.registry.lock().extensions[index];
                    let reason = info.error.clone().unwrap_or_default();
                    report.failed.push((info.path.clone(), reason));
                    continue;
                }
            };
            for info in &host.registry.lock().extensions {
                match &info.error {
                    None => report.loaded.push(info.path.clone()),
                    Some(_) if report.failed.iter().any(|(path, _)| *path == info.path) => {}
                    Some(error) => report.failed.push((info.path.clone(), error.clone())),
                }
            }
            return (Generation::new(host, self.config.limits, runtime), report);
        }
    }

    /// `Err` is the index of the extension that the isolate did not survive.
    async fn load_into(
        &self,
        host: &Arc<BridgeHost>,
        paths: &[ExtensionPath],
        quarantine: &HashSet<PathBuf>,
    ) -> Result<Option<Arc<Runtime>>, usize> {
        let fail = |index: usize, error: String| {
            host.registry.lock().extensions[index].error = Some(error);
        };
        let mut runtime = None;
        for (index, path) in paths.iter().enumerate() {
            if quarantine.contains(&path.path) {
                fail(
                    index,
                    "set aside: it stopped the extension host before".into(),
                );
                continue;
            }
            if runtime.is_none() {
                match self.start(host) {
                    Ok(started) => runtime = Some(started),
                    Err(error) => {
                        fail(index, error);
                        continue;
                    }
                }
            }
            let Some(runtime) = &runtime else { continue };
            host.enter(index as u32, "load");
            let loaded = runtime
                .load(index as u32, &path.path, self.config.limits.load)
                .await;
            match loaded {
                Ok(()) => {}
                Err(error @ LoadError::Stopped(_)) => {
                    fail(index, error.to_string());
                    return Err(index);
                }
                Err(error) => fail(index, error.to_string()),
            }
        }
        Ok(runtime)
    }

    fn start(&self, host: &Arc<BridgeHost>) -> Result<Arc<Runtime>, String> {
        let options = RuntimeOptions {
            cache_dir: self.config.cache_dir.clone(),
            max_heap: self.config.max_heap,
            spin_limit: self.config.limits.spin,
            ..RuntimeOptions::default()
        };
        Runtime::start(options, host.clone())
            .map(Arc::new)
            .map_err(|error| error.to_string())
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
        let generation = self.current();
        if !generation.has_handlers(name) {
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

    /// Queues an event whose answers do not count; `event` is made only if
    /// somebody listens, and has its `type`. Whoever waits for room in the queue
    /// waits no more when `cancel` fires, and the event is not told.
    pub async fn notify<T: serde::Serialize>(
        &self,
        name: &str,
        event: impl FnOnce() -> T,
        cancel: &CancellationToken,
    ) {
        let generation = self.current();
        if !generation.has_handlers(name) {
            return;
        }
        let event = match serde_json::value::to_raw_value(&event()) {
            Ok(event) => event,
            Err(error) => {
                tracing::error!("{name} cannot be told to extensions: {error}");
                return;
            }
        };
        let targets = generation.host.registry.lock().handlers(name);
        let run = self.actions().and_then(|actions| actions.run());
        generation
            .notifications
            .push(event, targets, run, cancel)
            .await;
    }

    /// [`Self::notify`] from where nothing can be awaited. Where there is no room the
    /// event is told later, out of order.
    pub fn notify_soon<T: serde::Serialize>(&self, name: &str, event: impl FnOnce() -> T) {
        let generation = self.current();
        if !generation.has_handlers(name) {
            return;
        }
        let event = match serde_json::value::to_raw_value(&event()) {
            Ok(event) => event,
            Err(error) => {
                tracing::error!("{name} cannot be told to extensions: {error}");
                return;
            }
        };
        let targets = generation.host.registry.lock().handlers(name);
        let run = self.actions().and_then(|actions| actions.run());
        let pushed = generation
            .notifications
            .try_push(event, targets.clone(), run);
        if let Err(event) = pushed {
            self.handle.spawn(async move {
                let never = CancellationToken::new();
                generation
                    .notifications
                    .push(event, targets, run, &never)
                    .await;
            });
        }
    }

    /// Returns when handlers have heard of all that they were told so far.
    pub async fn wait_heard(&self) {
        self.current().notifications.drain().await;
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

    /// Runs a command to its end, without a deadline: the user waits for it and
    /// sees it. `None` if there is none of that name. An exception becomes an
    /// `extension_error`.
    pub async fn run_command(&self, name: &str, args: &str) -> Option<()> {
        let generation = self.current();
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
        if let Err(failure) = generation.call("runCommand", &call).await {
            let path = generation.host.registry.lock().path(extension);
            let failure = failure.describe();
            let mut error = ExtensionError::new(format!("command:{name}"), "command", failure);
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
        let limit = generation.limits.handler;
        let what = || format!("getArgumentCompletions of {name}");
        let answer = generation
            .call_within(extension, limit, what, "completeArguments", &call)
            .await;
        serde_json::from_str(&answer.ok()??).ok()
    }

    /// The user's answer to a question; `false` if nobody waits for it.
    pub fn answer(&self, id: &str, answer: UiAnswer) -> bool {
        self.ui.answer(id, answer)
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
            actions.emit(Event::ExtensionError(error)).await;
        }
    }

    /// An isolate is gone: everything is loaded again but the culprit.
    async fn recover(self: &Arc<Self>, stopped: Stopped) {
        let _changing = self.changing.lock().await;
        let old = self.current();
        // It may have been replaced meanwhile.
        if old.host.generation() != stopped.generation || self.is_closing() {
            return;
        }
        let culprit = stopped.culprit;
        let paths = self.paths.lock().clone();
        let path = old.host.registry.lock().path(culprit.extension);
        if let Some(found) = paths.get(culprit.extension as usize) {
            self.quarantine.lock().insert(found.path.clone());
        }
        self.show(ExtensionError::new(
            path,
            culprit.what,
            format!(
                "The extension was stopped ({}) and set aside until the next reload; the others \
                 are loaded again",
                stop_text(stopped.reason)
            ),
        ))
        .await;
        let (generation, _) = self.build(&paths).await;
        if self.is_closing() {
            generation.stop();
            return;
        }
        // Its isolate is gone already.
        self.install(generation.clone()).host.retire();
        if let Some(actions) = self.actions() {
            actions.tools_changed();
            actions.models_changed();
        }
        // What comes next may be waiting for an answer to a handler's question.
        let this = self.clone();
        tokio::spawn(async move {
            // Whoever took its place greets the others.
            if !Arc::ptr_eq(&generation, &this.current()) {
                return;
            }
            let event = [("reason".to_string(), json!("reload"))];
            let event = event.into_iter().collect();
            this.emit("session_start", event, &CancellationToken::new())
                .await;
        });
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}

async fn watch(
    extensions: Weak<Extensions>,
    mut errors: mpsc::Receiver<ExtensionError>,
    stops: Arc<Stops>,
) {
    loop {
        tokio::select! {
            biased;
            stops = stops.take() => {
                let Some(extensions) = extensions.upgrade() else { return };
                for stopped in stops {
                    extensions.recover(stopped).await;
                }
            }
            error = errors.recv() => {
                let (Some(error), Some(extensions)) = (error, extensions.upgrade()) else {
                    return;
                };
                extensions.show(error).await;
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
