//! What a tool is, whoever brings it: built in, or registered by an extension.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::ai::message::{ContentBlock, present};
use crate::ai::stream::ToolSpec;

/// In which what was aborted may still say how far it got: a tool that reacts to its signal
/// has a result of its own. Whoever needs longer is not waited for; it may go on by itself.
pub(crate) const LAST_WORD: Duration = Duration::from_millis(250);

/// A member of a result: what it says for programs. Models are not told.
pub(crate) const STRUCTURED_CONTENT: &str = "structuredContent";

/// What a tool call brought: content for the model, details for people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolOutput {
    pub content: Vec<ContentBlock>,
    // `null` is something, too: extensions look for it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub details: Option<Value>,
    /// The agent may stop here: it does if all results of an answer's calls say so.
    #[serde(
        default,
        skip_serializing_if = "std::ops::Not::not",
        deserialize_with = "only_true"
    )]
    pub terminate: bool,
    /// What else a tool of an extension gives: who listens sees it, nothing here reads it.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What extensions write there is theirs; only `true` counts.
fn only_true<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Value::deserialize(deserializer)? == Value::Bool(true))
}

impl ToolOutput {
    /// Whether a tool says so itself that it failed, as newer versions let it; who throws
    /// has no output.
    pub fn says_it_failed(&self) -> bool {
        self.other.get("isError") == Some(&Value::Bool(true))
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentBlock::text(text)],
            ..Self::default()
        }
    }
}

/// Why a call failed, in the words the model is told.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl ToolError {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// What every file tool answers when it was aborted.
    pub fn aborted() -> Self {
        Self::new("Operation aborted")
    }
}

/// Whether calls of the same batch may run beside each other. One sequential
/// tool makes its whole batch sequential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionMode {
    #[default]
    Parallel,
    Sequential,
}

/// How the calls of one answer that change files come to do it in the order in which the
/// model made them, although they run beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// It changes no file that anybody queues for.
    Never,
    /// It has its place in the queue of its file once it was polled.
    AtOnce,
    /// It may take one when it is called, which code elsewhere does: [`ToolInvocation::begun`]
    /// says that it has been. Later calls wait no longer for that than `within`.
    Elsewhere { within: Duration },
}

/// Receives partial results while a call runs. Each replaces the one before, so
/// that an implementation may skip some when the reader is slow.
pub type UpdateSink = Arc<dyn Fn(ToolOutput) + Send + Sync>;

/// One call.
pub struct ToolInvocation {
    /// The provider's id of the call.
    pub id: String,
    /// Already validated against the schema, then possibly changed by
    /// `tool_call` handlers.
    pub args: Value,
    pub cancel: CancellationToken,
    pub updates: UpdateSink,
    /// Dropped when the call has had its chance to queue for a file ([`Queueing::Elsewhere`]).
    /// `None` if nobody waits for that.
    pub begun: Option<DropGuard>,
}

#[async_trait]
pub trait Tool: Send + Sync {
    /// Name, description and argument schema, as sent to the model.
    fn spec(&self) -> &ToolSpec;

    /// For people.
    fn label(&self) -> &str {
        &self.spec().name
    }

    /// One line for the tool list of the system prompt; without it the tool is
    /// not listed there.
    fn prompt_snippet(&self) -> Option<&str> {
        None
    }

    /// Bullets for the guidelines of the system prompt while the tool is active.
    fn prompt_guidelines(&self) -> &[String] {
        &[]
    }

    fn execution_mode(&self) -> ExecutionMode {
        ExecutionMode::Parallel
    }

    fn queueing(&self) -> Queueing {
        Queueing::Never
    }

    /// Whether the model has it without anyone asking for it. Of built-in tools
    /// [`super::DEFAULT_ACTIVE`] says so.
    fn is_active_by_default(&self) -> bool {
        true
    }

    /// Mends what models often get wrong, before validation.
    async fn prepare_arguments(&self, args: Value) -> Result<Value, ToolError> {
        Ok(args)
    }

    /// Must end soon after `cancel` fires.
    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError>;
}
