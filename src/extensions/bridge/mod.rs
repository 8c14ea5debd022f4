//! State of the bridge for one generation: what extensions registered, their open calls and
//! attribution. The router dispatches calls of JavaScript by method name.

mod envelope;
mod host_impl;
mod register;
mod router;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use js_runtime::{Author, Console, HostError, Imports};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::DropGuard;

pub(super) use envelope::{parse, parse_explained, parse_stored, to_value};

use super::api::compaction::Summaries;
use super::api::exec::Execs;
use super::api::file_mutations::FileMutations;
use super::api::model_streams::ModelStreams;
use super::api::session_api::SessionApi;
use super::api::session_manager::OpenSessions;
use super::api::tool_runs::ToolRuns;
use super::api::ui::DialogBroker;
use super::api::user_bash::CommandOutputs;
use super::child::ChildSessions;
use super::diagnostics::ignored_results::ReportedWarnings;
use super::events::mutations::Mutations;
use super::events::turn_end::Proposals;
use super::lifecycle::reports::{Attribution, IsolateEnd, Reports, Stopped};
use super::lifecycle::stale_calls::StaleCalls;
use super::limits::counters::Tally;
use super::limits::handler_clock::HandlerClock;
use super::limits::open_calls::OpenCalls;
use super::limits::reentrancy::AgentWaits;
use super::limits::thread_usage::ThreadUsage;
use super::registry::providers::ProviderRegistrations;
use super::registry::{ExtensionId, Registry};
use pi_agent::event::{Event, ExtensionError, WaitOutcome};
use pi_ai::models::registry::ModelRegistry;
use pi_tools::ToolOptions;
use pi_tools::tool::UpdateSink;

/// Shared state of one generation of extensions.
pub struct BridgeHost {
    /// Handle for callbacks that run later.
    pub weak_self: Weak<BridgeHost>,
    pub registry: Mutex<Registry>,
    pub clock: HandlerClock,
    pub thread_usage: ThreadUsage,
    pub open_calls: OpenCalls,
    /// Sinks for partial results of running tools, by token.
    pub updates: Mutex<HashMap<u64, UpdateSink>>,
    /// Guards of tool calls that JavaScript has not started yet, if a caller waits for the
    /// start.
    pub start_guards: Mutex<HashMap<u64, DropGuard>>,
    pub flags: Arc<Mutex<HashMap<String, Value>>>,
    ui: Arc<DialogBroker>,
    execs: Execs,
    file_mutations: FileMutations,
    pub(super) sessions: OpenSessions,
    /// Calls that are allowed although this generation is stale.
    pub stale_calls: StaleCalls,
    pub agent_waits: AgentWaits,
    pub mutations: Mutations,
    pub proposals: Proposals,
    /// Warnings that were reported already.
    pub reported_warnings: Mutex<ReportedWarnings>,
    streams: ModelStreams,
    summaries: Summaries,
    tool_runs: ToolRuns,
    child_sessions: ChildSessions,
    /// Output of commands that extensions run for the user.
    pub outputs: Arc<CommandOutputs>,
    tokens: AtomicU64,
    /// Providers, sign-ins and wire APIs that extensions registered.
    pub provider_registrations: ProviderRegistrations,
    actions: OnceLock<Weak<dyn SessionApi>>,
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

/// The result of a call of JavaScript.
pub type BridgeResult = Result<Value, HostError>;

impl BridgeHost {
    pub fn new(
        generation: u32,
        registry: Registry,
        ui: Arc<DialogBroker>,
        flags: Arc<Mutex<HashMap<String, Value>>>,
        models: Arc<ModelRegistry>,
        reports: Reports,
        console: ConsoleSink,
    ) -> Arc<Self> {
        let outputs = Arc::<CommandOutputs>::default();
        Arc::new_cyclic(|weak_self| Self {
            weak_self: weak_self.clone(),
            registry: Mutex::new(registry),
            clock: HandlerClock::default(),
            thread_usage: ThreadUsage::default(),
            open_calls: OpenCalls::default(),
            updates: Mutex::default(),
            start_guards: Mutex::default(),
            flags,
            ui,
            execs: Execs::default(),
            file_mutations: FileMutations::default(),
            sessions: OpenSessions::default(),
            stale_calls: StaleCalls::default(),
            agent_waits: AgentWaits::default(),
            mutations: Mutations::default(),
            proposals: Proposals::default(),
            reported_warnings: Mutex::default(),
            streams: ModelStreams::new(tokio::runtime::Handle::current()),
            summaries: Summaries::new(tokio::runtime::Handle::current()),
            tool_runs: ToolRuns::new(tokio::runtime::Handle::current()),
            child_sessions: ChildSessions::new(tokio::runtime::Handle::current(), outputs.clone()),
            outputs,
            tokens: AtomicU64::new(1),
            provider_registrations: ProviderRegistrations::new(models),
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
    pub fn bind(&self, actions: Weak<dyn SessionApi>) {
        // A generation is bound once, when it is installed.
        let _ = self.actions.set(actions);
        self.provider_registrations.installed.notify_waiters();
    }

    /// Returns whether action methods work.
    pub fn is_bound(&self) -> bool {
        self.actions.get().is_some()
    }

    /// Returns the session, if there is one already.
    pub fn bound_actions(&self) -> Option<Arc<dyn SessionApi>> {
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
        let error = ExtensionError::from_thrown(path, event, plain, stack);
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
        if self.stale.load(Ordering::Relaxed) && !self.stale_calls.allows(args) {
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
    pub(super) fn actions(&self, args: &str) -> Result<Arc<dyn SessionApi>, HostError> {
        self.check_stale(args)?;
        self.actions.get().and_then(Weak::upgrade).ok_or_else(|| {
            HostError::new(
                "Extension runtime not initialized. Action methods cannot be called during \
                 extension loading.",
            )
        })
    }

    pub fn next_token(&self) -> u64 {
        self.tokens.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a token that is unique among generations.
    fn ui_token(&self, token: u64) -> u64 {
        u64::from(self.generation) << 32 | token
    }
}
