//! Builds the message from the chunks of the stream.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::failure::{Envelope, Failure, error_text};
use crate::http::exchange::{Decoder, Flow};
use crate::http::sse::SseEvent;
use crate::message::{StopReason, ThinkingContent, Usage, now};
use crate::stream::message_builder::MessageBuilder;

#[derive(Default)]
pub(super) struct GeminiDecoder {
    /// True if chunks come as `{"response": …}`.
    wrapped: bool,
    open: Option<Open>,
    /// The API's `finishReason`.
    finished: Option<String>,
}

#[derive(Clone, Copy)]
enum Open {
    Text(usize),
    Thinking(usize),
}

impl GeminiDecoder {
    pub(super) fn wrapped() -> Self {
        Self {
            wrapped: true,
            ..Self::default()
        }
    }

    async fn close(&mut self, answer: &mut MessageBuilder) -> Result<(), Failure> {
        match self.open.take() {
            Some(Open::Text(index)) => answer.end_text(index).await,
            Some(Open::Thinking(index)) => answer.end_thinking(index).await,
            None => Ok(()),
        }
    }

    async fn text(
        &mut self,
        part: &Value,
        text: &str,
        answer: &mut MessageBuilder,
    ) -> Result<(), Failure> {
        let signature = part["thoughtSignature"].as_str().filter(|s| !s.is_empty());
        let signature = signature.map(str::to_owned);
        if part["thought"] == true {
            let index = match self.open {
                Some(Open::Thinking(index)) => index,
                _ => {
                    self.close(answer).await?;
                    answer.start_thinking(ThinkingContent::default()).await?
                }
            };
            self.open = Some(Open::Thinking(index));
            if let (Some(thinking), Some(signature)) = (answer.thinking(index), signature) {
                thinking.thinking_signature = Some(signature);
            }
            return answer.add_thinking(index, text).await;
        }
        let index = match self.open {
            Some(Open::Text(index)) => index,
            _ => {
                self.close(answer).await?;
                answer.start_text().await?
            }
        };
        self.open = Some(Open::Text(index));
        if let (Some(known), Some(signature)) = (answer.text(index), signature) {
            known.text_signature = Some(signature);
        }
        answer.add_text(index, text).await
    }

    /// Adds a call. Gemini sends each call whole.
    async fn call(&mut self, part: &Value, answer: &mut MessageBuilder) -> Result<(), Failure> {
        self.close(answer).await?;
        let call = &part["functionCall"];
        let name = call["name"].as_str().unwrap_or_default();
        let sent_id = call["id"].as_str().filter(|id| !id.is_empty());
        let sent_id =
            sent_id.filter(|id| answer.message().tool_calls().all(|known| known.id != *id));
        let id = sent_id.map_or_else(|| unique_id(name), str::to_owned);
        let index = answer
            .start_tool_call(id, name.to_owned(), Value::Null)
            .await?;
        if let Some(known) = answer.tool_call(index) {
            known.thought_signature = part["thoughtSignature"].as_str().map(str::to_owned);
        }
        let arguments = match &call["args"] {
            Value::Null => "{}".to_owned(),
            Value::String(text) => text.clone(),
            arguments => arguments.to_string(),
        };
        answer.add_arguments(index, &arguments).await?;
        answer.end_tool_call(index).await
    }
}

/// Makes an id for a call: Gemini sends one only sometimes.
fn unique_id(name: &str) -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    format!("{name}_{}_{number}", now())
}

impl Decoder for GeminiDecoder {
    /// Without `alt=sse` the API sends the events as a list.
    fn events_of_whole(body: Value) -> Vec<Value> {
        let is_event = |event: &Value| {
            let names = ["candidates", "promptFeedback", "response", "error"];
            names.iter().any(|name| !event[name].is_null())
        };
        let events = match body {
            Value::Array(events) => events,
            event => vec![event],
        };
        match events.iter().all(is_event) {
            true => events,
            false => Vec::new(),
        }
    }

    async fn event(
        &mut self,
        event: SseEvent,
        answer: &mut MessageBuilder,
    ) -> Result<Flow, Failure> {
        if event.data.trim().is_empty() {
            return Ok(Flow::More);
        }
        let chunk: Value = answer.read_event(&event.data)?;
        if chunk.get("error").is_some() {
            return Err(Failure::Provider(error_text(&chunk, Envelope::Bare)));
        }
        let chunk = match self.wrapped {
            true => &chunk["response"],
            false => &chunk,
        };
        if let Some(id) = chunk["responseId"].as_str()
            && answer.message().response_id.is_none()
            && !id.is_empty()
        {
            answer.edit().response_id = Some(id.to_owned());
        }
        let candidate = &chunk["candidates"][0];
        for part in candidate["content"]["parts"]
            .as_array()
            .into_iter()
            .flatten()
        {
            if let Some(text) = part["text"].as_str() {
                self.text(part, text, answer).await?;
            }
            if part["functionCall"].is_object() {
                self.call(part, answer).await?;
            }
        }
        if let Some(reason) = candidate["finishReason"].as_str() {
            self.finished = Some(reason.to_owned());
        }
        if let Some(reason) = chunk["promptFeedback"]["blockReason"].as_str() {
            self.finished = Some(format!("prompt blocked: {reason}"));
        }
        count(&chunk["usageMetadata"], answer);
        Ok(Flow::More)
    }

    async fn end(&mut self, answer: &mut MessageBuilder) -> Result<(), Failure> {
        self.close(answer).await?;
        let has_calls = answer.message().tool_calls().next().is_some();
        answer.edit().stop_reason = match self.finished.as_deref() {
            None => return Err(Failure::unfinished("finishReason")),
            Some("STOP") if has_calls => StopReason::ToolUse,
            Some("STOP") => StopReason::Stop,
            Some("MAX_TOKENS") => StopReason::Length,
            Some(reason) => {
                let text = format!("The provider stopped with finishReason {reason}");
                return Err(Failure::Provider(text));
            }
        };
        Ok(())
    }
}

fn count(raw: &Value, answer: &mut MessageBuilder) {
    if !raw.is_object() {
        return;
    }
    let count = |name: &str| raw[name].as_u64().unwrap_or(0);
    let cached = count("cachedContentTokenCount");
    answer.set_usage(Usage {
        // Gemini counts cached tokens as input tokens, too.
        input: count("promptTokenCount").saturating_sub(cached),
        output: count("candidatesTokenCount") + count("thoughtsTokenCount"),
        cache_read: cached,
        total_tokens: count("totalTokenCount"),
        ..Usage::default()
    });
}
