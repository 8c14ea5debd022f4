//! One set of loaded extensions: an isolate, what was registered in it, and the
//! queue of what it is told. A reload makes another one.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use js_runtime::{CallError, HeapOwners, Memory, Runtime, Stop};
use serde::Serialize;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::shutdown;
use crate::agent::event::ExtensionError;
use crate::extensions::Limits;
use crate::extensions::bridge::BridgeHost;
use crate::extensions::events::queue::EventQueue;
use crate::extensions::limits::abandoned::AbandonedHandlers;
use crate::extensions::limits::counters::Tally;
use crate::extensions::limits::slow_notice::Outcome;
use crate::extensions::limits::thread_usage::CountGuard;
use crate::extensions::registry::{ExtensionId, FunctionId};

/// The most bytes of JSON that a handler may answer with.
const LARGEST: usize = 64 << 20;

/// How long the isolate may take to say what it holds, or where a function is.
const MOMENT: Duration = Duration::from_millis(500);

/// How long to wait for what of the heap is whose: JavaScript may be at work before.
const SNAPSHOT: Duration = Duration::from_secs(20);

/// Code that has run for less is slow, not stuck: it may have to compile what it uses.
pub const STUCK: Duration = Duration::from_secs(1);

/// Without extensions there is no isolate, and nothing here costs anything.
pub struct Generation {
    pub host: Arc<BridgeHost>,
    pub limits: Limits,
    pub event_queue: EventQueue,
    pub abandoned: Arc<AbandonedHandlers>,
    pub(in crate::extensions) runtime: Option<Arc<Runtime>>,
    /// It has been told, or is being told, that it ends.
    dismissed: AtomicBool,
    /// Of those that end while nobody waits for them.
    farewells: TaskTracker,
    handle: Handle,
    tokens: AtomicU64,
    /// The run that was aborted while a handler hung; runs count from 1.
    pub aborted_run: AtomicU64,
    /// `session_start` came: `session_shutdown` is for who got that.
    pub greeted: AtomicBool,
    /// Held while it comes.
    pub greeting: tokio::sync::Mutex<()>,
}

/// Why a call of an extension's function brought no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// It threw; the message, what its author wrote of that, and where.
    #[error("{message}")]
    Thrown {
        message: String,
        plain: String,
        stack: String,
    },
    #[error("{what} timed out after {} s (setting `extensionTimeouts`); pi continues without it", limit.as_secs_f64())]
    Deadline { what: String, limit: Duration },
    #[error("Operation aborted")]
    Cancelled,
    #[error("The extension host was stopped ({0}); its extensions are being loaded again")]
    Stopped(Cow<'static, str>),
    #[error("No extensions are loaded")]
    Gone,
}

impl CallFailure {
    /// What its author wrote, as a model is told: the message of an error, empty if it has
    /// none, or anything else as text.
    pub fn plain(&self) -> String {
        match self {
            Self::Thrown { plain, .. } => plain.clone(),
            other => other.to_string(),
        }
    }

    /// As who listens is told of it.
    pub fn tell_of(&self, path: impl Into<String>, event: impl Into<String>) -> ExtensionError {
        let (plain, stack) = self.parts();
        ExtensionError::thrown(path, event, plain, stack)
    }

    /// What was thrown as the original says it, and as JavaScript does with its stack.
    pub fn parts(&self) -> (String, Option<String>) {
        match self {
            Self::Thrown {
                message,
                plain,
                stack,
            } => {
                let plain = match plain.is_empty() {
                    true => message.clone(),
                    false => plain.clone(),
                };
                let stack = (!stack.is_empty()).then(|| format!("{message}\n{stack}"));
                (plain, stack)
            }
            other => (other.to_string(), None),
        }
    }

    pub fn of_ours(message: String) -> Self {
        Self::Thrown {
            plain: message.clone(),
            message,
            stack: String::new(),
        }
    }
}

