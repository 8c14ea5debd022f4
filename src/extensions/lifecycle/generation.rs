//! A generation: one loaded set of extensions with its isolate, registry and event queue.
//! Each reload makes a new one.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt;
use js_runtime::{CallError, Memory, RetainedHeap, Runtime, Stop};
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::shutdown;
use crate::bridge::BridgeHost;
use crate::events::queue::EventQueue;
use crate::limits::abandoned::AbandonedHandlers;
use crate::limits::counters::Tally;
use crate::limits::open_calls::OpenCallGuard;
use crate::limits::thread_usage::CountGuard;
use crate::registry::{ExtensionId, FunctionId};
use pi_agent::event::{ExtensionError, WaitOutcome};
use pi_resources::settings::ExtensionTimeouts;

/// Maximum size of a handler's result, in bytes of JSON.
const MAX_RESULT_BYTES: usize = 64 << 20;

/// Time limit for queries to the isolate: its memory, or the position of a function.
const QUERY_TIMEOUT: Duration = Duration::from_millis(500);

/// Time limit for a heap snapshot. JavaScript may be busy before it starts, and a large heap takes
/// seconds, on a busy machine many times that.
pub const HEAP_SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(120);

/// Code that has run for less is slow, not stuck: it may have to be compiled first.
pub const STUCK_THRESHOLD: Duration = Duration::from_secs(1);

/// A loaded set of extensions. Without extensions there is no isolate and no cost.
pub struct Generation {
    pub host: Arc<BridgeHost>,
    pub timeouts: ExtensionTimeouts,
    pub event_queue: EventQueue,
    pub abandoned: Arc<AbandonedHandlers>,
    pub(crate) runtime: Option<Arc<Runtime>>,
    /// Whether `exit` was emitted, or is being emitted.
    exit_emitted: AtomicBool,
    /// Shutdowns without a caller that waits.
    shutdown_tasks: TaskTracker,
    handle: Handle,
    tokens: AtomicU64,
    /// The run that was aborted while a handler hung; runs count from 1.
    pub aborted_run: AtomicU64,
    /// Whether the generation was closed. Then no handler is called.
    closed: AtomicBool,
    /// Whether `session_start` was emitted. `session_shutdown` is emitted only after it.
    pub session_started: AtomicBool,
    /// Held while `session_start` is handled.
    pub session_start_lock: tokio::sync::Mutex<()>,
}

/// Why a call of an extension's function has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// The function threw. Holds the message, the author's text and the stack.
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
    #[error(
        "The command was ended, because a reload or a change of the session replaced its \
         extension. Call ctx.reload() last, or let extensionWatch reload: it waits for commands"
    )]
    Replaced,
}

impl CallFailure {
    /// Returns the thrown text as a model sees it: the message of an error, which may be
    /// empty, or any other value as text.
    pub fn plain(&self) -> String {
        match self {
            Self::Thrown { plain, .. } => plain.clone(),
            other => other.to_string(),
        }
    }

    /// Makes the error to report.
    pub fn to_error(&self, path: impl Into<String>, event: impl Into<String>) -> ExtensionError {
        let (plain, stack) = self.parts();
        ExtensionError::from_thrown(path, event, plain, stack)
    }

    /// Returns the message as in the original, and the stack as JavaScript formats it.
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

