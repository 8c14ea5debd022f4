//! A provider without a key and without network access. Users can watch the agent work, and tests
//! and examples run on any machine. Its answers state that it is no language model.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use super::message::{
    AssistantBlock, AssistantMessage, StopReason, TextContent, ToolCall, Usage, now,
};
use super::model::{Modality, Model, ModelCost};
use super::models::builtin;
use super::stream::{Api, AssistantEvent, AssistantStream, PartialMessage, Request, StreamItem};

mod calls;
mod intent;
mod quotes;
mod texts;
mod turn;

pub const PROVIDER: &str = "demo";
/// The name of its wire API.
pub const API: &str = "demo";
const ID: &str = "demo";

/// Pause between two deltas: visible, but short.
const DELTA_PAUSE: Duration = Duration::from_millis(4);
const WORDS_PER_DELTA: usize = 3;
const JSON_CHARS_PER_DELTA: usize = 12;

pub fn is_demo(model: &Model) -> bool {
    model.api == API
}

/// Returns the provider's entry in the form of a catalogue entry.
pub(super) fn entry() -> builtin::ProviderEntry {
    let model = Model {
        id: ID.to_owned(),
        name: "Demo (built in, no key needed)".to_owned(),
        api: API.to_owned(),
        provider: PROVIDER.to_owned(),
        base_url: String::new(),
        reasoning: false,
        input: vec![Modality::Text],
        cost: ModelCost::default(),
        context_window: 128_000,
        max_tokens: 16_384,
        headers: None,
        thinking_level_map: None,
        sampling_params: None,
        sampling_params_by_thinking_level: None,
        compat: None,
    };
    builtin::ProviderEntry {
        api: model.api.clone(),
        base_url: String::new(),
        models: vec![model],
    }
}

/// Implements the wire API `demo`.
pub struct DemoApi;

impl Api for DemoApi {
    fn stream(&self, request: Request) -> AssistantStream {
        let (items, stream) = AssistantStream::channel();
        tokio::spawn(async move {
            let mut writer = Writer::new(&request, items);
            let message = match writer.write_all(&request).await {
                Ok(()) => writer.message,
                Err(Stopped::Cancelled) => AssistantMessage {
                    stop_reason: StopReason::Aborted,
                    error_message: Some("Request was aborted.".to_owned()),
                    ..writer.message
                },
                Err(Stopped::ReaderGone) => return,
            };
            // Sending fails only if the reader of the stream is gone, which is no error here.
            writer
                .items
                .send(StreamItem::Done(message.into()))
                .await
                .ok();
        });
        stream
    }
}

/// The reason why an answer stopped early.
enum Stopped {
    Cancelled,
    ReaderGone,
}

struct Writer {
    items: Sender<StreamItem>,
    cancel: CancellationToken,
    message: AssistantMessage,
}

impl Writer {
    fn new(request: &Request, items: Sender<StreamItem>) -> Self {
        let input = tokens_of_request(request);
        Self {
            items,
            cancel: request.cancel.clone(),
            message: AssistantMessage {
                content: Vec::new(),
                api: API.to_owned(),
                provider: request.model.provider.clone(),
                model: request.model.id.clone(),
                response_id: None,
                usage: Usage {
                    input,
                    total_tokens: input,
                    ..Usage::default()
                },
                stop_reason: StopReason::Stop,
                error_message: None,
                timestamp: now(),
            },
        }
    }

    async fn write_all(&mut self, request: &Request) -> Result<(), Stopped> {
        self.send(AssistantEvent::Start).await?;
        let turn = turn::next(request);
        if !turn.text.is_empty() {
            self.write_text(&turn.text).await?;
        }
        for (name, arguments) in turn.calls {
            self.call(name, arguments).await?;
            self.message.stop_reason = StopReason::ToolUse;
        }
        Ok(())
    }

    async fn write_text(&mut self, text: &str) -> Result<(), Stopped> {
        let content_index = self.message.content.len();
        self.message
            .content
            .push(AssistantBlock::Text(TextContent::default()));
        self.send(AssistantEvent::TextStart { content_index })
            .await?;
        for delta in by_words(text) {
            self.pause(delta).await?;
            if let Some(AssistantBlock::Text(block)) = self.message.content.last_mut() {
                block.text.push_str(delta);
            }
            let delta = delta.to_owned();
            self.send(AssistantEvent::TextDelta {
                content_index,
                delta,
            })
            .await?;
        }
        let content = text.to_owned();
        self.send(AssistantEvent::TextEnd {
            content_index,
            content,
        })
        .await
    }

