//! Builds the message from the events of the stream.

use std::collections::HashMap;

use serde_json::Value;

use crate::failure::Failure;
use crate::http::exchange::{Decoder, Flow, Framing};
use crate::http::sse::SseEvent;
use crate::message::{StopReason, ThinkingContent, Usage};
use crate::stream::message_builder::MessageBuilder;

#[derive(Default)]
pub(super) struct BedrockDecoder {
    /// Open blocks, by the API's number.
    open: HashMap<u64, Block>,
    /// The API's `stopReason`.
    stopped: Option<String>,
}

#[derive(Clone, Copy)]
enum Block {
    Text(usize),
    Thinking(usize),
    ToolCall(usize),
}

impl BedrockDecoder {
    async fn delta(&mut self, data: &Value, answer: &mut MessageBuilder) -> Result<(), Failure> {
        let number = data["contentBlockIndex"].as_u64().unwrap_or_default();
        let delta = &data["delta"];
        let open = self.open.get(&number).copied();
        if let Some(text) = delta["text"].as_str() {
            // The API sends no start event for text.
            let index = match open {
                Some(Block::Text(index)) => index,
                Some(_) => return Ok(()),
                None => answer.start_text().await?,
            };
            self.open.insert(number, Block::Text(index));
            return answer.add_text(index, text).await;
        }
        if let (Some(input), Some(Block::ToolCall(index))) =
            (delta["toolUse"]["input"].as_str(), open)
        {
            return answer.add_arguments(index, input).await;
        }
        let reasoning = &delta["reasoningContent"];
        if !reasoning.is_object() {
            return Ok(());
        }
        let index = match open {
            Some(Block::Thinking(index)) => index,
            Some(_) => return Ok(()),
            None => answer.start_thinking(ThinkingContent::default()).await?,
        };
        self.open.insert(number, Block::Thinking(index));
        if let (Some(signature), Some(thinking)) =
            (reasoning["signature"].as_str(), answer.thinking(index))
        {
            thinking
                .thinking_signature
                .get_or_insert_default()
                .push_str(signature);
        }
        let text = reasoning["text"].as_str().unwrap_or_default();
        answer.add_thinking(index, text).await
    }
}

impl Decoder for BedrockDecoder {
    const FRAMING: Framing = Framing::Amazon;

    async fn event(
        &mut self,
        event: SseEvent,
        answer: &mut MessageBuilder,
    ) -> Result<Flow, Failure> {
        let data: Value = answer.read_event(&event.data)?;
        let number = data["contentBlockIndex"].as_u64().unwrap_or_default();
        match event.name.as_str() {
            "contentBlockStart" => {
                let call = &data["start"]["toolUse"];
                if call.is_object() {
                    let text = |name: &str| call[name].as_str().unwrap_or_default().to_owned();
                    let index = answer
                        .start_tool_call(text("toolUseId"), text("name"), Value::Null)
                        .await?;
                    self.open.insert(number, Block::ToolCall(index));
                }
            }
            "contentBlockDelta" => self.delta(&data, answer).await?,
            "contentBlockStop" => match self.open.remove(&number) {
                Some(Block::Text(index)) => answer.end_text(index).await?,
                Some(Block::Thinking(index)) => answer.end_thinking(index).await?,
                Some(Block::ToolCall(index)) => answer.end_tool_call(index).await?,
                None => {}
            },
            "messageStop" => self.stopped = data["stopReason"].as_str().map(str::to_owned),
            "metadata" => {
                let count = |name: &str| data["usage"][name].as_u64().unwrap_or(0);
                let total = count("totalTokens");
                let (input, output) = (count("inputTokens"), count("outputTokens"));
                answer.set_usage(Usage {
                    input,
                    output,
                    cache_read: count("cacheReadInputTokens"),
                    cache_write: count("cacheWriteInputTokens"),
                    total_tokens: if total > 0 { total } else { input + output },
                    ..Usage::default()
                });
            }
            name if name.ends_with("Exception") => {
                let message = data["message"].as_str().unwrap_or("no message");
                return Err(Failure::Provider(exception_text(name, message)));
            }
            _ => {}
        }
        Ok(Flow::More)
    }

    async fn end(&mut self, answer: &mut MessageBuilder) -> Result<(), Failure> {
        answer.edit().stop_reason = match self.stopped.as_deref() {
            None => return Err(Failure::unfinished("messageStop")),
            Some("end_turn" | "stop_sequence") => StopReason::Stop,
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
            Some("tool_use") => StopReason::ToolUse,
            Some(reason) => {
                let text = format!("The provider stopped with stopReason {reason}");
                return Err(Failure::Provider(text));
            }
        };
        Ok(())
    }
}

/// Returns the message of an exception. Retry and compaction match this text.
pub(crate) fn exception_text(name: &str, message: &str) -> String {
    let lower = name.to_lowercase();
    let prefix = match lower.as_str() {
        "internalserverexception" => "Internal server error",
        "modelstreamerrorexception" => "Model stream error",
        "validationexception" => "Validation error",
        "throttlingexception" => "Throttling error",
        "serviceunavailableexception" => "Service unavailable",
        _ => name,
    };
    format!("{prefix}: {message}")
}
