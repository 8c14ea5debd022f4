//! Serializes a conversation to one text. A model that receives messages continues them; a
//! model that receives a text can answer questions about it.

use std::sync::Arc;

use serde_json::Value;

use super::tokens::js_json;
use pi_ai::message::{AssistantBlock, ContentBlock, Message, ToolCall, UserContent};
use pi_base::utf16;
use pi_session::message::AgentMessage;

/// Limit of a tool result in UTF-16 units; more does not help a summary.
const MAX_RESULT_UTF16_UNITS: usize = 2000;

pub(super) fn conversation(messages: &[Arc<AgentMessage>]) -> String {
    let mut parts = Vec::new();
    for message in messages.iter().filter_map(|message| message.to_llm()) {
        match message {
            Message::User(user) => {
                let text = match &user.content {
                    UserContent::Text(text) => text.clone(),
                    UserContent::Blocks(blocks) => joined(blocks),
                };
                part(&mut parts, "User", &text);
            }
            Message::Assistant(answer) => add_answer(&mut parts, &answer.content),
            Message::ToolResult(result) => {
                part(
                    &mut parts,
                    "Tool result",
                    &shortened(&joined(&result.content)),
                );
            }
        }
    }
    parts.join("\n\n")
}

fn part(parts: &mut Vec<String>, title: &str, text: &str) {
    if !text.is_empty() {
        parts.push(format!("[{title}]: {text}"));
    }
}

fn add_answer(parts: &mut Vec<String>, content: &[AssistantBlock]) {
    let (mut thoughts, mut texts, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for block in content {
        match block {
            AssistantBlock::Thinking(thinking) => thoughts.push(thinking.thinking.clone()),
            AssistantBlock::Text(text) => texts.push(text.text.clone()),
            AssistantBlock::ToolCall(call) => calls.push(call_text(call)),
        }
    }
    let sections = [
        ("Assistant thinking", thoughts, "\n"),
        ("Assistant", texts, "\n"),
        ("Assistant tool calls", calls, "; "),
    ];
    for (title, pieces, separator) in sections {
        if !pieces.is_empty() {
            parts.push(format!("[{title}]: {}", pieces.join(separator)));
        }
    }
}

fn call_text(call: &ToolCall) -> String {
    let arguments: Vec<String> = match &call.arguments {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| format!("{name}={}", js_json(value)))
            .collect(),
        _ => Vec::new(),
    };
    format!("{}({})", call.name, arguments.join(", "))
}

fn joined(blocks: &[ContentBlock]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        ContentBlock::Image(_) | ContentBlock::Other(_) => None,
    });
    texts.collect()
}

fn shortened(text: &str) -> String {
    let length = utf16::len(text);
    if length <= MAX_RESULT_UTF16_UNITS {
        return text.to_owned();
    }
    let kept = &text[..utf16::byte_index(text, MAX_RESULT_UTF16_UNITS)];
    let rest = length - MAX_RESULT_UTF16_UNITS;
    format!("{kept}\n\n[... {rest} more characters truncated]")
}
