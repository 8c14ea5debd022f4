//! What JavaScript asks of the program, by name: registrations are kept here,
//! everything else goes to the session's [`Actions`].

mod envelope;
mod host_impl;
mod register;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use js_runtime::{Author, Console, HostError, Imports};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::DropGuard;

use arguments::{
    Ask, Enter, Owner, Replacement, ReportArgs, StaleCallArgs, Token, Update, ui_method,
};
pub(super) use arguments::{parse, parse_kept, parse_told, to_value};

use super::api::clipboard;
use super::api::compaction::Summaries;
use super::api::exec::{Execs, milliseconds};
use super::api::model_streams::ModelStreams;
use super::api::resources;
use super::api::services::{self, FileMutations};
use super::api::session::{act, act_async};
use super::api::session_api::Actions;
use super::api::session_manager::{self, Sessions};
use super::api::tool_runs::ToolRuns;
use super::api::ui::UiBroker;
use super::api::user_bash::Outputs;
use super::child::SecondSessions;
use super::diagnostics::ignored_results::Told;
use super::events::mutations::Changes;
use super::events::table;
use super::events::turn_end::Proposals;
use super::lifecycle::debugger;
use super::lifecycle::reports::{Culprit, Ending, Reports, Stopped};
use super::lifecycle::stale_calls::StaleCalls;
use super::limits::counters::Tally;
use super::limits::deadline::Waits;
use super::limits::reentrancy::Yields;
use super::limits::thread_usage::Holds;
use super::registry::providers::Provisions;
use super::registry::{ExtensionId, Registry};
use crate::agent::event::{Event, ExtensionError, UiAnswer, WaitOutcome};
use crate::ai::registry::ModelRegistry;
use crate::tools::ToolOptions;
use crate::tools::tool::UpdateSink;

/// One per generation of extensions.
pub struct BridgeHost {
    /// For those who call back later.
    pub this: Weak<BridgeHost>,
    pub registry: Mutex<Registry>,
    pub waits: Waits,
    pub holds: Holds,
    /// Where partial results of running tools go.
    pub updates: Mutex<HashMap<u64, UpdateSink>>,
    /// Of calls of tools that JavaScript has yet to begin, if somebody waits for that.
    pub beginnings: Mutex<HashMap<u64, DropGuard>>,
    pub flags: Arc<Mutex<HashMap<String, Value>>>,
    ui: Arc<UiBroker>,
    execs: Execs,
    mutations: FileMutations,
    pub(super) sessions: Sessions,
    /// Calls that are let through although this generation is stale.
    pub stale_calls: StaleCalls,
    pub yields: Yields,
    pub changes: Changes,
    pub proposals: Proposals,
    /// Of answers that mean nothing.
    told: Mutex<Told>,
    streams: ModelStreams,
    summaries: Summaries,
    tool_runs: ToolRuns,
    second_sessions: SecondSessions,
    /// Of commands that extensions run for the user.
    pub outputs: Arc<Outputs>,
    tokens: AtomicU64,
    /// Providers and the like.
    pub provisions: Provisions,
    actions: OnceLock<Weak<dyn Actions>>,
    /// A newer generation took over.
    stale: AtomicBool,
    /// It has been told to end; when it does, nothing is to be mended.
    leaving: AtomicBool,
    /// What `process.exit()` was called with when a signal had come.
    exit_code: OnceLock<u8>,
    /// Whose code ran last, and what for.
    current: Mutex<Culprit>,
    /// How the isolate ended, if it was stopped.
    ending: Mutex<Option<Ending>>,
    /// How long the extension of the queued handler that runs had waited for the
    /// user when it began.
    waited_before: Mutex<Duration>,
    reports: Reports,
    console: ConsoleSink,
    generation: u32,
    imports: OnceLock<Imports>,
}

/// Where extensions' console output goes; the mode decides.
pub type ConsoleSink = Arc<dyn Fn(Console, &str) + Send + Sync>;

pub(super) type Answer = Result<Value, HostError>;