impl Generation {
    pub fn new(
        host: Arc<BridgeHost>,
        limits: Limits,
        runtime: Option<Arc<Runtime>>,
        farewells: TaskTracker,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| {
            host.provisions.attach(this.clone());
            Self {
                event_queue: EventQueue::start(this.clone()),
                abandoned: Arc::default(),
                host,
                limits,
                runtime,
                dismissed: AtomicBool::new(false),
                farewells,
                handle: Handle::current(),
                tokens: AtomicU64::new(1),
                aborted_run: AtomicU64::new(0),
                greeted: AtomicBool::new(false),
                greeting: tokio::sync::Mutex::default(),
            }
        })
    }

    pub fn token(&self) -> u64 {
        self.tokens.fetch_add(1, Ordering::Relaxed)
    }

    pub fn has_handlers(&self, event: &str) -> bool {
        self.host.registry.lock().has_handlers(event)
    }

    /// Calls a function of `js/bridge/calls.ts`; the answer is JSON. No deadline
    /// but that of the watchdog.
    pub async fn call(
        &self,
        function: &str,
        args: &impl Serialize,
    ) -> Result<Option<String>, CallFailure> {
        let runtime = self.runtime.as_ref().ok_or(CallFailure::Gone)?;
        let args =
            serde_json::to_string(args).map_err(|error| CallFailure::of_ours(error.to_string()))?;
        let answer = runtime.call(function, args).await;
        let answer = answer.map_err(|error| match error {
            CallError::Thrown {
                message,
                plain,
                stack,
            } => CallFailure::Thrown {
                message,
                plain,
                stack,
            },
            CallError::Stopped(reason) => CallFailure::Stopped(stop_text(reason)),
            CallError::Gone => CallFailure::Gone,
        })?;
        match answer.as_ref().map_or(0, String::len) {
            0..=LARGEST => Ok(answer),
            length => Err(CallFailure::of_ours(format!(
                "RangeError: The answer is too large: {} MB, where {} are the most",
                length >> 20,
                LARGEST >> 20
            ))),
        }
    }

    /// It was brought down, and everything will be loaded again.
    pub fn is_broken(&self) -> bool {
        let stop = self.runtime.as_ref().and_then(|runtime| runtime.stopped());
        stop.is_some_and(|reason| reason != Stop::Asked)
    }

    /// [`Self::call`] for a function of `extension` that may take `limit`, the
    /// time in which it waits for the user or the thread not counted. `event` is what it is called
    /// for.
    pub async fn call_within(
        &self,
        extension: ExtensionId,
        event: &str,
        limit: Duration,
        what: impl FnOnce() -> String,
        function: &str,
        args: &impl Serialize,
    ) -> Result<Option<String>, CallFailure> {
        let mut wait = self.host.slow_notice(extension, event, limit);
        let answered = async {
            tokio::select! {
                biased;
                answer = self.call(function, args) => answer,
                () = self.host.clock.expire(extension, limit) => {
                    self.stop_if_stuck(Some(extension), limit).await;
                    Err(CallFailure::Deadline { what: what(), limit })
                }
            }
        };
        let meter = Meter::start(&self.host, extension, event);
        let answer = wait.during(answered).await;
        wait.finish(outcome(&answer));
        meter.stop(&answer);
        answer
    }

    /// [`Self::source_position_of`] a function that had its time.
    pub async fn position_if_timed_out(
        &self,
        failure: &CallFailure,
        function: FunctionId,
    ) -> Option<String> {
        match failure {
            CallFailure::Deadline { .. } => self.source_position_of(function).await,
            _ => None,
        }
    }

    /// Where a function is that was registered, as the frame of a stack.
    pub async fn source_position_of(&self, function: FunctionId) -> Option<String> {
        let asked = tokio::time::timeout(MOMENT, self.call("sourcePositionOf", &function));
        let frame = asked.await.ok()?.ok()??;
        Some(js_runtime::readable_stack(&frame)).filter(|frame| !frame.is_empty())
    }

    /// What the isolate holds, if there is one and it answers.
    pub async fn memory(&self) -> Option<Memory> {
        self.runtime.as_ref()?.memory(MOMENT).await
    }

    /// What of the heap is whose. `None` as for [`Self::memory`].
    pub async fn heap_owners(&self) -> Option<Result<HeapOwners, String>> {
        self.runtime.as_ref()?.heap_owners(SNAPSHOT).await
    }

    /// [`Self::call_within`] where there may be no limit.
    pub async fn call_within_some(
        &self,
        extension: ExtensionId,
        event: &str,
        limit: Option<Duration>,
        what: impl FnOnce() -> String,
        function: &str,
        args: &impl Serialize,
    ) -> Result<Option<String>, CallFailure> {
        match limit {
            Some(limit) => {
                self.call_within(extension, event, limit, what, function, args)
                    .await
            }
            None => {
                let meter = Meter::start(&self.host, extension, event);
                let answer = self.call(function, args).await;
                meter.stop(&answer);
                answer
            }
        }
    }

    /// A handler that merely awaits is left behind; one that does not give the
    /// thread back takes the isolate with it. It is one of `extension`, or the queue's; who
    /// else holds the thread has a limit of their own.
    pub async fn stop_if_stuck(&self, extension: Option<ExtensionId>, limit: Duration) {
        if let Some(runtime) = &self.runtime
            && !self.host.thread_usage.is_other_running(extension)
        {
            runtime.stop_if_busy((limit / 2).max(STUCK)).await;
        }
    }

    /// Returns when the isolate has said that it is there, or was stopped because it did not.
    pub async fn answers(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.busy_for().await;
        }
    }

    /// Tells those who listen to the signal that the program ends by, if `code` is of one.
    pub async fn signalled(&self, code: u8) -> Vec<ExtensionError> {
        match &self.runtime {
            Some(runtime) => {
                shutdown::emit_signal(runtime, &self.host, self.limits.shutdown, code).await
            }
            None => Vec::new(),
        }
    }

    /// Tells `exit` listeners, once, and ends everything that the extensions hold: timers,
    /// sockets, watchers. Gives what the listeners threw.
    pub async fn end(&self, code: u8) -> Vec<ExtensionError> {
        let mut thrown = Vec::new();
        if let Some(runtime) = &self.runtime {
            if !self.dismissed.swap(true, Ordering::Relaxed) {
                thrown = shutdown::emit_exit(runtime, &self.host, self.limits.shutdown, code).await;
            }
            runtime.stop(Stop::Asked);
        }
        thrown
    }

    /// Waits until what was stopped is gone and its last words are out.
    pub async fn ended(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.ended().await;
        }
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take()
            && !self.dismissed.load(Ordering::Relaxed)
        {
            let farewell =
                shutdown::emit_exit_and_stop(runtime, self.host.clone(), self.limits.shutdown);
            self.farewells.spawn_on(farewell, &self.handle);
        }
    }
}

