//! Emits the last events of a generation: the signal that ends pi, and `exit`, where
//! packages kill their child processes and remove their lock files.

use std::sync::Arc;
use std::time::Duration;

use js_runtime::{CallError, Runtime, Stop, readable_stack};
use serde::Deserialize;

use super::generation::STUCK_THRESHOLD;
use crate::bridge::BridgeHost;
use crate::registry::ExtensionId;
use pi_agent::event::{Event, ExtensionError};

const EXIT_EVENT: &str = "exit";

/// How long listeners of the signal may take before `session_shutdown` is emitted.
const SIGNAL_TIMEOUT: Duration = Duration::from_millis(500);

/// How long finding the extension of a hanging listener may take.
const ATTRIBUTION_TIMEOUT: Duration = Duration::from_secs(1);

/// A value that a listener threw.
#[derive(Deserialize)]
struct ThrownError {
    #[serde(default)]
    extension: Option<ExtensionId>,
    error: String,
    plain: String,
}

/// Results of the listeners.
#[derive(Default, Deserialize)]
struct ListenerResults {
    thrown: Vec<ThrownError>,
    /// The argument of `process.exit(code)`, after a signal.
    code: Option<i32>,
}

/// Returns the signal's name and number for an exit code of pi.
fn signal_for_exit_code(code: u8) -> Option<(&'static str, u8)> {
    match code {
        129 => Some(("SIGHUP", 1)),
        130 => Some(("SIGINT", 2)),
        143 => Some(("SIGTERM", 15)),
        _ => None,
    }
}

/// Emits the signal that `code` stands for, if it stands for one. A listener that hangs is
/// stopped later, by [`emit_exit`].
pub async fn emit_signal(
    runtime: &Runtime,
    host: &BridgeHost,
    limit: Duration,
    code: u8,
) -> Vec<ExtensionError> {
    let Some(signal) = signal_for_exit_code(code).filter(|_| runtime.stopped().is_none()) else {
        return Vec::new();
    };
    let args = serde_json::json!(signal).to_string();
    let emitted = runtime.call("signal", args);
    match tokio::time::timeout(limit.min(SIGNAL_TIMEOUT), emitted).await {
        Ok(Ok(result)) => read_errors(host, signal.0, result),
        _ => Vec::new(),
    }
}

/// Emits `exit` with `code` and waits at most `limit` for the listeners. Skips an isolate
/// that is stopped or stuck. Returns what listeners threw.
pub async fn emit_exit(
    runtime: &Runtime,
    host: &BridgeHost,
    limit: Duration,
    code: u8,
) -> Vec<ExtensionError> {
    if runtime.stopped().is_some() {
        return Vec::new();
    }
    // An isolate that stops now is not reloaded.
    host.begin_shutdown();
    let emitted = async {
        // A process may not even answer that.
        let busy = runtime.busy_for().await;
        match busy.is_some_and(|busy| busy >= STUCK_THRESHOLD) {
            true => Ok(None),
            false => runtime.call(EXIT_EVENT, code.to_string()).await,
        }
    };
    let result = match tokio::time::timeout(limit, emitted).await {
        Ok(Ok(result)) => result,
        // The code that stopped it reports that.
        Ok(Err(CallError::Stopped(_) | CallError::Gone)) => None,
        Ok(Err(CallError::Thrown { message, .. })) => {
            tracing::warn!("exit: {message}");
            None
        }
        Err(_) => {
            let attribution = async {
                if runtime.stop_if_busy(limit / 2).await {
                    runtime.wait_until_reported().await;
                }
            };
            let _ = tokio::time::timeout(ATTRIBUTION_TIMEOUT, attribution).await;
            None
        }
    };
    read_errors(host, EXIT_EVENT, result)
}

fn read_errors(host: &BridgeHost, event: &str, result: Option<String>) -> Vec<ExtensionError> {
    let results = result.and_then(|json| serde_json::from_str::<ListenerResults>(&json).ok());
    let ListenerResults { thrown, code } = results.unwrap_or_default();
    if let Some(code) = code {
        // As the operating system does: the lowest byte.
        host.set_exit_code(code.to_le_bytes()[0]);
    }
    let thrown = thrown.into_iter();
    thrown.map(|thrown| to_error(host, event, thrown)).collect()
}

fn to_error(host: &BridgeHost, event: &str, thrown: ThrownError) -> ExtensionError {
    let stack = readable_stack(&thrown.error);
    let author = || {
        host.imports()
            .and_then(|imports| imports.extension_of(&stack))
    };
    let extension = thrown.extension.or_else(author);
    let extension = extension.unwrap_or(host.current().extension);
    let path = host.registry.lock().path(extension);
    ExtensionError::from_thrown(path, event, thrown.plain, Some(stack))
}

/// Emits `exit` without a caller that waits, then stops the isolate.
pub async fn emit_exit_and_stop(runtime: Arc<Runtime>, host: Arc<BridgeHost>, limit: Duration) {
    for error in emit_exit(&runtime, &host, limit, 0).await {
        host.emit(Event::ExtensionError(error));
    }
    runtime.stop(Stop::Requested);
}