impl BridgeHost {
    pub fn new(
        generation: u32,
        registry: Registry,
        ui: Arc<UiBroker>,
        flags: Arc<Mutex<HashMap<String, Value>>>,
        models: Arc<ModelRegistry>,
        reports: Reports,
        console: ConsoleSink,
    ) -> Arc<Self> {
        let outputs = Arc::<Outputs>::default();
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            registry: Mutex::new(registry),
            waits: Waits::default(),
            holds: Holds::default(),
            updates: Mutex::default(),
            beginnings: Mutex::default(),
            flags,
            ui,
            execs: Execs::default(),
            mutations: FileMutations::default(),
            sessions: Sessions::default(),
            stale_calls: StaleCalls::default(),
            yields: Yields::default(),
            changes: Changes::default(),
            proposals: Proposals::default(),
            told: Mutex::default(),
            streams: ModelStreams::new(tokio::runtime::Handle::current()),
            summaries: Summaries::new(tokio::runtime::Handle::current()),
            tool_runs: ToolRuns::new(tokio::runtime::Handle::current()),
            second_sessions: SecondSessions::new(
                tokio::runtime::Handle::current(),
                outputs.clone(),
            ),
            outputs,
            tokens: AtomicU64::new(1),
            provisions: Provisions::new(models),
            actions: OnceLock::new(),
            stale: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            exit_code: OnceLock::new(),
            current: Mutex::default(),
            ending: Mutex::default(),
            waited_before: Mutex::default(),
            reports,
            console,
            generation,
            imports: OnceLock::new(),
        })
    }

    /// From here on action methods work.
    pub fn bind(&self, actions: Weak<dyn Actions>) {
        // A generation is bound once, by whoever installs it.
        let _ = self.actions.set(actions);
        self.provisions.installed.notify_waiters();
    }

    /// Whether action methods work.
    pub fn is_bound(&self) -> bool {
        self.actions.get().is_some()
    }

    /// The session, if there is one already.
    pub fn bound_actions(&self) -> Option<Arc<dyn Actions>> {
        self.actions.get().and_then(Weak::upgrade)
    }

    pub fn retire(&self) {
        self.stale.store(true, Ordering::Relaxed);
        self.end_stretch(WaitOutcome::Cancelled);
    }

    /// Before `session_shutdown`.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// The first counts.
    pub fn exits(&self, code: u8) {
        self.exit_code.get_or_init(|| code);
    }

    pub fn exit_code(&self) -> Option<u8> {
        self.exit_code.get().copied()
    }

    /// How long `extension` has waited for the user since the queued handler that
    /// runs now began.
    pub fn waited_in_queued(&self, extension: ExtensionId) -> Duration {
        let before = *self.waited_before.lock();
        self.waits.total(extension).saturating_sub(before)
    }

    /// From now on it is the code of this extension that runs.
    pub fn enter(&self, extension: ExtensionId, what: &str) {
        *self.current.lock() = Culprit {
            extension,
            what: what.to_string(),
        };
    }

    /// Which files the extensions have come from so far.
    pub fn know_imports(&self, imports: Imports) {
        // There is one isolate for each generation.
        let _ = self.imports.set(imports);
    }

    pub fn imports(&self) -> Option<Imports> {
        self.imports.get().cloned()
    }

    /// The files of an extension.
    pub fn files_of(&self, extension: ExtensionId) -> Vec<PathBuf> {
        let imports = self.imports.get();
        imports
            .map(|imports| imports.of(extension))
            .unwrap_or_default()
    }

    pub fn current(&self) -> Culprit {
        self.current.lock().clone()
    }

    pub fn generation(&self) -> u32 {
        self.generation
    }

    pub fn report(&self, extension: ExtensionId, event: &str, error: impl Into<String>) {
        let error = ExtensionError::new(self.registry.lock().path(extension), event, error);
        self.tell(Event::ExtensionError(error));
    }

    /// [`Self::report`] for what its code has thrown.
    pub fn report_thrown(
        &self,
        extension: ExtensionId,
        event: &str,
        plain: String,
        stack: Option<String>,
    ) {
        let path = self.registry.lock().path(extension);
        let error = ExtensionError::thrown(path, event, plain, stack);
        self.tell(Event::ExtensionError(error));
    }

    /// What a call of the extension cost.
    pub fn charge(&self, extension: ExtensionId, event: &str, tally: Tally) {
        let path = self.registry.lock().path(extension);
        self.reports.ledger.called(path, event, tally);
    }

    /// Its code has had the thread.
    pub(super) fn charge_busy(&self, extension: ExtensionId, time: Duration) {
        let path = self.registry.lock().path(extension);
        self.reports.ledger.held(&path, time);
    }

    pub fn charge_load(&self, extension: ExtensionId, took: Duration) {
        let path = self.registry.lock().path(extension);
        self.reports.ledger.loaded(&path, took);
    }

    /// Returns when the user has been shown what was reported by now.
    pub async fn wait_shown(&self) {
        self.reports.delivery.wait_shown().await;
    }

    /// Never waits: JavaScript may be standing still meanwhile.
    pub fn tell(&self, news: Event) {
        match self.reports.news.try_send(news) {
            Ok(()) => self.reports.delivery.mark_sent(),
            Err(error) => tracing::warn!("an extension's report was dropped: {error}"),
        }
    }

    /// Whose code it was. Code that carries no mark is that of whoever ran last.
    pub(super) fn culprit(&self, author: Option<Author>) -> Culprit {
        let current = self.current();
        let Some(Author { id, what }) = author else {
            return current;
        };
        let what = match what.is_empty() {
            true if current.extension == id => current.what,
            true => "uncaught".to_string(),
            false => what,
        };
        Culprit {
            extension: id,
            what,
        }
    }

    fn stopped(&self, ending: Ending, author: Option<Author>) {
        self.end_stretch(WaitOutcome::Stopped);
        let culprit = self.culprit(author);
        *self.current.lock() = culprit.clone();
        *self.ending.lock() = Some(ending.clone());
        let path = self.registry.lock().path(culprit.extension);
        if self.leaving.load(Ordering::Relaxed) {
            let sentence = format!("The extension was {ending}");
            let error = ending.tell_of(path, culprit.what, sentence);
            self.tell(Event::ExtensionError(error));
            return;
        }
        self.reports.stops.push(Stopped {
            generation: self.generation,
            was_installed: self.is_bound(),
            path,
            culprit,
            ending,
        });
    }

    /// How its isolate ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        self.ending.lock().clone()
    }

    /// Those of the session; while extensions load there is none.
    fn tool_options(&self) -> ToolOptions {
        match self.actions.get().and_then(Weak::upgrade) {
            Some(actions) => actions.tool_options(),
            None => ToolOptions::default(),
        }
    }

    /// Whether a call with these arguments may be made: by a generation that was not replaced,
    /// or as a visit.
    fn check_stale(&self, args: &str) -> Result<(), HostError> {
        if self.stale.load(Ordering::Relaxed) && !self.stale_calls.allow(args) {
            return Err(HostError::new(
                "This extension instance is stale: it was replaced by a reload or a session \
                 switch. Use the `pi` and `ctx` that the new instance gets, or the ctx that \
                 `withSession` is called with",
            ));
        }
        Ok(())
    }

    /// For a call with these arguments.
    pub(super) fn actions(&self, args: &str) -> Result<Arc<dyn Actions>, HostError> {
        self.check_stale(args)?;
        self.actions.get().and_then(Weak::upgrade).ok_or_else(|| {
            HostError::new(
                "Extension runtime not initialized. Action methods cannot be called during \
                 extension loading.",
            )
        })
    }

    fn answer(&self, method: &str, args: &str) -> Answer {
        match method {
            "enter" => {
                let enter: Enter = parse(method, args)?;
                if enter.queued {
                    let extension = enter.culprit.extension;
                    *self.waited_before.lock() = self.waits.total(extension);
                    self.holds.queue(Some(extension));
                }
                *self.current.lock() = enter.culprit;
                return Ok(Value::Null);
            }
            "report" => {
                let report: ReportArgs = parse(method, args)?;
                let stack = js_runtime::readable_stack(&report.error);
                let extension = report.extension;
                let extension = extension.unwrap_or_else(|| self.current().extension);
                let path = self.registry.lock().path(extension);
                let error = ExtensionError::thrown(path, report.event, report.plain, Some(stack));
                self.tell(Event::ExtensionError(match report.warning {
                    true => error.as_warning(),
                    false => error,
                }));
                return Ok(Value::Null);
            }
            "result.ignored" => {
                self.tell_unheard(parse(method, args)?);
                return Ok(Value::Null);
            }
            "debugger.waits" => {
                debugger::note(args);
                return Ok(Value::Null);
            }
            "stale.check" => return self.check_stale(args).map(|()| Value::Null),
            "pi.getFlag" => return self.flag(args),
            "pi.execKill" => {
                self.execs.kill(parse::<Token>(method, args)?.token);
                return Ok(Value::Null);
            }
            "ui.cancel" => {
                self.ui
                    .cancel(self.ui_token(parse::<Token>(method, args)?.token));
                return Ok(Value::Null);
            }
            "tool.started" => {
                let Token { token } = parse(method, args)?;
                self.beginnings.lock().remove(&token);
                return Ok(Value::Null);
            }
            "tool.update" => {
                let update: Update = parse_kept(method, args)?;
                let sink = self.updates.lock().get(&update.token).cloned();
                if let Some(sink) = sink {
                    sink(update.output);
                }
                return Ok(Value::Null);
            }
            _ => {}
        }
        if method == "ai.stream.abort" {
            return self.streams.abort(method, args);
        }
        if method == "file_mutation.release" {
            return self.mutations.release(method, args);
        }
        if method == "staleCall.end" {
            self.stale_calls
                .finish(parse::<StaleCallArgs>(method, args)?.stale_call);
            return Ok(Value::Null);
        }
        if let Some(answer) = self
            .register(method, args)
            .or_else(|| self.serve_providers(method, args))
            .or_else(|| services::serve(method, args))
            .or_else(|| resources::serve(method, args))
            .or_else(|| self.sessions.serve(method, args))
            .or_else(|| self.changes.serve(method, args))
            .or_else(|| self.proposals.serve(method, args, || self.actions(args)))
            .or_else(|| self.summaries.serve(method, args))
            .or_else(|| self.second_sessions.serve(method, args))
            .or_else(|| {
                let options = || self.tool_options();
                self.tool_runs.serve(method, args, options)
            })
        {
            return answer;
        }
        let actions = self.actions(args)?;
        if method == "ui.show" {
            let shown = ui_method(args)?;
            if actions.has_ui() && actions.ui_supports(shown.name()) {
                actions.show(shown);
            }
            return Ok(Value::Null);
        }
        act(&*actions, method, args)
    }

    /// What replaces the session concerns this generation, too: it may hold the
    /// session that takes the place, and stay to see it.
    async fn replace_or(&self, actions: &dyn Actions, method: &str, args: &str) -> Answer {
        let given: Option<Replacement> = parse(method, args)?;
        let given = given.unwrap_or_default();
        // Before the session is replaced: what is replaced ends when nobody stays.
        if let Some(call) = given.begin_stale_call {
            self.stale_calls.begin(call);
        }
        let answer = match (method, given.session) {
            ("ctx.prepareSession", _) => {
                match actions.prepare_session(given.parent_session).await {
                    Ok(Some(prepared)) => Ok(json!({ "token": self.sessions.hold(prepared) })),
                    Ok(None) => Ok(Value::Null),
                    Err(error) => Err(HostError::new(error.0)),
                }
            }
            ("ctx.newSession", Some(token)) => match self.sessions.take(token) {
                Ok(prepared) => actions
                    .enter_session(prepared)
                    .await
                    .map(|()| json!({ "cancelled": false }))
                    .map_err(|error| HostError::new(error.0)),
                Err(error) => Err(error),
            },
            _ => act_async(actions, method, args).await,
        };
        if let Some(call) = given.begin_stale_call
            && !matches!(&answer, Ok(answer) if answer["cancelled"] != true)
        {
            self.stale_calls.finish(call);
        }
        answer
    }

    pub fn next_token(&self) -> u64 {
        self.tokens.fetch_add(1, Ordering::Relaxed)
    }

    /// Unique among generations.
    fn ui_token(&self, token: u64) -> u64 {
        u64::from(self.generation) << 32 | token
    }

    async fn wait(self: Arc<Self>, method: &str, args: &str) -> Answer {
        if method == "pi.exec" {
            let cwd = match self.actions.get().and_then(Weak::upgrade) {
                Some(actions) => actions.cwd(),
                None => ".".to_string(),
            };
            return to_value(self.execs.run(parse(method, args)?, cwd).await);
        }
        match method {
            "ai.stream.open" => {
                let id = self.next_token();
                return self.streams.open(method, args, id);
            }
            "ai.stream.respond" => return self.streams.answer(method, args),
            "clipboard.copy" => return clipboard::copy(method, args).await,
            "image.type" => return services::image_type(method, args).await,
            "image.resize" => return services::resize_image(method, args).await,
            "image.png" => return services::image_to_png(method, args).await,
            "tools.previewEdit" => return services::preview_edit(method, args).await,
            "ai.stream.next" => return self.streams.next(method, args).await,
            "child.nextEvents" => return self.second_sessions.next(method, args).await,
            "child.awaitAction" => return self.second_sessions.act(method, args).await,
            "tools.next" => return self.tool_runs.next(method, args).await,
            "tools.data" => return self.tool_runs.data(method, args).await,
            "user_bash.data" => return self.outputs.data(method, args).await,
            "compaction.next" => return self.summaries.next(method, args).await,
            "compaction.compact" | "compaction.branch" => {
                return self.summaries.write(method, args).await;
            }
            _ => {}
        }
        if matches!(method, "sessions.list" | "sessions.listAll") {
            return session_manager::listed(method, args).await;
        }
        if let Some(answer) = self.wait_for_providers(method, args).await {
            return answer;
        }
        if method == "file_mutation.acquire" {
            let token = self.next_token();
            return self.mutations.acquire(method, args, token).await;
        }
        let actions = self.actions(args)?;
        match method {
            "child.loadExtensions" => self.second_sessions.load(&*actions, method, args).await,
            "child.open" => {
                self.second_sessions
                    .open(&self, &*actions, method, args)
                    .await
            }
            "ui.request" => {
                let ask: Ask = parse(method, args)?;
                let method = ui_method(args)?;
                let timeout = ask.timeout.and_then(milliseconds);
                let _waiting = self.waits.begin(ask.extension);
                let _prompt = actions.ui_prompt(&method);
                let token = Some(self.ui_token(ask.token));
                Ok(match self.ui.ask(&*actions, method, token, timeout).await {
                    UiAnswer::Value(value) => json!({ "value": value }),
                    UiAnswer::Confirmed(confirmed) => json!({ "confirmed": confirmed }),
                    UiAnswer::Cancelled => json!({ "cancelled": true }),
                })
            }
            _ => {
                let owner = parse::<Owner>(method, args).ok();
                // Waiting for the agent or the user is not the extension's time.
                // For a compaction nobody waits; its handlers have their own time.
                let waits = owner.as_ref().filter(|_| method != "ctx.compact");
                let _waiting = waits.map(|owner| self.waits.begin(owner.extension));
                let during = owner.as_ref().and_then(|owner| owner.during.as_deref());
                if let Some(event) = during.filter(|name| table::holds_session(name)) {
                    // The session waits for this handler.
                    if method == "ctx.waitForIdle" {
                        actions.wait_for_run().await;
                        return Ok(Value::Null);
                    }
                    if actions.is_held(method == "ctx.navigateTree") {
                        return Err(in_the_midst(method, event));
                    }
                }
                if method == "ctx.waitForIdle"
                    && let Some(event) = during.filter(|name| table::holds_run(name))
                {
                    return Err(HostError::new(format!(
                        "ctx.waitForIdle() cannot be waited for in a handler of {event}: the run \
                         goes on only when the handler has answered. Call it without waiting, or \
                         in agent_end"
                    )));
                }
                let yields = owner.is_some_and(|owner| owner.queued && method != "pi.setModel");
                let _yielding = yields.then(|| self.yields.begin());
                self.replace_or(&*actions, method, args).await
            }
        }
    }
}

fn in_the_midst(method: &str, event: &str) -> HostError {
    HostError::new(format!(
        "{method}() cannot be waited for in a handler of {event}: the session waits for the handler. \
         Call it when that is over, after session_start, session_compact or session_tree"
    ))
}
