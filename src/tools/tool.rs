//! The interface of tools, built in or registered by an extension.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::{CancellationToken, DropGuard};

use pi_ai::message::{ContentBlock, present};
use pi_ai::stream::ToolSpec;

/// Time after an abort in which a tool may still return a result of its own. After it the agent
/// stops waiting; the tool may continue.
pub const ABORT_GRACE: Duration = Duration::from_millis(250);

/// Member of a result with data for programs. Models do not get it.
pub const STRUCTURED_CONTENT: &str = "structuredContent";

/// The result of a tool call: content for the model, details for the user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolOutput {
    pub content: Vec<ContentBlock>,
    // `null` counts as present, because extensions check for the member.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub details: Option<Value>,
    /// Asks the agent to stop here, which it does if all results of an answer's calls ask for it.
    #[serde(
        default,
        skip_serializing_if = "std::ops::Not::not",
        deserialize_with = "only_true"
    )]
    pub terminate: bool,
    /// Other members of an extension's result. Subscribers see them; pi does not use them.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Reads a flag of an extension's result: only `true` counts.
fn only_true<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Value::deserialize(deserializer)? == Value::Bool(true))
}

impl ToolOutput {
    /// Returns true if the result itself states that the tool failed, as newer versions allow. A
    /// tool that throws has no result.
    pub fn reports_failure(&self) -> bool {
        self.other.get("isError") == Some(&Value::Bool(true))
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentBlock::text(text)],
            ..Self::default()
        }
    }
}

/// The reason why a call failed, as the model sees it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl ToolError {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the error of an aborted file tool.
    pub fn aborted() -> Self {
        Self::new("Operation aborted")
    }
}

/// Whether calls of the same batch may run in parallel. One sequential tool makes its whole batch
/// sequential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionMode {
    #[default]
    Parallel,
    Sequential,
}

/// How calls of one answer that change files keep the order in which the model made them,
/// although they run in parallel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// The tool changes no file with a queue.
    Never,
    /// The call has its place in the queue of its file once it was polled.
    AtOnce,
    /// The call may take a place in the queue from code outside pi; [`ToolInvocation::started`]
    /// reports that it has started. Later calls wait for that no longer than `within`.
    Remote { within: Duration },
}

/// Receives partial results while a call runs. Each replaces the one before, so that an
/// implementation may skip some if the reader is slow.
pub type UpdateSink = Arc<dyn Fn(ToolOutput) + Send + Sync>;

/// Tells of files and folders whether a search leaves them out.
pub type PathFilter = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// One call of a tool.
pub struct ToolInvocation {
    /// The provider's id of the call.
    pub id: String,
    /// Arguments that were validated against the schema and may have been changed by `tool_call`
    /// handlers.
    pub args: Value,
    pub cancel: CancellationToken,
    pub updates: UpdateSink,
    /// Dropped once the call was able to queue for a file ([`Queueing::Remote`]). `None` if no
    /// later call waits for that.
    pub started: Option<DropGuard>,
    /// The files that rules keep a search from reading. They are found by a walk that follows no
    /// symbolic links.
    pub unreadable: Option<PathFilter>,
}

#[async_trait]
pub trait Tool: Send + Sync {
    /// Returns name, description and argument schema, as sent to the model.
    fn spec(&self) -> &ToolSpec;

    /// Returns the display name.
    fn label(&self) -> &str {
        &self.spec().name
    }

    /// Returns one line for the tool list of the system prompt; without it the list omits the
    /// tool.
    fn prompt_snippet(&self) -> Option<&str> {
        None
    }

    /// Returns bullets for the guidelines of the system prompt while the tool is active.
    fn prompt_guidelines(&self) -> &[String] {
        &[]
    }

    fn execution_mode(&self) -> ExecutionMode {
        ExecutionMode::Parallel
    }

    fn queueing(&self) -> Queueing {
        Queueing::Never
    }

    /// Returns true if the tool is active by default. For built-in tools,
    /// [`super::DEFAULT_ACTIVE`] decides.
    fn is_active_by_default(&self) -> bool {
        true
    }

    /// Repairs frequent mistakes of models before validation.
    async fn prepare_arguments(&self, args: Value) -> Result<Value, ToolError> {
        Ok(args)
    }

    /// Runs the call. Must end soon after `cancel` fires.
    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError>;
}