/// Charges an extension for a call, also for one that nobody waits for any more.
struct Meter<'a> {
    host: &'a BridgeHost,
    extension: ExtensionId,
    event: &'a str,
    begun: Instant,
    /// For the user and the thread, before.
    waited: Duration,
    failed: bool,
    _called: CountGuard<'a>,
}

impl<'a> Meter<'a> {
    fn start(host: &'a BridgeHost, extension: ExtensionId, event: &'a str) -> Self {
        Self {
            host,
            extension,
            event,
            begun: Instant::now(),
            waited: host.clock.total_wait(extension),
            failed: true,
            _called: host.thread_usage.count_call(extension),
        }
    }

    fn stop<T>(mut self, answer: &Result<T, CallFailure>) {
        self.failed = answer.is_err();
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        let waited = self.host.clock.total_wait(self.extension);
        let waited = waited.saturating_sub(self.waited);
        let took = self.begun.elapsed().saturating_sub(waited);
        let tally = Tally {
            calls: 1,
            failures: u64::from(self.failed),
            time: took,
            slowest: took,
        };
        self.host.add_calls(self.extension, self.event, tally);
    }
}

/// How the wait for this answer ended.
pub fn outcome<T>(answer: &Result<T, CallFailure>) -> Outcome {
    match answer {
        Ok(_) | Err(CallFailure::Thrown { .. }) => Outcome::Settled,
        Err(CallFailure::Deadline { .. }) => Outcome::Abandoned,
        Err(CallFailure::Cancelled) => Outcome::Cancelled,
        Err(CallFailure::Stopped(_) | CallFailure::Gone) => Outcome::Stopped,
    }
}

pub fn stop_text(reason: Stop) -> Cow<'static, str> {
    match reason {
        Stop::Deadline => {
            "it did not give the thread back in time, as an endless loop does (settings: \
             extensionTimeouts)"
                .into()
        }
        Stop::OutOfMemory => "it used up its memory".into(),
        Stop::OutOfDescriptors => "it used up the files and connections that pi may have open; \
                                   what it opens it has to close"
            .into(),
        Stop::Damaged(damage) => damage.sentence().into(),
        Stop::Asked => "on request".into(),
        Stop::Died(death) => format!("the process of the extensions {death} while it ran").into(),
        Stop::Unresponsive => {
            "the process of the extensions did not answer any more while it ran".into()
        }
    }
}
