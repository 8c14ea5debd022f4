//! Replays the answer of an extension's provider. The events are plain data of the extension and
//! may have any form.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::StreamItem;
use super::message_builder::MessageBuilder;
use super::tool_arguments::cut_text_error;
use crate::failure::Failure;
use crate::message::{AssistantMessage, StopReason, ToolCall};
use crate::model::Model;
use crate::normalize::{normalize, normalize_arguments};

/// One event of pi-ai's `AssistantMessageEventStream`. Instead of all of `partial` it has only
/// the block that the event is about, and the changed members around the blocks.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub struct StreamEvent {
    #[serde(rename = "type")]
    kind: String,
    content_index: Option<i64>,
    delta: Option<String>,
    content: Option<String>,
    tool_call: Option<Value>,
    /// The block of `partial` at `contentIndex`.
    block: Option<Value>,
    /// Members of `partial` such as `usage` and `responseId`, if they have changed.
    head: Option<Map<String, Value>>,
    /// The message of `done` and `error`.
    message: Option<Map<String, Value>>,
}

/// Sends the steps of the replayed answer to its reader.
pub struct StreamReplay {
    answer: MessageBuilder,
    /// Content indices of pi, by those of the extension.
    blocks: HashMap<i64, usize>,
    /// Texts of arguments, by the extension's content index of the call.
    texts: HashMap<i64, String>,
    started: bool,
    ended: Option<AssistantMessage>,
}

impl StreamReplay {
    pub fn new(model: &Model, items: mpsc::Sender<StreamItem>, cancel: CancellationToken) -> Self {
        Self {
            answer: MessageBuilder::new(model, items, cancel),
            blocks: HashMap::new(),
            texts: HashMap::new(),
            started: false,
            ended: None,
        }
    }

    /// Returns true once the last event has come.
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Handles one event. Fails only if the reader of the stream is gone; an invalid event ends
    /// the answer with its reason.
    pub async fn handle(&mut self, event: StreamEvent) -> bool {
        match self.apply(event).await {
            Ok(()) => true,
            Err(failure) => {
                if !matches!(failure, Failure::Aborted) {
                    self.fail(&failure.to_string());
                }
                false
            }
        }
    }

    /// Sends the last item. `problem` is the reason why the last event is missing.
    pub async fn finish(mut self, problem: Option<String>) {
        let problem = problem.filter(|_| self.ended.is_none());
        match self.ended.take() {
            // The extension's message counts even after an abort: it is whole, or has its own
            // error text.
            Some(message) => {
                *self.answer.edit() = message;
                return self.answer.finish_unchanged().await;
            }
            None => {
                let text = problem
                    .unwrap_or_else(|| "The stream ended without a done or error event".to_owned());
                self.fail(&text);
                if let Some(message) = self.ended.take() {
                    *self.answer.edit() = message;
                }
            }
        }
        self.answer.finish(Ok(())).await;
    }

    fn fail(&mut self, text: &str) {
        let mut message = self.answer.message_so_far().clone();
        message.stop_reason = StopReason::Error;
        message.error_message = Some(text.to_owned());
        self.ended = Some(message);
    }

