//! Builds the message from the chunks of the stream.

use serde_json::Value;

use super::compat::Compat;
use super::reasoning_details::ReasoningDetails;
use crate::failure::{Envelope, Failure, error_text};
use crate::http::exchange::{Decoder, Flow};
use crate::http::sse::SseEvent;
use crate::message::{AssistantBlock, StopReason, ThinkingContent, Usage};
use crate::stream::call_pieces::{CallPieces, Piece, whole_completion};
use crate::stream::message_builder::MessageBuilder;

/// Members with thoughts. Servers send the same thoughts in one or several of them.
const THINKING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

#[derive(Default)]
pub(super) struct CompletionsDecoder {
    current: Option<Block>,
    calls: CallPieces,
    details: ReasoningDetails,
    finish_reason: Option<String>,
    /// True if the server sends no `finish_reason` (`compat.supportsFinishReason` is false), so
    /// that an answer without one may be complete.
    without_finish_reason: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Block {
    Text(usize),
    Thinking(usize),
    ToolCall(usize),
}

impl CompletionsDecoder {
    pub(super) fn new(compat: &Compat) -> Self {
        Self {
            without_finish_reason: !compat.supports_finish_reason,
            ..Self::default()
        }
    }

    /// Makes `next` the block that grows, and ends the block before.
    async fn switch(
        &mut self,
        next: Option<Block>,
        answer: &mut MessageBuilder,
    ) -> Result<(), Failure> {
        if self.current == next {
            return Ok(());
        }
        match std::mem::replace(&mut self.current, next) {
            Some(Block::Text(index)) => answer.end_text(index).await,
            Some(Block::Thinking(index)) => answer.end_thinking(index).await,
            Some(Block::ToolCall(index)) => answer.end_tool_call(index).await,
            None => Ok(()),
        }
    }

    async fn text(&mut self, delta: &str, answer: &mut MessageBuilder) -> Result<(), Failure> {
        if let Some(Block::Text(index)) = self.current {
            return answer.add_text(index, delta).await;
        }
        self.switch(None, answer).await?;
        let index = answer.start_text().await?;
        self.current = Some(Block::Text(index));
        answer.add_text(index, delta).await
    }

    async fn thinking(
        &mut self,
        field: &str,
        delta: &str,
        answer: &mut MessageBuilder,
    ) -> Result<(), Failure> {
        if let Some(Block::Thinking(index)) = self.current {
            return answer.add_thinking(index, delta).await;
        }
        self.switch(None, answer).await?;
        let index = answer
            .start_thinking(ThinkingContent {
                thinking_signature: Some(field.to_owned()),
                ..ThinkingContent::default()
            })
            .await?;
        self.current = Some(Block::Thinking(index));
        answer.add_thinking(index, delta).await
    }

    async fn tool_call(
        &mut self,
        piece: Piece<'_>,
        answer: &mut MessageBuilder,
    ) -> Result<(), Failure> {
        let index = match self.calls.find(&piece, answer) {
            Some(index) => {
                self.switch(Some(Block::ToolCall(index)), answer).await?;
                if let Some(call) = answer.tool_call(index) {
                    if call.id.is_empty() {
                        piece.id.clone_into(&mut call.id);
                    }
                    if call.name.is_empty() {
                        piece.name.clone_into(&mut call.name);
                    }
                }
                index
            }
            None => {
                self.switch(None, answer).await?;
                let index = answer
                    .start_tool_call(piece.id.to_owned(), piece.name.to_owned(), Value::Null)
                    .await?;
                self.calls.begin(&piece, index);
                self.current = Some(Block::ToolCall(index));
                index
            }
        };
        answer.add_arguments(index, &piece.arguments).await
    }

    /// Adds the details of the thoughts to the answer.
    async fn keep_details(&mut self, answer: &mut MessageBuilder) -> Result<(), Failure> {
        let Some(signature) = self.details.signature() else {
            return Ok(());
        };
        let is_thinking = |block: &AssistantBlock| matches!(block, AssistantBlock::Thinking(_));
        let index = match answer.message().content.iter().position(is_thinking) {
            Some(index) => index,
            // All thoughts are encrypted.
            None => {
                let index = answer.start_thinking(ThinkingContent::default()).await?;
                answer.end_thinking(index).await?;
                index
            }
        };
        if let Some(thinking) = answer.thinking(index) {
            thinking.thinking_signature = Some(signature);
        }
        Ok(())
    }