    pub fn internal(message: String) -> Self {
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
        timeouts: ExtensionTimeouts,
        runtime: Option<Arc<Runtime>>,
        shutdown_tasks: TaskTracker,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| {
            host.provider_registrations.attach(this.clone());
            Self {
                event_queue: EventQueue::start(this.clone()),
                abandoned: Arc::default(),
                host,
                timeouts,
                runtime,
                exit_emitted: AtomicBool::new(false),
                shutdown_tasks,
                handle: Handle::current(),
                tokens: AtomicU64::new(1),
                aborted_run: AtomicU64::new(0),
                closed: AtomicBool::new(false),
                session_started: AtomicBool::new(false),
                session_start_lock: tokio::sync::Mutex::default(),
            }
        })
    }

    pub fn token(&self) -> u64 {
        self.tokens.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the handlers of an event; none of a closed generation.
    pub fn handlers(&self, event: &str) -> Vec<(ExtensionId, FunctionId)> {
        match self.is_closed() {
            true => Vec::new(),
            false => self.host.registry.lock().handlers(event),
        }
    }

    pub fn has_handlers(&self, event: &str) -> bool {
        !self.is_closed() && self.host.registry.lock().has_handlers(event)
    }

    /// Calls a function of `js/bridge/calls.ts` and returns its result as JSON. Only the
    /// watchdog limits the time.
    pub async fn call(
        &self,
        function: &str,
        args: &impl Serialize,
    ) -> Result<Option<String>, CallFailure> {
        let runtime = self.runtime.as_ref().ok_or(CallFailure::Gone)?;
        call_runtime(runtime, function, to_json(args)?).await
    }

    /// Like [`Self::call`], but the function is called even if this future is dropped before the
    /// isolate reaches the call, unless the isolate takes longer than the limit of a shutdown.
    pub async fn call_detached(
        &self,
        function: &'static str,
        args: &impl Serialize,
    ) -> Result<Option<String>, CallFailure> {
        let runtime = self.runtime.clone().ok_or(CallFailure::Gone)?;
        let args = to_json(args)?;
        let limit = self.timeouts.shutdown;
        let (mut reply, result) = oneshot::channel();
        let mut task = Box::pin(async move {
            let mut call = pin!(call_runtime(&runtime, function, args));
            let result = tokio::select! {
                biased;
                result = &mut call => Some(result),
                () = reply.closed() => None,
            };
            // An error means that the caller has dropped its future.
            match result {
                Some(result) => _ = reply.send(result),
                None => _ = tokio::time::timeout(limit, call).await,
            }
        });
        // The isolate gets the call before any that the caller makes next.
        let first_try = tokio::task::coop::unconstrained(&mut task);
        if first_try.now_or_never().is_none() {
            self.handle.spawn(task);
        }
        result.await.unwrap_or(Err(CallFailure::Gone))
    }

    /// Returns whether the isolate was stopped and is being replaced.
    pub fn is_broken(&self) -> bool {
        let stop = self.runtime.as_ref().and_then(|runtime| runtime.stopped());
        stop.is_some_and(|reason| reason != Stop::Requested)
    }

    /// Like [`Self::call`], for a function of `extension` with a time limit. Time in which
    /// the extension waits for the user or the thread does not count. `event` is the event
    /// it is called for.
    pub async fn call_within(
        &self,
        extension: ExtensionId,
        event: &str,
        limit: Duration,
        what: impl FnOnce() -> String,
        function: &str,
        args: &impl Serialize,
    ) -> Result<Option<String>, CallFailure> {
        let call = self.call(function, args);
        self.limit_call(extension, event, limit, what, call).await
    }

    /// Waits for the result of a call as [`Self::call_within`] does.
    pub async fn limit_call(
        &self,
        extension: ExtensionId,
        event: &str,
        limit: Duration,
        what: impl FnOnce() -> String,
        call: impl Future<Output = Result<Option<String>, CallFailure>>,
    ) -> Result<Option<String>, CallFailure> {
        let mut wait = self.host.slow_notice(extension, event, limit);
        let call = async {
            tokio::select! {
                biased;
                result = call => result,
                () = self.host.clock.expire(extension, limit) => {
                    self.stop_if_stuck(Some(extension), limit).await;
                    Err(CallFailure::Deadline { what: what(), limit })
                }
            }
        };
        let meter = CallMeter::start(&self.host, extension, event);
        let result = wait.during(call).await;
        wait.finish(outcome(&result));
        meter.stop(&result);
        result
    }

    /// Like [`Self::source_position_of`], if the failure is a timeout.
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

    /// Returns the position of a registered function, as a stack frame.
    pub async fn source_position_of(&self, function: FunctionId) -> Option<String> {
        let query = tokio::time::timeout(QUERY_TIMEOUT, self.call("sourcePositionOf", &function));
        let frame = query.await.ok()?.ok()??;
        Some(js_runtime::readable_stack(&frame)).filter(|frame| !frame.is_empty())
    }

    /// Returns the memory usage of the isolate, if there is one and it responds.
    pub async fn memory(&self) -> Option<Memory> {
        self.runtime.as_ref()?.memory(QUERY_TIMEOUT).await
    }

    /// Returns heap usage by extension; `None` as for [`Self::memory`].
    pub async fn retained_heap(&self) -> Option<Result<RetainedHeap, String>> {
        self.runtime
            .as_ref()?
            .retained_heap(HEAP_SNAPSHOT_TIMEOUT)
            .await
    }

    /// Like [`Self::call_within`], with an optional limit.
    pub async fn call_with_limit(
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
                let meter = CallMeter::start(&self.host, extension, event);
                let result = self.call(function, args).await;
                meter.stop(&result);
                result
            }
        }
    }

    /// Stops the isolate if the handler that timed out does not yield the thread. A handler
    /// that only awaits is abandoned instead. `None` stands for a queued handler. Does
    /// nothing if another extension, which has its own limit, holds the thread.
    pub async fn stop_if_stuck(&self, extension: Option<ExtensionId>, limit: Duration) {
        if let Some(runtime) = &self.runtime
            && !self.host.thread_usage.is_other_running(extension)
        {
            runtime.stop_if_busy((limit / 2).max(STUCK_THRESHOLD)).await;
        }
    }

    /// Returns when the isolate has responded, or was stopped because it did not.
    pub async fn wait_responsive(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.busy_for().await;
        }
    }

    /// Emits the signal that ends pi, if `code` is the exit code of one.
    pub async fn emit_signal(&self, code: u8) -> Vec<ExtensionError> {
        match &self.runtime {
            Some(runtime) => {
                shutdown::emit_signal(runtime, &self.host, self.timeouts.shutdown, code).await
            }
            None => Vec::new(),
        }
    }

    /// Returns whether the generation was closed, which precedes the load of the next one.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Marks the generation as closed, so that no handler is called.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.host.begin_shutdown();
        self.host.retire();
    }

    /// Emits `exit` once and ends everything that extensions hold: timers, sockets,
    /// watchers. Returns what listeners threw.
    pub async fn end(&self, code: u8) -> Vec<ExtensionError> {
        let thrown = self.emit_exit(code).await;
        if let Some(runtime) = &self.runtime {
            runtime.stop(Stop::Requested);
        }
        thrown
    }

    /// Emits `exit` once and closes what extensions hold. The isolate goes on for open stale
    /// calls. Returns what listeners threw.
    pub async fn release(&self) -> Vec<ExtensionError> {
        let thrown = self.emit_exit(0).await;
        if let Some(runtime) = &self.runtime {
            // The watchdog stops an isolate that does not answer.
            let _ = tokio::time::timeout(self.timeouts.shutdown, runtime.release()).await;
        }
        thrown
    }

    /// Emits `exit` unless that was done. Returns what listeners threw.
    async fn emit_exit(&self, code: u8) -> Vec<ExtensionError> {
        match &self.runtime {
            Some(runtime) if !self.exit_emitted.swap(true, Ordering::Relaxed) => {
                shutdown::emit_exit(runtime, &self.host, self.timeouts.shutdown, code).await
            }
            _ => Vec::new(),
        }
    }

    /// Returns when the stopped isolate is gone and its last reports are out.
    pub async fn wait_ended(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.wait_ended().await;
        }
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take()
            && !self.exit_emitted.load(Ordering::Relaxed)
        {
            let shutdown =
                shutdown::emit_exit_and_stop(runtime, self.host.clone(), self.timeouts.shutdown);
            self.shutdown_tasks.spawn_on(shutdown, &self.handle);
        }
    }
}

