//! How much of a model's context a conversation takes: what the provider counted
//! last, and four characters to a token for everything it has not seen yet.

use std::io;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter};

use crate::ai::message::{AssistantBlock, ContentBlock, StopReason, Usage, UserContent};
use crate::resources::settings::CompactionSettings;
use crate::session::message::AgentMessage;

const IMAGE_CHARACTERS: usize = 4800;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextEstimate {
    pub tokens: u64,
    /// The answer whose count was taken; `None` if all of it is a guess.
    pub counted: Option<usize>,
}

/// The provider's own count, up to and with the answer that it belongs to.
pub fn of_usage(usage: &Usage) -> u64 {
    match usage.total_tokens {
        0 => [usage.output, usage.cache_read, usage.cache_write]
            .into_iter()
            .fold(usage.input, u64::saturating_add),
        total => total,
    }
}

pub fn estimate_context(messages: &[Arc<AgentMessage>]) -> ContextEstimate {
    // What failed or was aborted was counted to no end.
    let counted = messages.iter().rposition(|message| {
        message.as_assistant().is_some_and(|answer| {
            !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
        })
    });
    let base = counted.and_then(|index| messages[index].as_assistant());
    let rest = &messages[counted.map_or(0, |index| index + 1)..];
    let tokens = rest.iter().map(|message| estimate(message)).fold(
        base.map_or(0, |answer| of_usage(&answer.usage)),
        u64::saturating_add,
    );
    ContextEstimate { tokens, counted }
}

/// Whether so many tokens leave less than the reserve. A window of 0 is an unknown
/// one.
pub fn outgrows(tokens: u64, context_window: u64, settings: CompactionSettings) -> bool {
    context_window > 0 && tokens > context_window.saturating_sub(settings.reserve_tokens)
}

/// Characters of what the model is told, by four.
pub fn estimate(message: &AgentMessage) -> u64 {
    let characters = match message {
        // As in the original, which counts no pictures of users: the place where
        // a conversation is cut depends on it.
        AgentMessage::User(user) => content(&user.content, 0),
        AgentMessage::Custom(custom) => content(&custom.content, IMAGE_CHARACTERS),
        AgentMessage::ToolResult(result) => blocks(&result.content, IMAGE_CHARACTERS),
        AgentMessage::Assistant(answer) => answer.content.iter().map(block).sum(),
        AgentMessage::BashExecution(bash) => units(&bash.command) + units(&bash.output),
        AgentMessage::BranchSummary(branch) => units(&branch.summary),
        AgentMessage::CompactionSummary(compaction) => units(&compaction.summary),
    };
    (characters as u64).div_ceil(4)
}

fn content(content: &UserContent, image: usize) -> usize {
    match content {
        UserContent::Text(text) => units(text),
        UserContent::Blocks(parts) => blocks(parts, image),
    }
}

fn blocks(blocks: &[ContentBlock], image: usize) -> usize {
    let characters = blocks.iter().map(|block| match block {
        ContentBlock::Text(text) => units(&text.text),
        ContentBlock::Image(_) => image,
        ContentBlock::Other(_) => 0,
    });
    characters.sum()
}

fn block(block: &AssistantBlock) -> usize {
    match block {
        AssistantBlock::Text(text) => units(&text.text),
        AssistantBlock::Thinking(thinking) => units(&thinking.thinking),
        AssistantBlock::ToolCall(call) => units(&call.name) + units(&js_json(&call.arguments)),
    }
}

/// The length as JavaScript has it.
pub(super) fn units(text: &str) -> usize {
    match text.is_ascii() {
        true => text.len(),
        false => text.encode_utf16().count(),
    }
}

/// JSON with numbers as JavaScript writes them: `1` where serde_json has `1.0`.
pub(super) fn js_json(value: &Value) -> String {
    struct JsNumbers;
    impl Formatter for JsNumbers {
        fn write_f64<W: ?Sized + io::Write>(
            &mut self,
            writer: &mut W,
            value: f64,
        ) -> io::Result<()> {
            if value.fract() == 0.0 && value.abs() < 2f64.powi(53) {
                return write!(writer, "{}", value as i64);
            }
            CompactFormatter.write_f64(writer, value)
        }
    }
    let mut json = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut json, JsNumbers);
    value
        .serialize(&mut serializer)
        .expect("a JSON value can be written to memory");
    String::from_utf8(json).expect("JSON is UTF-8")
}