    async fn delta(&mut self, delta: &Value, answer: &mut MessageBuilder) -> Result<(), Failure> {
        for text in texts_of(&delta["content"]) {
            self.text(text, answer).await?;
        }
        let thinking = THINKING_FIELDS
            .iter()
            .find_map(|field| Some((field, non_empty(&delta[*field])?)));
        if let Some((field, text)) = thinking {
            self.thinking(field, text, answer).await?;
        }
        for piece in Piece::parse_list(&delta["tool_calls"]) {
            self.tool_call(piece, answer).await?;
        }
        for detail in delta["reasoning_details"].as_array().into_iter().flatten() {
            self.details.push(detail);
        }
        Ok(())
    }
}

impl Decoder for CompletionsDecoder {
    fn events_of_whole(body: Value) -> Vec<Value> {
        whole_completion(body)
    }

    async fn event(
        &mut self,
        event: SseEvent,
        answer: &mut MessageBuilder,
    ) -> Result<Flow, Failure> {
        if event.data.starts_with("[DONE]") {
            return Ok(Flow::Complete);
        }
        let chunk: Value = answer.read_event(&event.data)?;
        if event.name == "error" || !matches!(chunk["error"], Value::Null) {
            return Err(Failure::Provider(error_text(&chunk, Envelope::Error)));
        }
        if answer.message().response_id.is_none()
            && let Some(id) = non_empty(&chunk["id"])
        {
            answer.edit().response_id = Some(id.to_owned());
        }
        let choice = &chunk["choices"][0];
        // Moonshot sends the usage in the choice.
        for raw in [&chunk["usage"], &choice["usage"]] {
            if raw.is_object() {
                answer.set_usage(usage(raw));
                break;
            }
        }
        // A server that does not stream sends the whole message.
        let delta = match &choice["delta"] {
            Value::Null => &choice["message"],
            delta => delta,
        };
        self.delta(delta, answer).await?;
        if let Some(reason) = non_empty(&choice["finish_reason"]) {
            self.finish_reason = Some(reason.to_owned());
        }
        Ok(Flow::More)
    }

    async fn end(&mut self, answer: &mut MessageBuilder) -> Result<(), Failure> {
        if self.finish_reason.is_none() && !self.without_finish_reason {
            return Err(Failure::unfinished("a finish_reason"));
        }
        self.switch(None, answer).await?;
        self.keep_details(answer).await?;
        let has_calls = answer.message().tool_calls().next().is_some();
        answer.edit().stop_reason = match self.finish_reason.as_deref() {
            None if has_calls => StopReason::ToolUse,
            None | Some("stop" | "end") => StopReason::Stop,
            Some("length") => StopReason::Length,
            Some("tool_calls" | "function_call") => StopReason::ToolUse,
            Some(reason) => {
                return Err(Failure::Provider(format!(
                    "Provider finish_reason: {reason}"
                )));
            }
        };
        Ok(())
    }
}

/// Returns the text, or the texts of the parts, of a content.
fn texts_of(content: &Value) -> Vec<&str> {
    let parts = match content {
        Value::Array(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let texts = parts
        .iter()
        .filter_map(|part| part.as_str().or(part["text"].as_str()));
    texts.filter(|text| !text.is_empty()).collect()
}

/// Converts token counts. Thoughts count as output; cached tokens exclude those that were written
/// to the cache.
fn usage(raw: &Value) -> Usage {
    let count = |pointer: &str| raw.pointer(pointer).and_then(Value::as_u64);
    let prompt = count("/prompt_tokens").unwrap_or(0);
    let cache_read = [
        "/prompt_tokens_details/cached_tokens",
        // DeepSeek's member.
        "/prompt_cache_hit_tokens",
        // Moonshot's member.
        "/cached_tokens",
    ];
    let cache_read = cache_read.into_iter().find_map(count).unwrap_or(0);
    let cache_write = count("/prompt_tokens_details/cache_write_tokens").unwrap_or(0);
    let mut usage = Usage {
        input: prompt
            .saturating_sub(cache_read)
            .saturating_sub(cache_write),
        output: count("/completion_tokens").unwrap_or(0),
        cache_read,
        cache_write,
        ..Usage::default()
    };
    usage.sum_tokens();
    usage
}

fn non_empty(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}
