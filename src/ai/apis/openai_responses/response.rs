//! Builds the message from the events of the stream.

use serde_json::{Value, json};

use super::convert::TextSignature;
use crate::failure::{Envelope, Failure, error_text};
use crate::http::exchange::{Decoder, Flow};
use crate::http::sse::SseEvent;
use crate::message::{StopReason, ThinkingContent, Usage};
use crate::stream::message_builder::MessageBuilder;

/// The requested service tier, which affects the price.
pub(super) enum Tier {
    /// The response names the tier; if it does not, the requested tier counts.
    Requested(Option<String>),
    /// ChatGPT's responses name the tier "default" for every request.
    RequestedFromChatGpt(Option<String>),
}

impl Tier {
    fn served<'a>(&'a self, answered: Option<&'a str>) -> Option<&'a str> {
        match (self, answered) {
            (Self::RequestedFromChatGpt(Some(requested)), Some("default"))
                if matches!(requested.as_str(), "flex" | "priority") =>
            {
                Some(requested)
            }
            (_, Some(answered)) => Some(answered),
            (Self::Requested(requested) | Self::RequestedFromChatGpt(requested), None) => {
                requested.as_deref()
            }
        }
    }
}

/// Returns the price of a tier as a multiple of the list price.
fn factor(model: &str, tier: Option<&str>) -> Option<f64> {
    match tier {
        Some("flex") => Some(0.5),
        Some("priority") if model == "gpt-5.5" => Some(2.5),
        Some("priority") => Some(2.0),
        _ => None,
    }
}

pub(super) struct ResponsesDecoder {
    tier: Tier,
    items: Vec<(ItemKey, Item)>,
    /// Arguments of calls that were not announced.
    early: Vec<(ItemKey, String)>,
    /// The response's `status`; once it is set, the response is complete.
    status: Option<String>,
    /// The reason why the response is incomplete.
    incomplete: Option<String>,
}

#[derive(Clone, Copy)]
enum Item {
    Thinking(usize),
    Text(usize),
    ToolCall(usize),
    /// A call that has ended. LM Studio sends its arguments later, in a separate event.
    EndedToolCall(usize),
}

/// Identifies the item of an event. GitHub Copilot changes the id from event to event, and some
/// servers leave out the number.
#[derive(Debug)]
struct ItemKey {
    number: Option<u64>,
    id: Option<String>,
}

impl ItemKey {
    fn new(event: &Value) -> Self {
        let id = event["item_id"].as_str().or(event["item"]["id"].as_str());
        Self {
            number: event["output_index"].as_u64(),
            id: id.filter(|id| !id.is_empty()).map(str::to_owned),
        }
    }

    /// Returns true if the event is about `known`. An event without number and id is about the
    /// last item.
    fn names(&self, known: &Self) -> bool {
        match (self.number, known.number) {
            (Some(number), Some(known)) => number == known,
            _ => match (&self.id, &known.id) {
                (Some(id), Some(known)) => id == known,
                (id, _) => id.is_none() && self.number.is_none(),
            },
        }
    }
}

impl ResponsesDecoder {
    fn item(&self, key: &ItemKey) -> Option<Item> {
        let mut latest_first = self.items.iter().rev();
        let found = latest_first.find(|(known, _)| key.names(known));
        found.map(|(_, item)| *item)
    }

    pub(super) fn with_tier(tier: Tier) -> Self {
        Self {
            tier,
            items: Vec::new(),
            early: Vec::new(),
            status: None,
            incomplete: None,
        }
    }

    async fn start_item(
        &mut self,
        event: &Value,
        answer: &mut MessageBuilder,
    ) -> Result<(), Failure> {
        let item = &event["item"];
        let started = match item["type"].as_str() {
            Some("reasoning") => {
                let thinking = ThinkingContent::default();
                Item::Thinking(answer.start_thinking(thinking).await?)
            }
            Some("message") => Item::Text(answer.start_text().await?),
            Some("function_call") => {
                let index = answer
                    .start_tool_call(call_id(item), text_of(item, "name").to_owned(), Value::Null)
                    .await?;
                answer
                    .add_arguments(index, text_of(item, "arguments"))
                    .await?;
                Item::ToolCall(index)
            }
            // Items of server tools are ignored: pi never requests such tools.
            _ => return Ok(()),
        };
        self.items.push((ItemKey::new(event), started));
        Ok(())
    }

