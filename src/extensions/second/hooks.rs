//! `beforeToolCall` and `afterToolCall`, which an extension sets on the agent of its
//! session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::calls::Calls;
use crate::agent::run::{Outcome, Refusal};
use crate::ai::message::{ContentBlock, ToolCall};
use crate::tools::tool::ToolError;

pub struct ToolHooks {
    calls: Arc<Calls>,
    before: AtomicBool,
    after: AtomicBool,
}

#[derive(Deserialize)]
struct Before {
    blocked: Option<Blocked>,
    args: Value,
}

#[derive(Deserialize)]
struct Blocked {
    reason: String,
    terminate: bool,
}

/// What is not given stays.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct After {
    content: Option<Vec<ContentBlock>>,
    details: Option<Value>,
    is_error: Option<bool>,
    terminate: Option<bool>,
}

fn refusal(error: &ToolError) -> Refusal {
    Refusal {
        reason: error.to_string(),
        terminate: false,
    }
}

impl ToolHooks {
    pub(super) fn new(calls: Arc<Calls>) -> Self {
        Self {
            calls,
            before: AtomicBool::new(false),
            after: AtomicBool::new(false),
        }
    }

    /// Which there are.
    pub(super) fn set(&self, before: bool, after: bool) {
        self.before.store(before, Ordering::Relaxed);
        self.after.store(after, Ordering::Relaxed);
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        hook: &str,
        what: &'static str,
        about: Value,
        cancel: &CancellationToken,
    ) -> Result<T, ToolError> {
        let call = self.calls.number();
        let answer = self.calls.put_until(call, hook, what, about, cancel);
        serde_json::from_value(answer.await?)
            .map_err(|error| ToolError::new(format!("What {hook} gave cannot be used: {error}")))
    }

    /// A hook that fails blocks the tool: it may be a gate.
    pub async fn before(
        &self,
        call: &ToolCall,
        args: &mut Value,
        cancel: &CancellationToken,
    ) -> Result<(), Refusal> {
        if !self.before.load(Ordering::Relaxed) {
            return Ok(());
        }
        let about = json!({ "toolCall": call, "args": args });
        let said = self.ask::<Before>("beforeToolCall", "before", about, cancel);
        let said = said.await.map_err(|error| refusal(&error))?;
        if let Some(Blocked { reason, terminate }) = said.blocked {
            return Err(Refusal { reason, terminate });
        }
        *args = said.args;
        Ok(())
    }

    pub async fn after(
        &self,
        call: &ToolCall,
        args: &Value,
        outcome: &mut Outcome,
        cancel: &CancellationToken,
    ) {
        if !self.after.load(Ordering::Relaxed) {
            return;
        }
        let about = json!({
            "toolCall": call,
            "args": args,
            "result": outcome.output,
            "isError": outcome.is_error,
        });
        match self
            .ask::<After>("afterToolCall", "after", about, cancel)
            .await
        {
            Ok(said) => {
                let After {
                    content,
                    details,
                    is_error,
                    terminate,
                } = said;
                let output = &mut outcome.output;
                output.content = content.unwrap_or_else(|| std::mem::take(&mut output.content));
                output.details = details.or_else(|| output.details.take());
                output.terminate = terminate.unwrap_or(output.terminate);
                outcome.is_error = is_error.unwrap_or(outcome.is_error);
            }
            Err(error) => *outcome = refusal(&error).into(),
        }
    }
}
