//! Builds the message from the events of the stream.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde_json::{Value, json};

use super::claude_code;
use crate::failure::{Envelope, Failure, error_text};
use crate::http::exchange::{Decoder, Flow};
use crate::http::sse::SseEvent;
use crate::message::{StopReason, ThinkingContent, Usage};
use crate::stream::ToolSpec;
use crate::stream::message_builder::MessageBuilder;

pub(super) struct AnthropicDecoder {
    /// Set if the answer uses Claude Code's tool names.
    tools: Option<Vec<ToolSpec>>,
    blocks: HashMap<u64, Block>,
    /// The API's `stop_reason`; once it is set, the answer is complete.
    stop_reason: Option<String>,
    stopped: bool,
}

#[derive(Clone, Copy)]
enum Block {
    Text(usize),
    Thinking(usize),
    ToolCall(usize),
}

impl AnthropicDecoder {
    pub(super) fn new(tools: Option<Vec<ToolSpec>>) -> Self {
        Self {
            tools,
            blocks: HashMap::new(),
            stop_reason: None,
            stopped: false,
        }
    }

    async fn start_block(
        &mut self,
        event: &Value,
        answer: &mut MessageBuilder,
    ) -> Result<(), Failure> {
        let content = &event["content_block"];
        let block = match content["type"].as_str() {
            Some("text") => {
                let index = answer.start_text().await?;
                answer.add_text(index, text_of(content, "text")).await?;
                Block::Text(index)
            }
            Some("thinking") => {
                let signature = text_of(content, "signature").to_owned();
                let index = answer
                    .start_thinking(ThinkingContent {
                        thinking_signature: Some(signature),
                        ..ThinkingContent::default()
                    })
                    .await?;
                let thinking = text_of(content, "thinking");
                answer.add_thinking(index, thinking).await?;
                Block::Thinking(index)
            }
            Some("redacted_thinking") => {
                let index = answer
                    .start_thinking(ThinkingContent {
                        thinking: "[Reasoning redacted]".into(),
                        thinking_signature: Some(text_of(content, "data").to_owned()),
                        redacted: Some(true),
                    })
                    .await?;
                Block::Thinking(index)
            }
            Some("tool_use") => {
                let name = text_of(content, "name");
                let name = match &self.tools {
                    Some(tools) => claude_code::incoming_tool_name(name, tools),
                    None => name,
                };
                let id = text_of(content, "id").to_owned();
                let input = content["input"].clone();
                Block::ToolCall(answer.start_tool_call(id, name.to_owned(), input).await?)
            }
            // Blocks of server tools are ignored: pi never requests such tools.
            _ => return Ok(()),
        };
        self.blocks.insert(index_of(event), block);
        Ok(())
    }

