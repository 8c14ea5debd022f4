//! A tool of an extension, as the agent calls it.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::ToolRegistration;
use crate::diagnostics::type_errors::{explain_type_error, misspelt_block_type};
use crate::lifecycle::generation::{CallFailure, Generation};
use pi_ai::json::depth::{self, Origin};
use pi_ai::json::errors::describe;
use pi_ai::stream::ToolSpec;
use pi_tools::tool::{
    ABORT_GRACE, ExecutionMode, Queueing, Tool, ToolError, ToolInvocation, ToolOutput,
};

pub struct ExtensionTool {
    generation: Arc<Generation>,
    registration: ToolRegistration,
    spec: ToolSpec,
}

impl ExtensionTool {
    pub fn new(generation: Arc<Generation>, registration: ToolRegistration) -> Self {
        let spec = ToolSpec {
            name: registration.name.clone(),
            description: registration.description.clone(),
            parameters: registration.parameters.clone(),
        };
        Self {
            generation,
            registration,
            spec,
        }
    }

    /// Returns the event name for reports and counters.
    fn event(&self) -> String {
        format!("tool:{}", self.spec.name)
    }

    fn error(&self, failure: &CallFailure) -> ToolError {
        if let CallFailure::Thrown { stack, .. } = failure {
            tracing::debug!(tool = self.spec.name, "{stack}");
        }
        ToolError::new(failure.plain())
    }

    async fn output(&self, json: Option<String>) -> Result<ToolOutput, ToolError> {
        let json = json.as_deref().unwrap_or("null");
        let why = match depth::from_str::<ToolOutput>(json, Origin::ToolOutput) {
            Ok(output) => match misspelt_block_type(&output.content) {
                None => return Ok(output),
                Some(why) => why,
            },
            Err(error) => explain_type_error::<ToolOutput>(json, Origin::ToolOutput)
                .unwrap_or_else(|| describe(error)),
        };
        let text = format!(
            "The tool \"{}\" returned something that is no tool result: {why}",
            self.spec.name
        );
        // The model gets the error, and the author a report.
        let frame = self
            .generation
            .source_position_of(self.registration.id)
            .await;
        let (extension, host) = (self.registration.extension, &self.generation.host);
        let frame = frame.unwrap_or_default();
        host.report_at(extension, &self.event(), text.clone(), &frame);
        Err(ToolError::new(text))
    }
}

#[async_trait]
impl Tool for ExtensionTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn label(&self) -> &str {
        self.registration
            .label
            .as_deref()
            .unwrap_or(&self.spec.name)
    }

    fn prompt_snippet(&self) -> Option<&str> {
        self.registration.prompt_snippet.as_deref()
    }

    fn prompt_guidelines(&self) -> &[String] {
        &self.registration.prompt_guidelines
    }

    fn execution_mode(&self) -> ExecutionMode {
        self.registration.execution_mode.unwrap_or_default()
    }

    /// The tool may call `withFileMutationQueue` or a built-in tool.
    fn queueing(&self) -> Queueing {
        Queueing::Remote {
            within: self.generation.timeouts.handler,
        }
    }

    fn is_active_by_default(&self) -> bool {
        !self.registration.inactive
    }

    async fn prepare_arguments(&self, args: Value) -> Result<Value, ToolError> {
        if !self.registration.prepares {
            return Ok(args);
        }
        let extension = self.registration.extension;
        let result = self
            .generation
            .call_within(
                extension,
                &self.event(),
                self.generation.timeouts.handler,
                || format!("prepareArguments of {}", self.spec.name),
                "prepareArguments",
                &json!({ "extension": extension, "tool": self.registration.id, "args": args }),
            )
            .await
            .map_err(|failure| self.error(&failure))?;
        depth::from_str(result.as_deref().unwrap_or("null"), Origin::ToolOutput)
            .map_err(|error| ToolError::new(error.to_string()))
    }

    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let token = self.generation.token();
        let updates = &self.generation.host.updates;
        updates.lock().insert(token, call.updates);
        let start_guards = &self.generation.host.start_guards;
        let reports_start = call.started.is_some();
        if let Some(started) = call.started {
            start_guards.lock().insert(token, started);
        }
        let args = json!({
            "extension": self.registration.extension,
            "tool": self.registration.id,
            "token": token,
            "callId": call.id,
            "params": call.args,
            "reportsStart": reports_start,
        });
        let event = self.event();
        let what = || format!("The tool \"{}\"", self.spec.name);
        let limit = self.generation.timeouts.tool;
        let running = self.generation.call_with_limit(
            self.registration.extension,
            &event,
            limit,
            what,
            "executeTool",
            &args,
        );
        tokio::pin!(running);
        let result = tokio::select! {
            result = &mut running => result,
            () = call.cancel.cancelled() => {
                let abort = async {
                    // An error means that the tool is gone already.
                    let _ = self.generation.call("abortTool", &token).await;
                    running.await
                };
                tokio::time::timeout(ABORT_GRACE, abort)
                    .await
                    .unwrap_or(Err(CallFailure::Cancelled))
            }
        };
        if let Err(CallFailure::Deadline { .. }) = result {
            // An error means that the tool is gone already.
            let _ = self.generation.call("abortTool", &token).await;
        }
        updates.lock().remove(&token);
        // The tool may have ended before it was called.
        start_guards.lock().remove(&token);
        match result {
            Ok(json) => self.output(json).await,
            Err(failure) => Err(self.error(&failure)),
        }
    }
}
