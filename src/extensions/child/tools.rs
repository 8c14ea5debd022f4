//! Calls from a child session to JavaScript: tools that the extension brought, and commands
//! with its operations.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::ChildEvent;
use crate::api::tool_runs::exit_code;
use crate::api::user_bash::CommandOutputs;
use pi_ai::json::depth::{self, Origin};
use pi_ai::stream::ToolSpec;
use pi_tools::remote::{RemoteCommand, RemoteCommands};
use pi_tools::tool::{
    ABORT_GRACE, ExecutionMode, Queueing, Tool, ToolError, ToolInvocation, ToolOutput, UpdateSink,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CustomTool {
    name: String,
    #[serde(default)]
    label: Option<String>,
    #[serde(default)]
    description: String,
    parameters: Value,
    #[serde(default)]
    prompt_snippet: Option<String>,
    #[serde(default)]
    prompt_guidelines: Vec<String>,
    #[serde(default)]
    execution_mode: ExecutionMode,
    #[serde(default)]
    prepares: bool,
}

/// Open calls to JavaScript.
pub(super) struct JsCalls {
    pub events: mpsc::Sender<ChildEvent>,
    last: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<Value, ToolError>>>>,
    updates: Mutex<HashMap<u64, UpdateSink>>,
    /// Guards of calls that JavaScript has not started yet, if a caller waits for the
    /// start.
    start_guards: Mutex<HashMap<u64, DropGuard>>,
}

impl JsCalls {
    pub fn new(events: mpsc::Sender<ChildEvent>) -> Self {
        Self {
            events,
            last: AtomicU64::new(0),
            waiting: Mutex::default(),
            updates: Mutex::default(),
            start_guards: Mutex::default(),
        }
    }

    pub fn next_number(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed)
    }

    /// Forwards a partial result of a tool.
    pub fn update(&self, call: u64, value: Option<Value>) {
        let output = value.map(serde_json::from_value::<ToolOutput>);
        let sink = self.updates.lock().get(&call).cloned();
        if let (Some(Ok(output)), Some(sink)) = (output, sink) {
            sink(output);
        }
    }

    pub fn mark_started(&self, call: u64) {
        self.start_guards.lock().remove(&call);
    }

    pub fn respond(&self, call: u64, value: Option<Value>, error: Option<String>) {
        if let Some(waiting) = self.waiting.lock().remove(&call) {
            let result = match error {
                Some(error) => Err(ToolError(error)),
                None => Ok(value.unwrap_or_default()),
            };
            // The caller may be gone.
            let _ = waiting.send(result);
        }
    }

    async fn call(
        &self,
        call: u64,
        name: &str,
        task: &'static str,
        args: Value,
    ) -> Result<Value, ToolError> {
        let (sender, result) = oneshot::channel();
        self.waiting.lock().insert(call, sender);
        let gone = || ToolError::new(format!("The extension that brought {name} is gone"));
        let event = ChildEvent::Call {
            call,
            name: name.to_string(),
            task,
            args,
        };
        self.events.send(event).await.map_err(|_| gone())?;
        result.await.map_err(|_| gone())?
    }

    /// Like [`Self::call`], and tells JavaScript when the call is aborted.
    pub async fn call_until(
        &self,
        call: u64,
        name: &str,
        task: &'static str,
        args: Value,
        cancel: &CancellationToken,
    ) -> Result<Value, ToolError> {
        let running = self.call(call, name, task, args);
        tokio::pin!(running);
        // JavaScript has to receive the call before its abort.
        let result = tokio::select! {
            biased;
            result = &mut running => result,
            () = cancel.cancelled() => {
                // The session may be closed.
                let _ = self.events.send(ChildEvent::Abort { call }).await;
                tokio::time::timeout(ABORT_GRACE, running)
                    .await
                    .unwrap_or_else(|_| Err(ToolError::aborted()))
            }
        };
        self.waiting.lock().remove(&call);
        result
    }
}

/// A tool of `customTools`.
pub(super) struct JsTool {
    tool: CustomTool,
    spec: ToolSpec,
    calls: Arc<JsCalls>,
}

impl JsTool {
    pub fn new(tool: CustomTool, calls: Arc<JsCalls>) -> Self {
        let spec = ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        };
        Self { tool, spec, calls }
    }
}

/// Time limit for JavaScript to start a tool call that other calls wait for.
const START_TIMEOUT: Duration = Duration::from_secs(30);

#[async_trait]
impl Tool for JsTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn label(&self) -> &str {
        self.tool.label.as_deref().unwrap_or(&self.spec.name)
    }

    fn prompt_snippet(&self) -> Option<&str> {
        self.tool.prompt_snippet.as_deref()
    }

    fn prompt_guidelines(&self) -> &[String] {
        &self.tool.prompt_guidelines
    }

    fn execution_mode(&self) -> ExecutionMode {
        self.tool.execution_mode
    }

    fn queueing(&self) -> Queueing {
        Queueing::Remote {
            within: START_TIMEOUT,
        }
    }

    async fn prepare_arguments(&self, args: Value) -> Result<Value, ToolError> {
        if !self.tool.prepares {
            return Ok(args);
        }
        let call = self.calls.next_number();
        self.calls
            .call(call, &self.spec.name, "prepare", args)
            .await
    }

    async fn execute(&self, invocation: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let call = self.calls.next_number();
        let (calls, name) = (&self.calls, &self.spec.name);
        calls.updates.lock().insert(call, invocation.updates);
        let reports_start = invocation.started.is_some();
        if let Some(started) = invocation.started {
            calls.start_guards.lock().insert(call, started);
        }
        let args = json!({
            "callId": invocation.id,
            "params": invocation.args,
            "reportsStart": reports_start,
        });
        let result = calls
            .call_until(call, name, "execute", args, &invocation.cancel)
            .await;
        calls.updates.lock().remove(&call);
        // The tool may have ended before it was called.
        calls.mark_started(call);
        let result = result?;
        let no_result = |why: String| {
            ToolError::new(format!(
                "The tool \"{name}\" returned no tool result ({why})"
            ))
        };
        match depth::value_depth_problem(&result, Origin::ToolOutput) {
            Some(problem) => Err(no_result(problem)),
            None => serde_json::from_value(result).map_err(|error| no_result(error.to_string())),
        }
    }
}

/// The `operations` of `executeBash`.
pub(super) struct JsCommands {
    pub calls: Arc<JsCalls>,
    pub outputs: Arc<CommandOutputs>,
    /// The number under which JavaScript stores the operations.
    pub operations: u64,
}

#[async_trait]
impl RemoteCommands for JsCommands {
    async fn exec(
        &self,
        command: RemoteCommand,
        output: mpsc::Sender<Vec<u8>>,
        cancel: CancellationToken,
    ) -> Result<Option<i32>, ToolError> {
        let call = self.calls.next_number();
        let open = self.outputs.open(output);
        let args = json!({
            "operations": self.operations,
            "token": open.token,
            "command": command.command,
            "cwd": command.cwd,
        });
        let ended = self
            .calls
            .call_until(call, "executeBash", "bash", args, &cancel)
            .await;
        drop(open);
        Ok(exit_code(&ended?))
    }
}
