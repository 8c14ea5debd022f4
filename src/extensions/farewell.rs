//! The last thing that a set of extensions hears: `exit` on `process`, where packages
//! kill their children and remove their lock files.

use std::sync::Arc;
use std::time::Duration;

use js_runtime::{CallError, Runtime, Stop, readable_stack};
use serde::Deserialize;

use super::generation::STUCK;
use super::host::BridgeHost;
use super::registry::ExtensionId;
use crate::agent::event::{Event, ExtensionError};

const EVENT: &str = "exit";

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
    let thrown = answer.and_then(|json| serde_json::from_str::<Vec<Thrown>>(&json).ok());
    let thrown = thrown.unwrap_or_default();
    thrown
        .into_iter()
        .map(|thrown| tell_of(host, thrown))
        .collect()
}

fn tell_of(host: &BridgeHost, thrown: Thrown) -> ExtensionError {
    let stack = readable_stack(&thrown.error);
    let author = || host.imports().and_then(|imports| imports.author_of(&stack));
    let extension = thrown.extension.or_else(author);
    let extension = extension.unwrap_or(host.current().extension);
    let path = host.registry.lock().path(extension);
    ExtensionError::thrown(path, EVENT, thrown.plain, Some(stack))
}

/// The same, while nobody waits for it; then the isolate ends.
pub async fn say_and_end(runtime: Arc<Runtime>, host: Arc<BridgeHost>, limit: Duration) {
    for error in say(&runtime, &host, limit, 0).await {
        host.tell(Event::ExtensionError(error));
    }
    runtime.stop(Stop::Asked);
}
