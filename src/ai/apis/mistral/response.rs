//! Builds the message from the chunks of the stream.

use serde_json::Value;

use super::request::derive_id;
use crate::failure::{Envelope, Failure, error_text};
use crate::http::exchange::{Decoder, Flow};
use crate::http::sse::SseEvent;
use crate::message::{StopReason, ThinkingContent, Usage};
use crate::stream::call_pieces::{CallPieces, Piece, whole_completion};
use crate::stream::message_builder::MessageBuilder;

#[derive(Default)]
pub(super) struct MistralDecoder {
    open: Option<Open>,
    calls: CallPieces,
    /// The API's `finish_reason`.
    finished: Option<String>,
}

#[derive(Clone, Copy)]
enum Open {
    Text(usize),
    Thinking(usize),
}

impl MistralDecoder {
    async fn close(&mut self, answer: &mut MessageBuilder) -> Result<(), Failure> {
        match self.open.take() {
            Some(Open::Text(index)) => answer.end_text(index).await,
            Some(Open::Thinking(index)) => answer.end_thinking(index).await,
            None => Ok(()),
        }
    }

    async fn text(&mut self, delta: &str, answer: &mut MessageBuilder) -> Result<(), Failure> {
        let index = match self.open {
            Some(Open::Text(index)) => index,
            _ => {
                self.close(answer).await?;
                answer.start_text().await?
            }
        };
        self.open = Some(Open::Text(index));
        answer.add_text(index, delta).await
    }

    async fn thinking(&mut self, delta: &str, answer: &mut MessageBuilder) -> Result<(), Failure> {
        if delta.is_empty() {
            return Ok(());
        }
        let index = match self.open {
            Some(Open::Thinking(index)) => index,
            _ => {
                self.close(answer).await?;
                answer.start_thinking(ThinkingContent::default()).await?
            }
        };
        self.open = Some(Open::Thinking(index));
        answer.add_thinking(index, delta).await
    }

    async fn call(&mut self, piece: Piece<'_>, answer: &mut MessageBuilder) -> Result<(), Failure> {
        self.close(answer).await?;
        let index = match self.calls.find(&piece, answer) {
            Some(index) => index,
            None => {
                let number = self.calls.content_indices().count();
                let id = match piece.id {
                    "" => derive_id(&format!("toolcall:{number}"), 0),
                    id => id.to_owned(),
                };
                let name = piece.name.to_owned();
                let index = answer.start_tool_call(id, name, Value::Null).await?;
                self.calls.begin(&piece, index);
                index
            }
        };
        answer.add_arguments(index, &piece.arguments).await
    }
}

impl Decoder for MistralDecoder {
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
        if chunk.get("error").is_some() {
            return Err(Failure::Provider(error_text(&chunk, Envelope::Error)));
        }
        if let Some(id) = chunk["id"].as_str().filter(|id| !id.is_empty())
            && answer.message().response_id.is_none()
        {
            answer.edit().response_id = Some(id.to_owned());
        }
        let raw = &chunk["usage"];
        if raw.is_object() {
            let count = |name: &str| raw[name].as_u64().unwrap_or(0);
            let (prompt, output) = (count("prompt_tokens"), count("completion_tokens"));
            let total = raw["total_tokens"].as_u64().filter(|total| *total > 0);
            let cached = [
                "/prompt_tokens_details/cached_tokens",
                "/prompt_token_details/cached_tokens",
                "/num_cached_tokens",
            ];
            let mut cached = cached
                .into_iter()
                .filter_map(|place| raw.pointer(place)?.as_u64());
            let cache_read = cached.next().unwrap_or(0).min(prompt);
            answer.set_usage(Usage {
                input: prompt - cache_read,
                output,
                cache_read,
                total_tokens: total.unwrap_or(prompt.saturating_add(output)),
                ..Usage::default()
            });
        }
        let choice = &chunk["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finished = Some(reason.to_owned());
        }
        // A server that does not stream sends the whole message.
        let delta = match &choice["delta"] {
            Value::Null => &choice["message"],
            delta => delta,
        };
        match &delta["content"] {
            Value::String(text) if !text.is_empty() => self.text(text, answer).await?,
            Value::Array(items) => {
                for item in items {
                    let text = item.as_str().or(item["text"].as_str());
                    if item["type"] == "thinking" {
                        let parts = item["thinking"].as_array().into_iter().flatten();
                        for thought in parts.filter_map(|part| part["text"].as_str()) {
                            self.thinking(thought, answer).await?;
                        }
                    } else if let Some(text) = text.filter(|text| !text.is_empty()) {
                        self.text(text, answer).await?;
                    }
                }
            }
            _ => {}
        }
        for mut piece in Piece::parse_list(&delta["tool_calls"]) {
            if piece.id == "null" {
                piece.id = "";
            }
            self.call(piece, answer).await?;
        }
        Ok(Flow::More)
    }

    async fn end(&mut self, answer: &mut MessageBuilder) -> Result<(), Failure> {
        self.close(answer).await?;
        for index in self.calls.content_indices() {
            answer.end_tool_call(index).await?;
        }
        answer.edit().stop_reason = match self.finished.as_deref() {
            None => return Err(Failure::unfinished("finish_reason")),
            Some("length" | "model_length") => StopReason::Length,
            Some("tool_calls") => StopReason::ToolUse,
            Some("stop") => StopReason::Stop,
            Some("error") => {
                let text = "The provider ended the answer with an error (server error)".into();
                return Err(Failure::Provider(text));
            }
            Some(reason) => {
                let text = format!("The provider stopped with finish_reason {reason}");
                return Err(Failure::Provider(text));
            }
        };
        Ok(())
    }
}