fn to_json(args: &impl Serialize) -> Result<String, CallFailure> {
    serde_json::to_string(args).map_err(|error| CallFailure::internal(error.to_string()))
}

/// Calls a function of the bridge with JSON, as [`Generation::call`] does.
async fn call_runtime(
    runtime: &Runtime,
    function: &str,
    args: String,
) -> Result<Option<String>, CallFailure> {
    let result = runtime.call(function, args).await;
    let result = result.map_err(|error| match error {
        CallError::Thrown {
            message,
            plain,
            stack,
        } => CallFailure::Thrown {
            message,
            plain,
            stack,
        },
        CallError::Stopped(reason) => CallFailure::Stopped(stop_reason_text(reason)),
        CallError::Gone => CallFailure::Gone,
    })?;
    match result.as_ref().map_or(0, String::len) {
        0..=MAX_RESULT_BYTES => Ok(result),
        length => Err(CallFailure::internal(format!(
            "RangeError: The result has {} MB of JSON; the limit is {} MB",
            length >> 20,
            MAX_RESULT_BYTES >> 20
        ))),
    }
}

/// Adds a call to the extension's counters when dropped, also after a timeout.
struct CallMeter<'a> {
    host: &'a BridgeHost,
    extension: ExtensionId,
    event: &'a str,
    started: Instant,
    /// Total wait of the extension before the call.
    waited: Duration,
    failed: bool,
    _called: CountGuard<'a>,
    _open: OpenCallGuard<'a>,
}

impl<'a> CallMeter<'a> {
    fn start(host: &'a BridgeHost, extension: ExtensionId, event: &'a str) -> Self {
        Self {
            host,
            extension,
            event,
            started: Instant::now(),
            waited: host.clock.total_wait(extension),
            failed: true,
            _called: host.thread_usage.count_call(extension),
            _open: host.open_calls.begin(extension, event),
        }
    }

    fn stop<T>(mut self, result: &Result<T, CallFailure>) {
        self.failed = result.is_err();
    }
}

impl Drop for CallMeter<'_> {
    fn drop(&mut self) {
        let waited = self.host.clock.total_wait(self.extension);
        let waited = waited.saturating_sub(self.waited);
        let took = self.started.elapsed().saturating_sub(waited);
        let tally = Tally {
            calls: 1,
            failures: u64::from(self.failed),
            time: took,
            slowest: took,
        };
        self.host.add_calls(self.extension, self.event, tally);
    }
}

/// Returns the outcome for a slow notice.
pub fn outcome<T>(result: &Result<T, CallFailure>) -> WaitOutcome {
    match result {
        Ok(_) | Err(CallFailure::Thrown { .. }) => WaitOutcome::Settled,
        Err(CallFailure::Deadline { .. }) => WaitOutcome::Abandoned,
        Err(CallFailure::Cancelled) => WaitOutcome::Cancelled,
        Err(CallFailure::Stopped(_) | CallFailure::Gone | CallFailure::Replaced) => {
            WaitOutcome::Stopped
        }
    }
}

pub fn stop_reason_text(reason: Stop) -> Cow<'static, str> {
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
        Stop::Tampered(damage) => damage.sentence().into(),
        Stop::Requested => "on request".into(),
        Stop::Exited(death) => format!("the process of the extensions {death} while it ran").into(),
        Stop::Unresponsive => {
            "the process of the extensions did not answer any more while it ran".into()
        }
    }
}
