//! Estimate of how many tokens of a model's context a conversation takes: the last count of the
//! provider, plus four characters per token for everything after it.

use std::io;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter};

use pi_ai::message::{AssistantBlock, ContentBlock, StopReason, Usage, UserContent};
use pi_base::utf16;
use pi_resources::settings::CompactionSettings;
use pi_session::message::AgentMessage;

const IMAGE_CHARACTERS: usize = 4800;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextEstimate {
    pub tokens: u64,
    /// Index of the answer whose count was used; `None` if everything is estimated.
    pub counted: Option<usize>,
}

/// Returns the provider's count up to and including the answer.
pub fn usage_tokens(usage: &Usage) -> u64 {
    match usage.total_tokens {
        0 => [usage.output, usage.cache_read, usage.cache_write]
            .into_iter()
            .fold(usage.input, u64::saturating_add),
        total => total,
    }
}

pub fn estimate_context(messages: &[Arc<AgentMessage>]) -> ContextEstimate {
    // A failed or aborted answer has no final count.
    let counted = messages.iter().rposition(|message| {
        message.as_assistant().is_some_and(|answer| {
            !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
        })
    });
    let base = counted.and_then(|index| messages[index].as_assistant());
    let rest = &messages[counted.map_or(0, |index| index + 1)..];
    let tokens = rest.iter().map(|message| estimate(message)).fold(
        base.map_or(0, |answer| usage_tokens(&answer.usage)),
        u64::saturating_add,
    );
    ContextEstimate { tokens, counted }
}

/// Returns whether `tokens` leave less than the reserve. A window of 0 means that the window is
/// unknown.
pub fn exceeds_window(tokens: u64, context_window: u64, settings: CompactionSettings) -> bool {
    context_window > 0 && tokens > context_window.saturating_sub(settings.reserve_tokens)
}

/// Estimates the tokens of a message as its characters divided by four.
pub fn estimate(message: &AgentMessage) -> u64 {
    let characters = match message {
        // The original ignores images of users too, and the cut point depends on the estimate.
        AgentMessage::User(user) => content(&user.content, 0),
        AgentMessage::Custom(custom) => content(&custom.content, IMAGE_CHARACTERS),
        AgentMessage::ToolResult(result) => blocks(&result.content, IMAGE_CHARACTERS),
        AgentMessage::Assistant(answer) => answer.content.iter().map(block).sum(),
        AgentMessage::BashExecution(bash) => utf16::len(&bash.command) + utf16::len(&bash.output),
        AgentMessage::BranchSummary(branch) => utf16::len(&branch.summary),
        AgentMessage::CompactionSummary(compaction) => utf16::len(&compaction.summary),
    };
    (characters as u64).div_ceil(4)
}

fn content(content: &UserContent, image: usize) -> usize {
    match content {
        UserContent::Text(text) => utf16::len(text),
        UserContent::Blocks(parts) => blocks(parts, image),
    }
}

fn blocks(blocks: &[ContentBlock], image: usize) -> usize {
    let characters = blocks.iter().map(|block| match block {
        ContentBlock::Text(text) => utf16::len(&text.text),
        ContentBlock::Image(_) => image,
        ContentBlock::Other(_) => 0,
    });
    characters.sum()
}

fn block(block: &AssistantBlock) -> usize {
    match block {
        AssistantBlock::Text(text) => utf16::len(&text.text),
        AssistantBlock::Thinking(thinking) => utf16::len(&thinking.thinking),
        AssistantBlock::ToolCall(call) => {
            utf16::len(&call.name) + utf16::len(&js_json(&call.arguments))
        }
    }
}

/// Serializes JSON with numbers as JavaScript writes them: `1` where serde_json has `1.0`.
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
