//! Logs events at level debug: names, durations and sizes, never content.

use pi_agent::AgentMessage;
use pi_agent::event::Event;

pub(super) fn log_event(event: &Event) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let name = event.name();
    match event {
        Event::MessageUpdate(_)
        | Event::MessageStart { .. }
        | Event::ToolExecutionUpdate { .. } => {}
        Event::MessageEnd { message } => match &**message {
            AgentMessage::Assistant(answer) => tracing::debug!(
                model = answer.model,
                stop_reason = ?answer.stop_reason,
                input = answer.usage.input,
                output = answer.usage.output,
                error = answer.error_message,
                "an answer has ended"
            ),
            AgentMessage::User(_) => tracing::debug!("a prompt joins"),
            AgentMessage::ToolResult(result) => {
                tracing::debug!(tool = result.tool_name, "a result joins");
            }
            _ => tracing::debug!("{name}"),
        },
        Event::AgentEnd { messages, .. } => tracing::debug!(messages = messages.len(), "{name}"),
        Event::ToolExecutionStart {
            tool_call_id,
            tool_name,
            ..
        } => tracing::debug!(tool_call_id, tool_name, "{name}"),
        Event::ToolExecutionEnd {
            tool_call_id,
            tool_name,
            is_error,
            ..
        } => tracing::debug!(tool_call_id, tool_name, is_error, "{name}"),
        Event::AutoRetryStart {
            attempt,
            max_attempts,
            delay_ms,
            error_message,
        } => tracing::debug!(attempt, max_attempts, delay_ms, error_message, "{name}"),
        Event::AutoRetryEnd {
            success, attempt, ..
        } => tracing::debug!(success, attempt, "{name}"),
        _ => tracing::debug!("{name}"),
    }
}