    async fn apply(&mut self, event: StreamEvent) -> Result<(), Failure> {
        if self.ended.is_some() {
            return Ok(());
        }
        if let Some(head) = event.head {
            let merged = merge(self.answer.message_so_far(), head);
            *self.answer.edit() = merged?;
        }
        if matches!(event.kind.as_str(), "done" | "error") {
            let mut members = event.message.unwrap_or_default();
            for (number, text) in &self.texts {
                let content = members.get_mut("content").and_then(Value::as_array_mut);
                let number = usize::try_from(*number).ok();
                if let Some(call) = content.zip(number).and_then(|(all, at)| all.get_mut(at)) {
                    refuse_cut_call(call, text);
                }
            }
            let mut message = merge(self.answer.message_so_far(), members)?;
            let failed = matches!(message.stop_reason, StopReason::Error | StopReason::Aborted);
            if event.kind == "error" && !failed {
                message.stop_reason = StopReason::Error;
            }
            if event.kind == "done" && failed {
                let calls = message.tool_calls().next().is_some();
                message.stop_reason = match calls {
                    true => StopReason::ToolUse,
                    false => StopReason::Stop,
                };
            }
            self.ended = Some(message);
            return Ok(());
        }
        if !self.started {
            self.started = true;
            self.answer.start().await?;
        }
        let Some(number) = event.content_index else {
            // These are `start`, and events of newer versions.
            return Ok(());
        };
        let known = self.blocks.get(&number).copied();
        let block = event.block.unwrap_or_default();
        let text = |member: &str| block[member].as_str().map(str::to_owned);
        match (event.kind.as_str(), known) {
            ("text_start" | "text_delta" | "text_end", None) => {
                let index = self.answer.start_text().await?;
                self.blocks.insert(number, index);
            }
            ("thinking_start" | "thinking_delta" | "thinking_end", None) => {
                let index = self.answer.start_thinking(Default::default()).await?;
                self.blocks.insert(number, index);
            }
            ("toolcall_start" | "toolcall_delta" | "toolcall_end", None) => {
                let call = match &event.tool_call {
                    Some(call) => call,
                    None => &block,
                };
                let of = |member: &str| call[member].as_str().unwrap_or_default().to_owned();
                let index = self
                    .answer
                    .start_tool_call(of("id"), of("name"), call["arguments"].clone())
                    .await?;
                self.blocks.insert(number, index);
            }
            _ => {}
        }
        let Some(index) = self.blocks.get(&number).copied() else {
            return Ok(());
        };
        let delta = event.delta.unwrap_or_default();
        match event.kind.as_str() {
            "text_delta" => self.answer.add_text(index, &delta).await,
            "thinking_delta" => self.answer.add_thinking(index, &delta).await,
            "toolcall_delta" => {
                self.texts.entry(number).or_default().push_str(&delta);
                self.answer.add_arguments(index, &delta).await
            }
            "text_end" => {
                if let Some(known) = self.answer.text(index) {
                    if let Some(whole) = event.content {
                        known.text = whole;
                    }
                    known.text_signature = text("textSignature");
                }
                self.answer.end_text(index).await
            }
            "thinking_end" => {
                if let Some(known) = self.answer.thinking(index) {
                    if let Some(whole) = event.content {
                        known.thinking = whole;
                    }
                    known.thinking_signature = text("thinkingSignature");
                    known.redacted = block["redacted"].as_bool();
                }
                self.answer.end_thinking(index).await
            }
            "toolcall_end" => {
                let mut whole = event.tool_call.unwrap_or(block);
                if let Some(text) = self.texts.get(&number) {
                    refuse_cut_call(&mut whole, text);
                }
                self.end_call(index, whole).await
            }
            _ => Ok(()),
        }
    }

    async fn end_call(&mut self, index: usize, mut whole: Value) -> Result<(), Failure> {
        if whole.is_object() {
            normalize_arguments(&mut whole);
        }
        let whole: Option<ToolCall> = serde_json::from_value(whole).ok();
        if let Some(whole) = whole {
            self.answer.replace_tool_call(index, whole).await?;
        }
        self.answer.end_tool_call(index).await
    }
}

/// Removes the arguments of a call whose text was cut off: many extensions parse the text as far
/// as it goes, and the tool would run with the result.
fn refuse_cut_call(call: &mut Value, text: &str) {
    let is_call = call.get("type").is_none_or(|kind| kind == "toolCall");
    if !is_call || call["argumentsError"].is_string() {
        return;
    }
    if let Some(error) = cut_text_error(text, &call["arguments"]) {
        call["arguments"] = Value::Object(Map::new());
        call["argumentsError"] = error.into();
    }
}

/// Merges the members that an extension sent into `message`.
fn merge(
    message: &AssistantMessage,
    members: Map<String, Value>,
) -> Result<AssistantMessage, Failure> {
    let unusable = |error: serde_json::Error| {
        Failure::Provider(format!("The provider's message cannot be used: {error}"))
    };
    let mut whole = serde_json::to_value(message).map_err(unusable)?;
    for (member, value) in members {
        if !value.is_null() {
            whole[member] = value;
        }
    }
    whole["role"] = "assistant".into();
    normalize(&mut whole);
    let mut merged: AssistantMessage = serde_json::from_value(whole).map_err(unusable)?;
    if merged.timestamp == 0 {
        merged.timestamp = message.timestamp;
    }
    Ok(merged)
}
