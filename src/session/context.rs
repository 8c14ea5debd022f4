//! What a model is told of a session: the messages from the root to the leaf,
//! with a compaction in the place of what it summarises.

use std::collections::HashSet;
use std::sync::Arc;

use super::edits::Edits;
use super::entry::{Entry, EntryKind};
use super::error::Warning;
use super::message::AgentMessage;
use super::parallel;
use crate::ai::message::{AssistantMessage, ContentBlock, StopReason, ToolResultMessage};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionContext {
    pub messages: Vec<Arc<AgentMessage>>,
    /// The last one set on the path; `None` if none ever was.
    pub thinking_level: Option<String>,
    /// The last one chosen or heard on the path.
    pub model: Option<ModelRef>,
    /// Entries that should have been here and cannot be read.
    pub warnings: Vec<Warning>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRef {
    pub provider: String,
    pub model_id: String,
}

pub(super) const INTERRUPTED: &str = "The tool call was interrupted: no result was recorded. It may have run in part; \
     check before you repeat it.";

/// `path` runs from the root to the leaf.
pub(super) fn build(path: &[Arc<Entry>]) -> SessionContext {
    let mut context = SessionContext::default();
    let said = said(path);
    let edits = Edits::on(path);
    let messages = parallel::map(&said, |entry| entry.unparsed(), |entry| entry.message());
    for (entry, message) in said.into_iter().zip(messages) {
        match message {
            Ok(message) => {
                let heard = message.and_then(|message| edits.apply(entry, message));
                context.messages.extend(heard);
            }
            Err(error) => context.warnings.push(Warning::SkippedMessage {
                id: entry.id.clone(),
                reason: error.to_string(),
            }),
        }
    }
    let (messages, last_owed) = answer_dangling_calls(&context.messages);
    context.messages = messages;
    // Only while nothing came after it: then the user knows.
    if !last_owed.is_empty() {
        context.warnings.push(Warning::Interrupted {
            tools: last_owed.join(", "),
        });
    }
    context.thinking_level = path.iter().rev().find_map(|entry| match &entry.kind {
        EntryKind::ThinkingLevelChange { level } => Some(level.clone()),
        _ => None,
    });
    context.model = path.iter().rev().find_map(|entry| model_of(entry));
    context
}

/// The entries that a model hears of, in the order in which it does.
pub(super) fn said(path: &[Arc<Entry>]) -> Vec<&Arc<Entry>> {
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
    // An earlier compaction is part of the later one's summary.
    let is_heard = |entry: &&Arc<Entry>| !matches!(entry.kind, EntryKind::Compaction { .. });
    let Some((index, summary, first_kept)) = compaction else {
        return path.iter().filter(is_heard).collect();
    };
    let before = &path[..index];
    let kept = before
        .iter()
        .position(|entry| entry.id == *first_kept)
        .unwrap_or(index);
    let mut said = vec![summary];
    said.extend(path[kept..].iter().filter(is_heard));
    said
}

pub(super) fn model_of(entry: &Entry) -> Option<ModelRef> {
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

/// A crash between a call and its result leaves a question that no provider
/// accepts unanswered, so the answer is that nothing is known. Also gives the
/// names of the tools that the conversation ends in the middle of.
fn answer_dangling_calls(messages: &[Arc<AgentMessage>]) -> (Vec<Arc<AgentMessage>>, Vec<String>) {
    let mut out = Vec::with_capacity(messages.len());
    let mut owed = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        // Answers come after those that are there.
        if !matches!(**message, AgentMessage::ToolResult(_)) {
            out.append(&mut owed);
        }
        if let AgentMessage::Assistant(assistant) = &**message {
            owed = missing_results(assistant, &messages[index + 1..]);
        }
        out.push(Arc::clone(message));
    }
    let tools = owed.iter().filter_map(|result| match &**result {
        AgentMessage::ToolResult(result) => Some(result.tool_name.clone()),
        _ => None,
    });
    let tools = tools.collect();
    out.append(&mut owed);
    (out, tools)
}

fn missing_results(
    assistant: &AssistantMessage,
    after: &[Arc<AgentMessage>],
) -> Vec<Arc<AgentMessage>> {
    // A message that failed does not go to a model, so its calls need no answer.
    if matches!(
        assistant.stop_reason,
        StopReason::Error | StopReason::Aborted
    ) {
        return Vec::new();
    }
    // Only up to the next answer of the model: some providers count their calls
    // anew in each, and `call_0` of a later turn does not answer this one.
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
