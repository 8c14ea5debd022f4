//! Calls tools like the agent does.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::tool::{Tool, ToolError, ToolInvocation, ToolOutput};

pub(crate) fn invocation(args: Value) -> ToolInvocation {
    ToolInvocation {
        id: "call".to_owned(),
        args,
        cancel: CancellationToken::new(),
        updates: Arc::new(|_| {}),
        started: None,
        unreadable: None,
    }
}

/// Prepares and validates the arguments, and runs the tool.
pub(crate) async fn run(tool: &dyn Tool, args: Value) -> Result<ToolOutput, ToolError> {
    let args = tool.prepare_arguments(args).await?;
    let args = super::arguments::validate::validate(tool.spec(), args)?;
    tool.execute(invocation(args)).await
}
