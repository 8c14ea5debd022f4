//! One set of loaded extensions: an isolate, what was registered in it, and the
//! queue of what it is told. A reload makes another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use js_runtime::{CallError, Runtime, Stop};
use serde::Serialize;

use super::deadline::Limits;
use super::host::BridgeHost;
use super::notifications::Notifications;
use super::registry::ExtensionId;

/// Without extensions there is no isolate, and nothing here costs anything.
pub struct Generation {
    pub host: Arc<BridgeHost>,
    pub limits: Limits,
    pub notifications: Notifications,
    runtime: Option<Arc<Runtime>>,
    tokens: AtomicU64,
}

/// Why a call of an extension's function brought no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// It threw; the message, and where.
    #[error("{message}")]
    Thrown { message: String, stack: String },
    #[error("{what} did not answer within {} s (settings: extensionTimeouts) and was left behind", limit.as_secs_f64())]
    Deadline { what: String, limit: Duration },
    #[error("Operation aborted")]
    Cancelled,
    #[error("The extension host was stopped ({0}); its extensions are being loaded again")]
    Stopped(&'static str),
    #[error("No extensions are loaded")]
    Gone,
}

impl CallFailure {
    /// The message alone, without the class of the error, as a model is told.
    pub fn plain(&self) -> String {
        let text = self.to_string();
        match text.split_once(": ") {
            Some((class, message)) if class.ends_with("Error") && !class.contains(' ') => {
                message.to_string()
            }
            _ => text,
        }
    }

    /// With the stack, for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Thrown { message, stack } if !stack.is_empty() => format!("{message}\n{stack}"),
            other => other.to_string(),
        }
    }
}

impl Generation {
    pub fn new(host: Arc<BridgeHost>, limits: Limits, runtime: Option<Arc<Runtime>>) -> Arc<Self> {
        Arc::new_cyclic(|this| {
            host.provisions.attach(this.clone());
            Self {
                notifications: Notifications::start(this.clone()),
                host,
                limits,
                runtime,
                tokens: AtomicU64::new(1),
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
        let args = serde_json::to_string(args).map_err(|error| CallFailure::Thrown {
            message: error.to_string(),
            stack: String::new(),
        })?;
        runtime
            .call(function, args)
            .await
            .map_err(|error| match error {
                CallError::Thrown { message, stack } => CallFailure::Thrown { message, stack },
                CallError::Stopped(reason) => CallFailure::Stopped(stop_text(reason)),
                CallError::Gone => CallFailure::Gone,
            })
    }

    /// [`Self::call`] for a function of `extension` that may take `limit`, the
    /// time in which it waits for the user not counted.
    pub async fn call_within(
        &self,
        extension: ExtensionId,
        limit: Duration,
        what: impl FnOnce() -> String,
        function: &str,
        args: &impl Serialize,
    ) -> Result<Option<String>, CallFailure> {
        tokio::select! {
            answer = self.call(function, args) => answer,
            () = self.host.waits.expire(extension, limit) => {
                self.stop_if_stuck(limit);
                Err(CallFailure::Deadline { what: what(), limit })
            }
        }
    }

    /// A handler that merely awaits is left behind; one that does not give the
    /// thread back takes the isolate with it.
    pub fn stop_if_stuck(&self, limit: Duration) {
        if let Some(runtime) = &self.runtime
            && runtime.busy_for().is_some_and(|busy| busy >= limit / 2)
        {
            runtime.stop(Stop::Deadline);
        }
    }

    /// Ends everything that the extensions hold: timers, sockets, watchers.
    pub fn stop(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.stop(Stop::Asked);
        }
    }

    /// Waits until what was stopped is gone and its last words are out.
    pub async fn ended(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.ended().await;
        }
    }
}

pub fn stop_text(reason: Stop) -> &'static str {
    match reason {
        Stop::Deadline => "it did not give the thread back in time",
        Stop::OutOfMemory => "it used up its memory",
        Stop::Asked => "on request",
    }
}
