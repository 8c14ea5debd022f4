//! The context of a session: the messages from the root to the leaf that a model receives, with
//! a compaction in place of the messages it summarizes.

use std::collections::HashSet;
use std::sync::Arc;

use crate::context_edits::ContextEdits;
use crate::entry::{Entry, EntryKind};
use crate::error::Warning;
use crate::message::AgentMessage;
use crate::parallel;
use pi_ai::message::{AssistantMessage, ContentBlock, StopReason, ToolResultMessage};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionContext {
    pub messages: Vec<Arc<AgentMessage>>,
    /// The level of the last `thinking_level_change` on the path; `None` if there is none.
    pub thinking_level: Option<String>,
    /// The last model on the path: chosen by the user, or named in an answer.
    pub model: Option<ModelRef>,
    /// Entries of the path that cannot be read.
    pub warnings: Vec<Warning>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRef {
    pub provider: String,
    pub model_id: String,
}

pub(crate) const INTERRUPTED: &str = "The tool call was interrupted: no result was recorded. It may have run in part; \
     check before you repeat it.";

/// Builds the context. `path` runs from the root to the leaf.
pub(crate) fn build(path: &[Arc<Entry>]) -> SessionContext {
    let mut context = SessionContext::default();
    let entries = context_entries(path);
    let edits = ContextEdits::on_path(path);
    let messages = parallel::map(&entries, |entry| entry.unparsed(), |entry| entry.message());
    for (entry, message) in entries.into_iter().zip(messages) {
        match message {
            Ok(message) => {
                let edited = message.and_then(|message| edits.apply(entry, message));
                context.messages.extend(edited);
            }
            Err(error) => context.warnings.push(Warning::SkippedMessage {
                id: entry.id.clone(),
                reason: error.to_string(),
            }),
        }
    }
    let (messages, unanswered) = add_missing_results(&context.messages);
    context.messages = messages;
    // Warn only if nothing came after the call: later entries show that the user knows.
    if !unanswered.is_empty() {
        context.warnings.push(Warning::Interrupted {
            tools: unanswered.join(", "),
        });
    }
    context.thinking_level = path.iter().rev().find_map(|entry| match &entry.kind {
        EntryKind::ThinkingLevelChange { level } => Some(level.clone()),
        _ => None,
    });
    context.model = path.iter().rev().find_map(|entry| entry_model(entry));
    context
}

/// Returns the entries that belong to the context, in the order in which the model receives
/// them.
pub(crate) fn context_entries(path: &[Arc<Entry>]) -> Vec<&Arc<Entry>> {
    let compaction = path
        .iter()
        .enumerate()
        .rev()
        .find_map(|(index, entry)| match &entry.kind {
            EntryKind::Compaction {
                first_kept_entry_id,
            } => Some((index, entry, first_kept_entry_id)),
            _ => None,
        });
    // The summary of a later compaction covers an earlier one.
    let is_in_context = |entry: &&Arc<Entry>| !matches!(entry.kind, EntryKind::Compaction { .. });
    let Some((index, summary, first_kept)) = compaction else {
        return path.iter().filter(is_in_context).collect();
    };
    let before = &path[..index];
    let kept = before
        .iter()
        .position(|entry| entry.id == *first_kept)
        .unwrap_or(index);
    let mut entries = vec![summary];
    entries.extend(path[kept..].iter().filter(is_in_context));
    entries
}

pub(crate) fn entry_model(entry: &Entry) -> Option<ModelRef> {
    match &entry.kind {
        EntryKind::ModelChange { provider, model_id } => Some(ModelRef {
            provider: provider.clone(),
            model_id: model_id.clone(),
        }),
        EntryKind::Message { role } if role == "assistant" => {
            let message = entry.message().ok()??;
            message.as_assistant().map(|assistant| ModelRef {
                provider: assistant.provider.clone(),
                model_id: assistant.model.clone(),
            })
        }
        _ => None,
    }
}

/// Adds an error result for each tool call without a result: providers refuse a conversation
/// with an unanswered call, which a crash between a call and its result leaves. Also returns
/// the names of the tools whose calls are unanswered at the end of the conversation.
fn add_missing_results(messages: &[Arc<AgentMessage>]) -> (Vec<Arc<AgentMessage>>, Vec<String>) {
    let mut out = Vec::with_capacity(messages.len());
    let mut missing = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        // Added results come after the results that exist.
        if !matches!(**message, AgentMessage::ToolResult(_)) {
            out.append(&mut missing);
        }
        if let AgentMessage::Assistant(assistant) = &**message {
            missing = missing_results(assistant, &messages[index + 1..]);
        }
        out.push(Arc::clone(message));
    }
    let tools = missing.iter().filter_map(|result| match &**result {
        AgentMessage::ToolResult(result) => Some(result.tool_name.clone()),
        _ => None,
    });
    let tools = tools.collect();
    out.append(&mut missing);
    (out, tools)
}

fn missing_results(
    assistant: &AssistantMessage,
    after: &[Arc<AgentMessage>],
) -> Vec<Arc<AgentMessage>> {
    // A failed message is not sent to a model, so its calls need no result.
    if matches!(
        assistant.stop_reason,
        StopReason::Error | StopReason::Aborted
    ) {
        return Vec::new();
    }
    // Search only up to the next answer of the model: some providers number their calls anew in
    // each answer, so `call_0` of a later turn does not match this one.
    let turn = after
        .iter()
        .take_while(|message| message.as_assistant().is_none());
    let answered: HashSet<&str> = turn
        .filter_map(|message| match &**message {
            AgentMessage::ToolResult(result) => Some(result.tool_call_id.as_str()),
            _ => None,
        })
        .collect();
    let dangling = assistant
        .tool_calls()
        .filter(|call| !answered.contains(call.id.as_str()));
    dangling
        .map(|call| {
            Arc::new(AgentMessage::ToolResult(ToolResultMessage {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                content: vec![ContentBlock::text(INTERRUPTED)],
                details: None,
                usage: None,
                is_error: true,
                timestamp: assistant.timestamp,
            }))
        })
        .collect()
}
