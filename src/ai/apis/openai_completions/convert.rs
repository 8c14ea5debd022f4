//! Converts the conversation to messages of Chat Completions.

use serde_json::{Value, json};

use super::compat::Compat;
use super::reasoning_details;
use crate::apis::request_parts::{IMAGE_ONLY_TEXT, data_url, images, is_blank};
use crate::apis::transform::{UniqueIds, sanitize_id, transform_messages};
use crate::message::{
    AssistantBlock, AssistantMessage, ContentBlock, Message, ToolResultMessage, UserContent,
    join_text,
};
use crate::model::Model;
use crate::stream::Request;

const MAX_ID_LENGTH: usize = 40;

pub(super) struct Converter<'a> {
    pub model: &'a Model,
    pub compat: &'a Compat,
}

impl Converter<'_> {
    pub(super) fn messages(&self, request: &Request) -> Vec<Value> {
        let mut converted = Vec::new();
        if let Some(prompt) = request.system_prompt.as_deref()
            && !prompt.is_empty()
        {
            let role = match self.model.reasoning && self.compat.supports_developer_role {
                true => "developer",
                false => "system",
            };
            converted.push(json!({"role": role, "content": prompt}));
        }
        let messages = transform_messages(
            &request.messages,
            request.tool_specs(),
            self.model,
            UniqueIds::InAnAnswer,
            |id, _| self.normalize_id(id),
        );
        // Images cannot be part of a tool result: they follow the last one.
        let mut pictures = Vec::new();
        let mut follows_result = false;
        for message in &messages {
            let is_result = matches!(message.as_ref(), Message::ToolResult(_));
            if !is_result && !pictures.is_empty() {
                self.show(std::mem::take(&mut pictures), &mut converted);
                follows_result = false;
            }
            match message.as_ref() {
                Message::User(user) => {
                    if follows_result {
                        self.add_bridge(&mut converted);
                    }
                    converted.extend(self.user(&user.content));
                }
                Message::Assistant(answer) => converted.extend(self.answer(answer)),
                Message::ToolResult(result) => {
                    converted.push(self.tool_result(result));
                    if self.model.takes_images() {
                        pictures.extend(images(&result.content).map(
                            |image| json!({"type": "image_url", "image_url": {"url": data_url(image)}}),
                        ));
                    }
                }
            }
            follows_result = is_result;
        }
        if !pictures.is_empty() {
            self.show(pictures, &mut converted);
        }
        converted
    }

    fn normalize_id(&self, id: &str) -> String {
        match id.split_once('|') {
            // An id of the Responses API. Its second part can have 400 characters and is dropped.
            Some((call, _)) => sanitize_id(call, MAX_ID_LENGTH),
            None if self.model.provider == "openai" => id.chars().take(MAX_ID_LENGTH).collect(),
            None => id.to_owned(),
        }
    }

    /// Adds an answer between a tool result and a user message, for servers that require one.
    fn add_bridge(&self, converted: &mut Vec<Value>) {
        if self.compat.requires_assistant_after_tool_result {
            let text = "I have processed the tool results.";
            converted.push(json!({"role": "assistant", "content": text}));
        }
    }

    fn show(&self, mut pictures: Vec<Value>, converted: &mut Vec<Value>) {
        self.add_bridge(converted);
        let text = "Attached image(s) from tool result:";
        pictures.insert(0, json!({"type": "text", "text": text}));
        converted.push(json!({"role": "user", "content": pictures}));
    }

    fn user(&self, content: &UserContent) -> Option<Value> {
        let content = match content {
            UserContent::Text(text) => json!(text),
            UserContent::Blocks(blocks) => {
                let parts: Vec<Value> = blocks.iter().filter_map(|b| self.part(b)).collect();
                if parts.is_empty() {
                    return None;
                }
                Value::Array(parts)
            }
        };
        Some(json!({"role": "user", "content": content}))
    }

    fn part(&self, block: &ContentBlock) -> Option<Value> {
        match block {
            ContentBlock::Text(text) => Some(json!({"type": "text", "text": text.text})),
            ContentBlock::Image(image) => self
                .model
                .takes_images()
                .then(|| json!({"type": "image_url", "image_url": {"url": data_url(image)}})),
            ContentBlock::Other(_) => None,
        }
    }

    fn answer(&self, answer: &AssistantMessage) -> Option<Value> {
        // The text is one string: some models imitate a list of parts in their own answers.
        let mut text: String = answer.texts().filter(|text| !is_blank(text)).collect();
        let thoughts: Vec<_> = answer
            .content
            .iter()
            .filter_map(|block| match block {
                AssistantBlock::Thinking(thinking) if !is_blank(&thinking.thinking) => {
                    Some(thinking)
                }
                _ => None,
            })
            .collect();
        let think = |separator: &str| {
            let texts: Vec<&str> = thoughts.iter().map(|t| t.thinking.as_str()).collect();
            texts.join(separator)
        };
        if self.compat.requires_thinking_as_text && !thoughts.is_empty() {
            let separator = if text.is_empty() { "" } else { "\n\n" };
            text = format!("{}{separator}{text}", think("\n\n"));
        }
        let has_text = !text.is_empty();
        let mut message = json!({"role": "assistant", "content": null});
        if has_text || self.compat.requires_assistant_after_tool_result {
            message["content"] = json!(text);
        }
        let details = reasoning_details::stored_in(answer);
        // The signature is the name of the member in which the thoughts came.
        if !self.compat.requires_thinking_as_text
            && details.is_none()
            && let Some(field) = thoughts
                .first()
                .and_then(|t| t.thinking_signature.as_deref())
            && !matches!(field, "" | "role" | "content" | "tool_calls")
        {
            message[field] = json!(think("\n"));
        }
        let calls: Vec<Value> = answer
            .tool_calls()
            .map(|call| {
                json!({"id": call.id, "type": "function", "function": {
                    "name": call.name,
                    "arguments": call.arguments.to_string(),
                }})
            })
            .collect();
        if calls.is_empty() && !has_text {
            return None;
        }
        if !calls.is_empty() {
            message["tool_calls"] = Value::Array(calls);
        }
        if let Some(details) = details.or_else(|| details_of_calls(answer)) {
            message["reasoning_details"] = details;
        }
        // Some servers refuse an answer of a thinking model without this member.
        if self.compat.requires_reasoning_content_on_assistant_messages
            && self.model.reasoning
            && message.get("reasoning_content").is_none()
        {
            message["reasoning_content"] = json!("");
        }
        Some(message)
    }

    fn tool_result(&self, result: &ToolResultMessage) -> Value {
        let text = join_text(&result.content);
        let has_only_images = text.is_empty() && images(&result.content).next().is_some();
        let mut message = json!({
            "role": "tool",
            "content": if has_only_images { IMAGE_ONLY_TEXT } else { &text },
            "tool_call_id": result.tool_call_id,
        });
        if self.compat.requires_tool_result_name && !result.tool_name.is_empty() {
            message["name"] = json!(result.tool_name);
        }
        message
    }
}

/// Returns encrypted details that older versions store with the call that followed them.
fn details_of_calls(answer: &AssistantMessage) -> Option<Value> {
    let details: Vec<Value> = answer
        .tool_calls()
        .filter_map(|call| serde_json::from_str(call.thought_signature.as_deref()?).ok())
        .collect();
    (!details.is_empty()).then_some(Value::Array(details))
}
