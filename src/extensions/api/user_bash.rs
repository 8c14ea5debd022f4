//! Commands that the user types with `!`: an extension may run them somewhere else
//! (`operations` in its answer to `user_bash`), or may have run them already.

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
use crate::extensions::bridge::{BridgeResult, parse};
use crate::extensions::lifecycle::generation::Generation;
use crate::tools::operations::{CommandElsewhere, Commands};
use crate::tools::shell_command::UserCommandResult;
use crate::tools::tool::ToolError;

/// What the handlers of `user_bash` want.
pub enum UserBash {
    /// Nothing: it runs here.
    Here,
    Elsewhere(Arc<dyn Commands>),
    /// It has run.
    Done(UserCommandResult),
    /// Whoever took it failed: it does not run, and why.
    Refused(String),
}

/// Where the output goes of commands that JavaScript runs.
#[derive(Default)]
pub struct Outputs {
    open: Mutex<HashMap<u64, mpsc::Sender<Vec<u8>>>>,
    last: AtomicU64,
}

#[derive(Deserialize)]
struct Piece {
    token: u64,
    data: String,
}

impl Outputs {
    /// Until the guard is dropped.
    pub(in crate::extensions) fn open(&self, output: mpsc::Sender<Vec<u8>>) -> Open<'_> {
        let token = self.last.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(token, output);
        Open {
            outputs: self,
            token,
        }
    }

    /// Waits when whoever reads it is slow.
    pub async fn data(&self, method: &str, args: &str) -> BridgeResult {
        let piece: Piece = parse(method, args)?;
        let bytes = decode(&piece.data)?;
        let output = self.open.lock().get(&piece.token).cloned();
        if let Some(output) = output {
            // The command may have been given up.
            let _ = output.send(bytes).await;
        }
        Ok(Value::Null)
    }
}

pub(in crate::extensions) struct Open<'a> {
    outputs: &'a Outputs,
    pub token: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.outputs.open.lock().remove(&self.token);
    }
}

/// The `operations` that a handler answered with.
pub(in crate::extensions) struct ExtensionCommands {
    pub generation: Arc<Generation>,
    /// The number under which JavaScript keeps them.
    pub operations: u64,
}

#[async_trait]
impl Commands for ExtensionCommands {
    async fn exec(
        &self,
        command: CommandElsewhere,
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
                // An error means that it is gone already.
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

/// What the handler that took the command answered.
pub(in crate::extensions) fn chosen(
    generation: &Arc<Generation>,
    answer: &serde_json::Map<String, Value>,
) -> Result<UserBash, HostError> {
    if let Some(operations) = answer.get("operations").and_then(Value::as_u64) {
        return Ok(UserBash::Elsewhere(Arc::new(ExtensionCommands {
            generation: generation.clone(),
            operations,
        })));
    }
    match answer.get("result").filter(|result| !result.is_null()) {
        Some(result) => parse("user_bash: result", &result.to_string()).map(UserBash::Done),
        None => Ok(UserBash::Here),
    }
}