    async fn add(
        &mut self,
        kind: &str,
        event: &Value,
        answer: &mut MessageBuilder,
    ) -> Result<(), Failure> {
        let delta = text_of(event, "delta");
        let key = ItemKey::new(event);
        let item = self.item(&key);
        match (kind, item) {
            // This separates the parts of a summary, as in the complete text.
            ("response.reasoning_summary_part.added", Some(Item::Thinking(index))) => {
                let is_first = answer
                    .thinking(index)
                    .is_none_or(|thinking| thinking.thinking.is_empty());
                let separator = if is_first { "" } else { "\n\n" };
                answer.add_thinking(index, separator).await
            }
            (
                "response.reasoning_summary_text.delta" | "response.reasoning_text.delta",
                Some(Item::Thinking(index)),
            ) => answer.add_thinking(index, delta).await,
            ("response.output_text.delta" | "response.refusal.delta", Some(Item::Text(index))) => {
                answer.add_text(index, delta).await
            }
            ("response.function_call_arguments.delta", Some(Item::ToolCall(index))) => {
                answer.add_arguments(index, delta).await
            }
            (
                "response.function_call_arguments.done",
                Some(Item::ToolCall(index) | Item::EndedToolCall(index)),
            ) => {
                answer
                    .complete_arguments(index, text_of(event, "arguments"))
                    .await
            }
            ("response.function_call_arguments.done", None) => {
                let arguments = text_of(event, "arguments").to_owned();
                self.early.push((key, arguments));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Sets the usage and the cost, which depends on the tier that served the request.
    fn finish(&self, response: &Value, answer: &mut MessageBuilder) {
        if let Some(id) = response["id"].as_str() {
            answer.edit().response_id = Some(id.to_owned());
        }
        let raw = &response["usage"];
        if !raw.is_object() {
            return;
        }
        let count = |pointer: &str| raw.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let cached = count("/input_tokens_details/cached_tokens");
        answer.set_usage(Usage {
            // The API counts cached tokens as input tokens, too.
            input: count("/input_tokens").saturating_sub(cached),
            output: count("/output_tokens"),
            cache_read: cached,
            total_tokens: count("/total_tokens"),
            ..Usage::default()
        });
        let tier = self.tier.served(response["service_tier"].as_str());
        if let Some(factor) = factor(&answer.message().model, tier) {
            answer.edit().usage.cost.scale(factor);
        }
    }

    /// Adds the items of a response that were not streamed.
    async fn take_output(
        &mut self,
        response: &Value,
        answer: &mut MessageBuilder,
    ) -> Result<(), Failure> {
        let output = response["output"].as_array().into_iter().flatten();
        for (number, item) in output.enumerate() {
            let event = json!({"output_index": number, "item": item});
            self.end_item(&event, answer).await?;
        }
        Ok(())
    }

    async fn end_item(
        &mut self,
        event: &Value,
        answer: &mut MessageBuilder,
    ) -> Result<(), Failure> {
        let key = ItemKey::new(event);
        if matches!(self.item(&key), None | Some(Item::EndedToolCall(_))) {
            // Some gateways announce nothing and send only the finished item.
            self.start_item(event, answer).await?;
        }
        let item = &event["item"];
        let known = self.items.iter().rposition(|(known, _)| key.names(known));
        let known = known.map(|position| self.items.remove(position).1);
        match known {
            Some(Item::Thinking(index)) => {
                let summary = join(&item["summary"], "text", "\n\n");
                let whole = summary.or_else(|| join(&item["content"], "text", "\n\n"));
                if let Some(whole) = whole {
                    answer.complete_thinking(index, whole).await?;
                }
                if let Some(thinking) = answer.thinking(index) {
                    thinking.thinking_signature = Some(item.to_string());
                }
                answer.end_thinking(index).await
            }
            Some(Item::Text(index)) => {
                let parts = item["content"].as_array().into_iter().flatten();
                let whole: String = parts
                    .map(|part| match part["type"].as_str() {
                        Some("refusal") => text_of(part, "refusal"),
                        _ => text_of(part, "text"),
                    })
                    .collect();
                if !whole.is_empty() {
                    answer.complete_text(index, whole).await?;
                }
                if let Some(text) = answer.text(index) {
                    text.text_signature = TextSignature::encode(item);
                }
                answer.end_text(index).await
            }
            Some(Item::ToolCall(index)) => {
                let early = self.early.iter().position(|(early, _)| early.names(&key));
                if let Some(position) = early {
                    let early = self.early.remove(position).1;
                    answer.complete_arguments(index, &early).await?;
                }
                answer
                    .complete_arguments(index, text_of(item, "arguments"))
                    .await?;
                self.items.push((key, Item::EndedToolCall(index)));
                answer.end_tool_call(index).await
            }
            Some(Item::EndedToolCall(_)) | None => Ok(()),
        }
    }
}

impl Decoder for ResponsesDecoder {
    fn events_of_whole(body: Value) -> Vec<Value> {
        if !body["error"].is_null() && !body["output"].is_array() {
            return vec![json!({"type": "error", "error": body["error"]})];
        }
        let kind = match body["status"].as_str() {
            _ if !body["output"].is_array() => return Vec::new(),
            Some("failed") => "response.failed",
            _ => "response.completed",
        };
        vec![json!({"type": kind, "response": body})]
    }

    async fn event(
        &mut self,
        event: SseEvent,
        answer: &mut MessageBuilder,
    ) -> Result<Flow, Failure> {
        if event.data.starts_with("[DONE]") {
            return Ok(Flow::Complete);
        }
        let data: Value = answer.read_event(&event.data)?;
        let kind = data["type"].as_str().unwrap_or(&event.name);
        let response = &data["response"];
        match kind {
            "response.created" => {
                if let Some(id) = response["id"].as_str() {
                    answer.edit().response_id = Some(id.to_owned());
                }
            }
            "response.output_item.added" => self.start_item(&data, answer).await?,
            "response.output_item.done" => self.end_item(&data, answer).await?,
            // ChatGPT sends `response.done`.
            "response.completed" | "response.incomplete" | "response.done" => {
                if answer.message().content.is_empty() {
                    self.take_output(response, answer).await?;
                }
                self.finish(response, answer);
                let details = &response["incomplete_details"]["reason"];
                self.incomplete = details.as_str().map(str::to_owned);
                self.status = Some(match response["status"].as_str() {
                    Some(status) => status.to_owned(),
                    None if kind == "response.incomplete" => "incomplete".to_owned(),
                    None => "completed".to_owned(),
                });
                return Ok(Flow::Complete);
            }
            "response.failed" => return Err(Failure::Provider(failed_text(response))),
            "error" => {
                return Err(Failure::Provider(match &data["error"] {
                    Value::Null => format!(
                        "Error Code {}: {}",
                        plain(&data["code"]),
                        plain(&data["message"])
                    ),
                    _ => error_text(&data, Envelope::Error),
                }));
            }
            _ if !data["error"].is_null() => {
                return Err(Failure::Provider(error_text(&data, Envelope::Error)));
            }
            _ => self.add(kind, &data, answer).await?,
        }
        Ok(Flow::More)
    }

    async fn end(&mut self, answer: &mut MessageBuilder) -> Result<(), Failure> {
        let has_calls = answer.message().tool_calls().next().is_some();
        answer.edit().stop_reason = match self.status.as_deref() {
            None => return Err(Failure::unfinished("response.completed")),
            Some("completed" | "in_progress" | "queued") if has_calls => StopReason::ToolUse,
            Some("completed" | "in_progress" | "queued") => StopReason::Stop,
            Some("incomplete") => match self.incomplete.as_deref() {
                None | Some("max_output_tokens") => StopReason::Length,
                Some(reason) => {
                    let text = format!("Response incomplete: {reason}");
                    return Err(Failure::Provider(text));
                }
            },
            Some(status @ ("failed" | "cancelled")) => {
                return Err(Failure::Provider(format!(
                    "The provider ended the response with status {status}"
                )));
            }
            Some(status) => {
                return Err(Failure::Provider(format!(
                    "Unhandled stop reason: {status}"
                )));
            }
        };
        Ok(())
    }
}

fn failed_text(response: &Value) -> String {
    let error = &response["error"];
    if error.is_object() {
        let code = error["code"].as_str().unwrap_or("unknown");
        let message = error["message"].as_str().unwrap_or("no message");
        return format!("{code}: {message}");
    }
    match response["incomplete_details"]["reason"].as_str() {
        Some(reason) => format!("incomplete: {reason}"),
        None => "The provider reported a failure without details".to_owned(),
    }
}

/// Returns `call_id|item_id`: both parts are needed to send the call back.
fn call_id(item: &Value) -> String {
    let call_id = text_of(item, "call_id");
    match item["id"].as_str() {
        Some(id) => format!("{call_id}|{id}"),
        None => call_id.to_owned(),
    }
}

/// Joins the texts; returns `None` if there are none.
fn join(parts: &Value, member: &str, separator: &str) -> Option<String> {
    let texts: Vec<&str> = parts
        .as_array()?
        .iter()
        .map(|part| text_of(part, member))
        .collect();
    Some(texts.join(separator)).filter(|text| !text.is_empty())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}