    async fn add(&mut self, event: &Value, answer: &mut MessageBuilder) -> Result<(), Failure> {
        let delta = &event["delta"];
        let block = self.blocks.get(&index_of(event)).copied();
        match (delta["type"].as_str(), block) {
            (Some("text_delta"), Some(Block::Text(index))) => {
                answer.add_text(index, text_of(delta, "text")).await
            }
            (Some("thinking_delta"), Some(Block::Thinking(index))) => {
                answer.add_thinking(index, text_of(delta, "thinking")).await
            }
            (Some("input_json_delta"), Some(Block::ToolCall(index))) => {
                let json = text_of(delta, "partial_json");
                answer.add_arguments(index, json).await
            }
            (Some("signature_delta"), Some(Block::Thinking(index))) => {
                if let Some(thinking) = answer.thinking(index) {
                    let signature = thinking.thinking_signature.get_or_insert_default();
                    signature.push_str(text_of(delta, "signature"));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn end_block(
        &mut self,
        event: &Value,
        answer: &mut MessageBuilder,
    ) -> Result<(), Failure> {
        match self.blocks.remove(&index_of(event)) {
            Some(Block::Text(index)) => answer.end_text(index).await,
            Some(Block::Thinking(index)) => answer.end_thinking(index).await,
            Some(Block::ToolCall(index)) => answer.end_tool_call(index).await,
            None => Ok(()),
        }
    }
}

impl Decoder for AnthropicDecoder {
    fn events_of_whole(body: Value) -> Vec<Value> {
        match body["type"].as_str() {
            Some("error") => vec![body],
            Some("message") => events_of_message(body),
            _ => Vec::new(),
        }
    }

    async fn event(
        &mut self,
        event: SseEvent,
        answer: &mut MessageBuilder,
    ) -> Result<Flow, Failure> {
        // Gateways add events of their own, in formats of their own.
        let is_known = matches!(event.name.as_str(), "" | "message" | "error")
            || event.name.starts_with("message_")
            || event.name.starts_with("content_block_");
        if !is_known || event.data.trim() == "[DONE]" {
            return Ok(Flow::More);
        }
        let data = match answer.read_event(&event.data) {
            Err(_) if event.name == "error" => return Err(Failure::Provider(event.data)),
            data => data?,
        };
        let kind = match event.name.as_str() {
            "error" => "error",
            _ => data["type"].as_str().unwrap_or_default(),
        };
        match kind {
            "message_start" => {
                let message = &data["message"];
                if let Some(id) = message["id"].as_str() {
                    answer.edit().response_id = Some(id.to_owned());
                }
                answer.set_usage(updated(Usage::default(), &message["usage"]));
            }
            "content_block_start" => self.start_block(&data, answer).await?,
            "content_block_delta" => self.add(&data, answer).await?,
            "content_block_stop" => self.end_block(&data, answer).await?,
            "message_delta" => {
                answer.set_usage(updated(answer.message().usage, &data["usage"]));
                if let Some(reason) = data["delta"]["stop_reason"].as_str() {
                    self.stop_reason = Some(reason.to_owned());
                }
            }
            "message_stop" => {
                self.stopped = true;
                return Ok(Flow::Complete);
            }
            "error" => return Err(Failure::Provider(error_text(&data, Envelope::Whole))),
            _ => {}
        }
        Ok(Flow::More)
    }

    async fn end(&mut self, answer: &mut MessageBuilder) -> Result<(), Failure> {
        let Some(reason) = &self.stop_reason else {
            let missing = if self.stopped {
                "a stop_reason"
            } else {
                "message_stop"
            };
            return Err(Failure::unfinished(missing));
        };
        answer.edit().stop_reason = match reason.as_str() {
            // A paused turn is continued by sending it back, like any other.
            "end_turn" | "pause_turn" | "stop_sequence" => StopReason::Stop,
            "max_tokens" => StopReason::Length,
            "tool_use" => StopReason::ToolUse,
            "refusal" | "sensitive" => {
                return Err(Failure::Provider(format!(
                    "The provider declined to answer (stop reason: {reason})"
                )));
            }
            _ => {
                return Err(Failure::Provider(format!(
                    "Unhandled stop reason: {reason}"
                )));
            }
        };
        Ok(())
    }
}

/// Converts a whole message into the events of a stream.
fn events_of_message(mut message: Value) -> Vec<Value> {
    let content = message["content"].take();
    let delta = json!({
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"]},
        "usage": message["usage"],
    });
    let mut events = vec![json!({"type": "message_start", "message": message})];
    for (index, block) in content.as_array().into_iter().flatten().enumerate() {
        events.extend([
            json!({"type": "content_block_start", "index": index, "content_block": block}),
            json!({"type": "content_block_stop", "index": index}),
        ]);
    }
    events.extend([delta, json!({"type": "message_stop"})]);
    events
}

/// Updates only the counts that the provider states: proxies leave out counts that they do not
/// know.
fn updated(mut usage: Usage, raw: &Value) -> Usage {
    let update = |name: &str, part: &mut u64| {
        if let Some(tokens) = raw[name].as_u64() {
            *part = tokens;
        }
    };
    update("input_tokens", &mut usage.input);
    update("output_tokens", &mut usage.output);
    update("cache_read_input_tokens", &mut usage.cache_read);
    update("cache_creation_input_tokens", &mut usage.cache_write);
    usage.sum_tokens();
    usage
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn index_of(event: &Value) -> u64 {
    event["index"].as_u64().unwrap_or_default()
}
