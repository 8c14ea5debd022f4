//! State of the bridge for one generation: what extensions registered, their open calls and
//! attribution. The router dispatches calls of JavaScript by method name.

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

use envelope::{
    CallerArgs, EnterArgs, ReplacementArgs, ReportArgs, StaleCallArgs, TokenArgs, ToolUpdateArgs,
    UiRequestArgs, ui_method,
};
pub(super) use envelope::{parse, parse_explained, parse_stored, to_value};

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
use super::diagnostics::ignored_results::ReportedWarnings;
use super::events::mutations::Mutations;
use super::events::table;
use super::events::turn_end::Proposals;
use super::lifecycle::debugger;
use super::lifecycle::reports::{Attribution, IsolateEnd, Reports, Stopped};
use super::lifecycle::stale_calls::StaleCalls;
use super::limits::counters::Tally;
use super::limits::deadline::HandlerClock;
use super::limits::reentrancy::AgentWaits;
use super::limits::thread_usage::ThreadUsage;
use super::registry::providers::Provisions;
use super::registry::{ExtensionId, Registry};
use crate::agent::event::{Event, ExtensionError, UiAnswer, WaitOutcome};
use crate::ai::registry::ModelRegistry;
use crate::tools::ToolOptions;
use crate::tools::tool::UpdateSink;

/// Shared state of one generation of extensions.
pub struct BridgeHost {
    /// Handle for callbacks that run later.
    pub weak_self: Weak<BridgeHost>,
    pub registry: Mutex<Registry>,
    pub clock: HandlerClock,
    pub thread_usage: ThreadUsage,
    /// Sinks for partial results of running tools, by token.
    pub updates: Mutex<HashMap<u64, UpdateSink>>,
    /// Guards of tool calls that JavaScript has not started yet, if a caller waits for the
    /// start.
    pub start_guards: Mutex<HashMap<u64, DropGuard>>,
    pub flags: Arc<Mutex<HashMap<String, Value>>>,
    ui: Arc<UiBroker>,
    execs: Execs,
    file_mutations: FileMutations,
    pub(super) sessions: Sessions,
    /// Calls that are allowed although this generation is stale.
    pub stale_calls: StaleCalls,
    pub agent_waits: AgentWaits,
    pub mutations: Mutations,
    pub proposals: Proposals,
    /// Warnings that were reported already.
    reported_warnings: Mutex<ReportedWarnings>,
    streams: ModelStreams,
    summaries: Summaries,
    tool_runs: ToolRuns,
    second_sessions: SecondSessions,
    /// Output of commands that extensions run for the user.
    pub outputs: Arc<Outputs>,
    tokens: AtomicU64,
    /// Providers, sign-ins and wire APIs that extensions registered.
    pub provisions: Provisions,
    actions: OnceLock<Weak<dyn Actions>>,
    /// Set when a newer generation took over.
    stale: AtomicBool,
    /// Set when this generation is shutting down; an isolate that stops from then on is not
    /// reloaded.
    shutting_down: AtomicBool,
    /// The argument of `process.exit()` after a signal.
    exit_code: OnceLock<u8>,
    /// The extension whose code ran last, and the event it ran for.
    current: Mutex<Attribution>,
    /// Why the isolate stopped, if it did.
    isolate_end: Mutex<Option<IsolateEnd>>,
    /// Total wait of the queued handler's extension at the time when that handler started.
    queued_wait_at_start: Mutex<Duration>,
    reports: Reports,
    console: ConsoleSink,
    generation: u32,
    imports: OnceLock<Imports>,
}

/// Receives console output of extensions; the mode decides where it goes.
pub type ConsoleSink = Arc<dyn Fn(Console, &str) + Send + Sync>;