    async fn call(&mut self, name: String, arguments: Map<String, Value>) -> Result<(), Stopped> {
        let content_index = self.message.content.len();
        let started = ToolCall {
            id: format!("demo_{}", uuid::Uuid::new_v4().simple()),
            name,
            arguments: Value::Object(Map::new()),
            arguments_error: None,
            thought_signature: None,
            partial_json: Some(String::new()),
        };
        self.message.content.push(AssistantBlock::ToolCall(started));
        let started = AssistantEvent::ToolCallStart { content_index };
        self.send(started).await?;

        let (json, ends) = as_json(&arguments);
        let mut sent = 0;
        for delta in by_chars(&json) {
            self.pause(delta).await?;
            sent += delta.len();
            // A value is shown once it has arrived whole.
            let whole = ends.iter().filter(|end| **end <= sent).count();
            let known: Map<String, Value> = arguments.clone().into_iter().take(whole).collect();
            if let Some(call) = self.last_call() {
                call.arguments = Value::Object(known);
                call.partial_json = Some(json[..sent].to_owned());
            }
            let delta = delta.to_owned();
            self.send(AssistantEvent::ToolCallDelta {
                content_index,
                delta,
            })
            .await?;
        }
        let Some(call) = self.last_call() else {
            return Ok(()); // it was pushed above
        };
        call.arguments = Value::Object(arguments);
        call.partial_json = None;
        let tool_call = call.clone();
        self.send(AssistantEvent::ToolCallEnd {
            content_index,
            tool_call,
        })
        .await
    }

    fn last_call(&mut self) -> Option<&mut ToolCall> {
        match self.message.content.last_mut() {
            Some(AssistantBlock::ToolCall(call)) => Some(call),
            _ => None,
        }
    }

    /// Waits, and counts the tokens of `delta`.
    async fn pause(&mut self, delta: &str) -> Result<(), Stopped> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(Stopped::Cancelled),
            () = tokio::time::sleep(DELTA_PAUSE) => {}
        }
        let usage = &mut self.message.usage;
        usage.output += tokens(delta.len());
        usage.total_tokens = usage.input + usage.output;
        Ok(())
    }

    async fn send(&mut self, event: AssistantEvent) -> Result<(), Stopped> {
        let partial = PartialMessage::new(&self.message);
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Stopped::Cancelled),
            sent = self.items.send(StreamItem::Event { event, partial }) => {
                sent.map_err(|_| Stopped::ReaderGone)
            }
        }
    }
}

/// Estimates tokens from bytes: four bytes are one token.
fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

fn tokens_of_request(request: &Request) -> u64 {
    let json = (
        &request.system_prompt,
        &request.messages,
        request.tool_specs(),
    );
    // These types always serialise; a failure would only make the estimate wrong.
    tokens(serde_json::to_string(&json).map_or(0, |json| json.len()))
}

/// Splits a text into pieces of a few words, each with the space after it.
fn by_words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut words = 0;
        let mut in_space = false;
        let end = rest.char_indices().find_map(|(index, sign)| {
            let starts_word = in_space && !sign.is_whitespace();
            in_space = sign.is_whitespace();
            words += usize::from(starts_word);
            (starts_word && words == WORDS_PER_DELTA).then_some(index)
        });
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

fn by_chars(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(JSON_CHARS_PER_DELTA);
        let (piece, after) = rest.split_at(end.map_or(rest.len(), |(index, _)| index));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Returns the JSON text of an object, and the offset at which each value ends.
fn as_json(object: &Map<String, Value>) -> (String, Vec<usize>) {
    let mut json = String::from("{");
    let mut ends = Vec::new();
    for (name, value) in object {
        if json.len() > 1 {
            json.push(',');
        }
        json.push_str(&format!("{}:{value}", Value::from(name.as_str())));
        ends.push(json.len());
    }
    json.push('}');
    (json, ends)
}

#[cfg(test)]
mod tests;
