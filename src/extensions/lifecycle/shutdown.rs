//! The last that a set of extensions hears: on `process` the signal that ends pi, and `exit`,
//! where packages kill their children and remove their lock files.

use std::sync::Arc;
use std::time::Duration;

use js_runtime::{CallError, Runtime, Stop, readable_stack};
use serde::Deserialize;

use super::generation::STUCK;
use crate::agent::event::{Event, ExtensionError};
use crate::extensions::bridge::BridgeHost;
use crate::extensions::registry::ExtensionId;

const EVENT: &str = "exit";

/// How long listeners of the signal may take before the session is told of its end.
const SIGNAL: Duration = Duration::from_millis(500);

/// How long it may take to find out whose listener hangs.
const BLAME: Duration = Duration::from_secs(1);

/// What a listener threw.
#[derive(Deserialize)]
struct Thrown {
    #[serde(default)]
    extension: Option<ExtensionId>,
    error: String,
    plain: String,
}

/// What came of the listeners.
#[derive(Default, Deserialize)]
struct Told {
    thrown: Vec<Thrown>,
    /// Of `process.exit(code)`, after a signal.
    code: Option<i32>,
}

/// By the exit code of the program.
fn signal_of(code: u8) -> Option<(&'static str, u8)> {
    match code {
        129 => Some(("SIGHUP", 1)),
        130 => Some(("SIGINT", 2)),
        143 => Some(("SIGTERM", 15)),
        _ => None,
    }
}

/// Lets those who listen to the signal run, if `code` is of one. Whoever hangs is dealt with
/// later, when the end is told.
pub async fn say_signal(
    runtime: &Runtime,
    host: &BridgeHost,
    limit: Duration,
    code: u8,
) -> Vec<ExtensionError> {
    let Some(signal) = signal_of(code).filter(|_| runtime.stopped().is_none()) else {
        return Vec::new();
    };
    let args = serde_json::json!(signal).to_string();
    let told = runtime.call("signal", args);
    match tokio::time::timeout(limit.min(SIGNAL), told).await {
        Ok(Ok(answer)) => hear(host, signal.0, answer),
        _ => Vec::new(),
    }
}

/// Lets the listeners run, `limit` at most; `code` is what they are told. An isolate that
/// was stopped, or is stuck, is left alone. Gives what they threw.
pub async fn say(
    runtime: &Runtime,
    host: &BridgeHost,
    limit: Duration,
    code: u8,
) -> Vec<ExtensionError> {
    if runtime.stopped().is_some() {
        return Vec::new();
    }
    // Nothing of it is to be mended.
    host.leave();
    let told = async {
        // A process may not even answer that.
        let busy = runtime.busy_for().await;
        match busy.is_some_and(|busy| busy >= STUCK) {
            true => Ok(None),
            false => runtime.call(EVENT, code.to_string()).await,
        }
    };
    let answer = match tokio::time::timeout(limit, told).await {
        Ok(Ok(answer)) => answer,
        // Whoever stopped it tells of that.
        Ok(Err(CallError::Stopped(_) | CallError::Gone)) => None,
        Ok(Err(CallError::Thrown { message, .. })) => {
            tracing::warn!("exit: {message}");
            None
        }
        Err(_) => {
            let blame = async {
                if runtime.stop_if_busy(limit / 2).await {
                    runtime.wait_until_told().await;
                }
            };
            let _ = tokio::time::timeout(BLAME, blame).await;
            None
        }
    };
    hear(host, EVENT, answer)
}

fn hear(host: &BridgeHost, event: &str, answer: Option<String>) -> Vec<ExtensionError> {
    let told = answer.and_then(|json| serde_json::from_str::<Told>(&json).ok());
    let Told { thrown, code } = told.unwrap_or_default();
    if let Some(code) = code {
        // As the system has it: the lowest byte.
        host.exits(code.to_le_bytes()[0]);
    }
    let thrown = thrown.into_iter();
    thrown.map(|thrown| tell_of(host, event, thrown)).collect()
}

fn tell_of(host: &BridgeHost, event: &str, thrown: Thrown) -> ExtensionError {
    let stack = readable_stack(&thrown.error);
    let author = || host.imports().and_then(|imports| imports.author_of(&stack));
    let extension = thrown.extension.or_else(author);
    let extension = extension.unwrap_or(host.current().extension);
    let path = host.registry.lock().path(extension);
    ExtensionError::thrown(path, event, thrown.plain, Some(stack))
}

/// The same, while nobody waits for it; then the isolate ends.
pub async fn say_and_end(runtime: Arc<Runtime>, host: Arc<BridgeHost>, limit: Duration) {
    for error in say(&runtime, &host, limit, 0).await {
        host.tell(Event::ExtensionError(error));
    }
    runtime.stop(Stop::Asked);
}
