//! Emits the events around a tool call, and applies what handlers have made of them.

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::dispatch::Emission;
use crate::lifecycle::Extensions;
use pi_agent::run::{Refusal, ToolOutcome};
use pi_ai::message::ToolCall;
use pi_tools::tool::{ABORT_GRACE, STRUCTURED_CONTENT};

impl Extensions {
    /// Emits `tool_call`; then the parent of a child session may change the call. `Err` says
    /// why the tool must not run.
    pub async fn before_tool_call(
        &self,
        call: &ToolCall,
        args: &mut Value,
        cancel: &CancellationToken,
    ) -> Result<(), Refusal> {
        if self.has_handlers("tool_call") {
            let event = json!({
                "toolName": call.name,
                "toolCallId": call.id,
                "input": args,
            });
            let mut emission = self.deliver("tool_call", || event, cancel).await;
            if let Some(refusal) = refusal(&mut emission) {
                return Err(refusal);
            }
            if let Some(input) = emission.event.remove("input") {
                *args = input;
            }
        }
        match self.child_hooks() {
            Some(hooks) => hooks.before_tool_call(call, args, cancel).await,
            None => Ok(()),
        }
    }

    /// Emits `tool_result`; then the parent of a child session may change the outcome.
    pub async fn after_tool_call(
        &self,
        call: &ToolCall,
        args: &Value,
        outcome: &mut ToolOutcome,
        cancel: &CancellationToken,
    ) {
        if self.has_handlers("tool_result") {
            let event = result_event(call, args, outcome);
            // An aborted tool has a result, too, and its handlers get a short time to see it.
            let over = CancellationToken::new();
            let end = async {
                cancel.cancelled().await;
                tokio::time::sleep(ABORT_GRACE).await;
                over.cancel();
                std::future::pending::<()>().await;
            };
            let before = event["content"].clone();
            tokio::select! {
                emission = self.deliver("tool_result", || event, &over) => {
                    apply_result(emission.event, &before, outcome);
                }
                () = end => {}
            }
        }
        if let Some(hooks) = self.child_hooks() {
            hooks.after_tool_call(call, args, outcome, cancel).await;
        }
    }
}

fn refusal(emission: &mut Emission) -> Option<Refusal> {
    if let Some(reason) = emission.block_reason.take() {
        let terminate = false;
        return Some(Refusal { reason, terminate });
    }
    if !emission.is_set("block") {
        return None;
    }
    let result = emission.result.take().unwrap_or_default();
    let reason = result.get("reason").and_then(Value::as_str);
    let reason = reason.filter(|text| !text.is_empty());
    Some(Refusal {
        reason: reason.unwrap_or("Tool execution was blocked").to_string(),
        terminate: result.get("terminate") == Some(&true.into()),
    })
}

fn result_event(call: &ToolCall, args: &Value, outcome: &ToolOutcome) -> Value {
    let mut event = json!({
        "toolName": call.name,
        "toolCallId": call.id,
        "input": args,
        "content": outcome.output.content,
        "isError": outcome.is_error,
    });
    // Handlers may have a default for missing details, which `null` would not trigger.
    if let Some(details) = &outcome.output.details {
        event["details"] = details.clone();
    }
    for name in ["usage", STRUCTURED_CONTENT] {
        if let Some(value) = outcome.output.other.get(name) {
            event[name] = value.clone();
        }
    }
    event
}

/// Applies what handlers left of the event. `before` is the content that they received.
fn apply_result(mut event: Map<String, Value>, before: &Value, outcome: &mut ToolOutcome) {
    let content = event.remove("content").unwrap_or_default();
    let has_other_content = content != *before;
    // Content in a wrong format is ignored.
    if let Ok(content) = serde_json::from_value(content) {
        outcome.output.content = content;
    }
    // `null` means that a handler withdrew the changes of handlers before it, so the tool's own
    // details stay.
    match event.remove("details") {
        Some(Value::Null) => {}
        details => outcome.output.details = details,
    }
    let other = &mut outcome.output.other;
    if let Some(usage) = event.remove("usage") {
        other.insert("usage".into(), usage);
    }
    match event.remove(STRUCTURED_CONTENT) {
        // The structured content may contradict content that a handler has replaced.
        now if has_other_content && now == other.get(STRUCTURED_CONTENT).cloned() => {
            other.shift_remove(STRUCTURED_CONTENT);
        }
        Some(now) => {
            other.insert(STRUCTURED_CONTENT.into(), now);
        }
        None => {}
    }
    if let Some(Value::Bool(is_error)) = event.get("isError") {
        outcome.is_error = *is_error;
    }
}