pub(super) type BridgeResult = Result<Value, HostError>;

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
        Arc::new_cyclic(|weak_self| Self {
            weak_self: weak_self.clone(),
            registry: Mutex::new(registry),
            clock: HandlerClock::default(),
            thread_usage: ThreadUsage::default(),
            updates: Mutex::default(),
            start_guards: Mutex::default(),
            flags,
            ui,
            execs: Execs::default(),
            file_mutations: FileMutations::default(),
            sessions: Sessions::default(),
            stale_calls: StaleCalls::default(),
            agent_waits: AgentWaits::default(),
            mutations: Mutations::default(),
            proposals: Proposals::default(),
            reported_warnings: Mutex::default(),
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
            shutting_down: AtomicBool::new(false),
            exit_code: OnceLock::new(),
            current: Mutex::default(),
            isolate_end: Mutex::default(),
            queued_wait_at_start: Mutex::default(),
            reports,
            console,
            generation,
            imports: OnceLock::new(),
        })
    }

    /// Connects the session; action methods work from here on.
    pub fn bind(&self, actions: Weak<dyn Actions>) {
        // A generation is bound once, when it is installed.
        let _ = self.actions.set(actions);
        self.provisions.installed.notify_waiters();
    }

    /// Returns whether action methods work.
    pub fn is_bound(&self) -> bool {
        self.actions.get().is_some()
    }

    /// Returns the session, if there is one already.
    pub fn bound_actions(&self) -> Option<Arc<dyn Actions>> {
        self.actions.get().and_then(Weak::upgrade)
    }

    pub fn retire(&self) {
        self.stale.store(true, Ordering::Relaxed);
        self.end_time_slice(WaitOutcome::Cancelled);
    }

    /// Marks the start of the shutdown. Called before `session_shutdown`.
    pub fn begin_shutdown(&self) {
        self.shutting_down.store(true, Ordering::Relaxed);
    }

    /// Sets the exit code of pi. The first call counts.
    pub fn set_exit_code(&self, code: u8) {
        self.exit_code.get_or_init(|| code);
    }

    pub fn exit_code(&self) -> Option<u8> {
        self.exit_code.get().copied()
    }

    /// Returns how long `extension` has waited for the user since the queued handler that
    /// runs now started.
    pub fn queued_handler_wait(&self, extension: ExtensionId) -> Duration {
        let before = *self.queued_wait_at_start.lock();
        self.clock.total_wait(extension).saturating_sub(before)
    }

    /// Attributes the code that runs from now on to `extension`.
    pub fn enter(&self, extension: ExtensionId, what: &str) {
        *self.current.lock() = Attribution {
            extension,
            what: what.to_string(),
        };
    }

    /// Stores the record of files that extensions were loaded from.
    pub fn set_imports(&self, imports: Imports) {
        // Each generation has one isolate, so this is set once.
        let _ = self.imports.set(imports);
    }

    pub fn imports(&self) -> Option<Imports> {
        self.imports.get().cloned()
    }

    /// Returns the files that an extension was loaded from.
    pub fn files_of(&self, extension: ExtensionId) -> Vec<PathBuf> {
        let imports = self.imports.get();
        imports
            .map(|imports| imports.of(extension))
            .unwrap_or_default()
    }

    pub fn current(&self) -> Attribution {
        self.current.lock().clone()
    }

    pub fn generation(&self) -> u32 {
        self.generation
    }

    pub fn report(&self, extension: ExtensionId, event: &str, error: impl Into<String>) {
        let error = ExtensionError::new(self.registry.lock().path(extension), event, error);
        self.emit(Event::ExtensionError(error));
    }

    /// Like [`Self::report`], for a value that the extension's code threw.
    pub fn report_thrown(
        &self,
        extension: ExtensionId,
        event: &str,
        plain: String,
        stack: Option<String>,
    ) {
        let path = self.registry.lock().path(extension);
        let error = ExtensionError::thrown(path, event, plain, stack);
        self.emit(Event::ExtensionError(error));
    }

    /// Adds a finished call to the extension's counters.
    pub fn add_calls(&self, extension: ExtensionId, event: &str, tally: Tally) {
        let path = self.registry.lock().path(extension);
        self.reports.counters.add_calls(path, event, tally);
    }

    /// Adds time on the JavaScript thread to the extension's counters.
    pub(super) fn add_busy(&self, extension: ExtensionId, time: Duration) {
        let path = self.registry.lock().path(extension);
        self.reports.counters.add_busy(&path, time);
    }

    pub fn add_load(&self, extension: ExtensionId, took: Duration) {
        let path = self.registry.lock().path(extension);
        self.reports.counters.add_load(&path, took);
    }

    /// Returns when all events emitted so far are shown to the user.
    pub async fn wait_shown(&self) {
        self.reports.delivery.wait_shown().await;
    }

    /// Sends an event to the user. Never waits, because JavaScript may be blocked
    /// meanwhile; without room in the channel the event is dropped and logged.
    pub fn emit(&self, event: Event) {
        match self.reports.events.try_send(event) {
            Ok(()) => self.reports.delivery.mark_sent(),
            Err(error) => tracing::warn!("an extension's report was dropped: {error}"),
        }
    }

    /// Returns the extension whose code it was. Code without a mark belongs to the
    /// extension that ran last.
    pub(super) fn attribute(&self, author: Option<Author>) -> Attribution {
        let current = self.current();
        let Some(Author { id, what }) = author else {
            return current;
        };
        let what = match what.is_empty() {
            true if current.extension == id => current.what,
            true => "uncaught".to_string(),
            false => what,
        };
        Attribution {
            extension: id,
            what,
        }
    }

    fn record_stop(&self, ending: IsolateEnd, author: Option<Author>) {
        self.end_time_slice(WaitOutcome::Stopped);
        let attribution = self.attribute(author);
        *self.current.lock() = attribution.clone();
        *self.isolate_end.lock() = Some(ending.clone());
        let path = self.registry.lock().path(attribution.extension);
        if self.shutting_down.load(Ordering::Relaxed) {
            let sentence = format!("The extension was {ending}");
            let error = ending.to_error(path, attribution.what, sentence);
            self.emit(Event::ExtensionError(error));
            return;
        }
        self.reports.stops.push(Stopped {
            generation: self.generation,
            was_installed: self.is_bound(),
            path,
            attribution,
            ending,
        });
    }

    /// Returns why the isolate stopped, if it did.
    pub fn isolate_end(&self) -> Option<IsolateEnd> {
        self.isolate_end.lock().clone()
    }

    /// Returns the tool options of the session, or defaults while extensions load.
    fn tool_options(&self) -> ToolOptions {
        match self.actions.get().and_then(Weak::upgrade) {
            Some(actions) => actions.tool_options(),
            None => ToolOptions::default(),
        }
    }

    /// Fails if this generation was replaced, unless the arguments name an open stale call.
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

    /// Returns the session for a call with these arguments. Fails if the generation is
    /// stale or not bound yet.
    pub(super) fn actions(&self, args: &str) -> Result<Arc<dyn Actions>, HostError> {
        self.check_stale(args)?;
        self.actions.get().and_then(Weak::upgrade).ok_or_else(|| {
            HostError::new(
                "Extension runtime not initialized. Action methods cannot be called during \
                 extension loading.",
            )
        })
    }

    fn handle_sync(&self, method: &str, args: &str) -> BridgeResult {
        match method {
            "enter" => {
                let enter: EnterArgs = parse(method, args)?;
                if enter.queued {
                    let extension = enter.attribution.extension;
                    *self.queued_wait_at_start.lock() = self.clock.total_wait(extension);
                    self.thread_usage.set_queued(Some(extension));
                }
                *self.current.lock() = enter.attribution;
                return Ok(Value::Null);
            }
            "report" => {
                let report: ReportArgs = parse(method, args)?;
                let stack = js_runtime::readable_stack(&report.error);
                let extension = report.extension;
                let extension = extension.unwrap_or_else(|| self.current().extension);
                let path = self.registry.lock().path(extension);
                let error = ExtensionError::thrown(path, report.event, report.plain, Some(stack));
                self.emit(Event::ExtensionError(match report.warning {
                    true => error.as_warning(),
                    false => error,
                }));
                return Ok(Value::Null);
            }
            "result.ignored" => {
                self.warn_of_ignored_result(parse(method, args)?);
                return Ok(Value::Null);
            }
            "debugger.waits" => {
                debugger::note(args);
                return Ok(Value::Null);
            }
            "stale.check" => return self.check_stale(args).map(|()| Value::Null),
            "pi.getFlag" => return self.flag(args),
            "pi.execKill" => {
                self.execs.kill(parse::<TokenArgs>(method, args)?.token);
                return Ok(Value::Null);
            }
            "ui.cancel" => {
                self.ui
                    .cancel(self.ui_token(parse::<TokenArgs>(method, args)?.token));
                return Ok(Value::Null);
            }
            "tool.started" => {
                let TokenArgs { token } = parse(method, args)?;
                self.start_guards.lock().remove(&token);
                return Ok(Value::Null);
            }
            "tool.update" => {
                let update: ToolUpdateArgs = parse_stored(method, args)?;
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
            return self.file_mutations.release(method, args);
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
            .or_else(|| self.mutations.serve(method, args))
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

    /// Handles calls that may replace the session. The replaced generation may hold the
    /// prepared session, and a stale call keeps it alive until the command has finished.
    async fn handle_replacement(
        &self,
        actions: &dyn Actions,
        method: &str,
        args: &str,
    ) -> BridgeResult {
        let given: Option<ReplacementArgs> = parse(method, args)?;
        let given = given.unwrap_or_default();
        // The stale call starts before the replacement, because a replaced generation
        // without open stale calls ends.
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

    /// Returns a token that is unique among generations.
    fn ui_token(&self, token: u64) -> u64 {
        u64::from(self.generation) << 32 | token
    }

    async fn handle_async(self: Arc<Self>, method: &str, args: &str) -> BridgeResult {
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
            return self.file_mutations.acquire(method, args, token).await;
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
                let ask: UiRequestArgs = parse(method, args)?;
                let method = ui_method(args)?;
                let timeout = ask.timeout.and_then(milliseconds);
                let _waiting = self.clock.pause(ask.extension);
                let _prompt = actions.ui_prompt(&method);
                let token = Some(self.ui_token(ask.token));
                Ok(match self.ui.ask(&*actions, method, token, timeout).await {
                    UiAnswer::Value(value) => json!({ "value": value }),
                    UiAnswer::Confirmed(confirmed) => json!({ "confirmed": confirmed }),
                    UiAnswer::Cancelled => json!({ "cancelled": true }),
                })
            }
            _ => {
                let owner = parse::<CallerArgs>(method, args).ok();
                // Time spent waiting for the agent or the user is not the extension's.
                // Nothing waits for a compaction; its handlers have their own limits.
                let waits = owner.as_ref().filter(|_| method != "ctx.compact");
                let _waiting = waits.map(|owner| self.clock.pause(owner.extension));
                let during = owner.as_ref().and_then(|owner| owner.during.as_deref());
                if let Some(event) = during.filter(|name| table::blocks_session(name)) {
                    // The session waits for this handler.
                    if method == "ctx.waitForIdle" {
                        actions.wait_for_run().await;
                        return Ok(Value::Null);
                    }
                    if actions.is_held(method == "ctx.navigateTree") {
                        return Err(session_waits_error(method, event));
                    }
                }
                if method == "ctx.waitForIdle"
                    && let Some(event) = during.filter(|name| table::blocks_run(name))
                {
                    return Err(HostError::new(format!(
                        "ctx.waitForIdle() cannot be waited for in a handler of {event}: the run \
                         goes on only when the handler has answered. Call it without waiting, or \
                         in agent_end"
                    )));
                }
                let yields = owner.is_some_and(|owner| owner.queued && method != "pi.setModel");
                let _yielding = yields.then(|| self.agent_waits.begin());
                self.handle_replacement(&*actions, method, args).await
            }
        }
    }
}

fn session_waits_error(method: &str, event: &str) -> HostError {
    HostError::new(format!(
        "{method}() cannot be waited for in a handler of {event}: the session waits for the handler. \
         Call it when that is over, after session_start, session_compact or session_tree"
    ))
}
