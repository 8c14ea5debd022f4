//! Commands that the user types with `!`. An extension may run them elsewhere (`operations`
//! in its result of `user_bash`), or have run them already.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use js_runtime::HostError;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::tool_runs::{decode, exit_code};
use crate::bridge::{BridgeResult, parse};
use crate::lifecycle::generation::Generation;
use pi_tools::command::run::UserCommandResult;
use pi_tools::remote::{RemoteCommand, RemoteCommands};
use pi_tools::tool::ToolError;

/// How to run a command, as decided by handlers of `user_bash`.
pub enum UserBash {
    /// No handler took it: run it in pi's shell.
    RunLocally,
    RunWith(Arc<dyn RemoteCommands>),
    /// The handler has run the command.
    Finished(UserCommandResult),
    /// The handler failed; the command does not run. Holds the reason.
    Failed(String),
}

/// Receivers of the output of commands that JavaScript runs.
#[derive(Default)]
pub struct CommandOutputs {
    open: Mutex<HashMap<u64, mpsc::Sender<Vec<u8>>>>,
    last: AtomicU64,
}

#[derive(Deserialize)]
struct OutputArgs {
    token: u64,
    data: String,
}

impl CommandOutputs {
    /// Registers a receiver until the guard is dropped.
    pub(crate) fn open(&self, output: mpsc::Sender<Vec<u8>>) -> OutputGuard<'_> {
        let token = self.last.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(token, output);
        OutputGuard {
            outputs: self,
            token,
        }
    }

    /// Sends output to the receiver; waits if the receiver is slow.
    pub async fn send_data(&self, method: &str, json: &str) -> BridgeResult {
        let args: OutputArgs = parse(method, json)?;
        let bytes = decode(&args.data)?;
        let output = self.open.lock().get(&args.token).cloned();
        if let Some(output) = output {
            // The command may have been aborted.
            let _ = output.send(bytes).await;
        }
        Ok(Value::Null)
    }
}

pub(crate) struct OutputGuard<'a> {
    outputs: &'a CommandOutputs,
    pub token: u64,
}

impl Drop for OutputGuard<'_> {
    fn drop(&mut self) {
        self.outputs.open.lock().remove(&self.token);
    }
}

/// The `operations` of a handler's result.
pub(crate) struct ExtensionCommands {
    pub generation: Arc<Generation>,
    /// The number under which JavaScript stores the operations.
    pub operations: u64,
}

#[async_trait]
impl RemoteCommands for ExtensionCommands {
    async fn exec(
        &self,
        command: RemoteCommand,
        output: mpsc::Sender<Vec<u8>>,
        cancel: CancellationToken,
    ) -> Result<Option<i32>, ToolError> {
        let outputs = &self.generation.host.outputs;
        let open = outputs.open(output);
        let token = open.token;
        let args = json!({
            "operations": self.operations,
            "token": token,
            "command": command.command,
            "cwd": command.cwd,
        });
        let running = self.generation.call("runUserCommand", &args);
        tokio::pin!(running);
        let ended = tokio::select! {
            ended = &mut running => ended,
            () = cancel.cancelled() => {
                // An error means that the command is gone already.
                let _ = self.generation.call("abortUserCommand", &token).await;
                running.await
            }
        };
        drop(open);
        let ended = ended.map_err(|failure| ToolError::new(failure.plain()))?;
        let ended: Value = serde_json::from_str(ended.as_deref().unwrap_or("null"))
            .map_err(|error| ToolError::new(error.to_string()))?;
        Ok(exit_code(&ended))
    }
}

/// Reads the result of the handler that took the command.
pub(crate) fn choose(
    generation: &Arc<Generation>,
    result: &serde_json::Map<String, Value>,
) -> Result<UserBash, HostError> {
    if let Some(operations) = result.get("operations").and_then(Value::as_u64) {
        return Ok(UserBash::RunWith(Arc::new(ExtensionCommands {
            generation: generation.clone(),
            operations,
        })));
    }
    match result.get("result").filter(|result| !result.is_null()) {
        Some(result) => parse("user_bash: result", &result.to_string()).map(UserBash::Finished),
        None => Ok(UserBash::RunLocally),
    }
}
