//! Converts the conversation to items of the Responses API.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::apis::request_parts::{IMAGE_ONLY_TEXT, data_url, has_image, images};
use crate::apis::transform::{UniqueIds, sanitize_id, transform_messages};
use crate::message::{
    AssistantBlock, AssistantMessage, ContentBlock, Message, TextContent, ToolResultMessage,
    UserContent, join_text,
};
use crate::model::Model;
use crate::stream::Request;

const MAX_ID_LENGTH: usize = 64;

/// Providers with ids of two parts, `call_id|item_id`.
const PAIRED_IDS: [&str; 5] = [
    "openai",
    "openai-codex",
    "opencode",
    "azure-openai-responses",
    "azure",
];

/// Content of [`TextContent::text_signature`].
#[derive(Serialize, Deserialize)]
pub(super) struct TextSignature {
    v: u32,
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
}

impl TextSignature {
    /// Returns the signature of a message item as JSON.
    pub(super) fn encode(item: &Value) -> Option<String> {
        let signature = Self {
            v: 1,
            id: item["id"].as_str()?.to_owned(),
            phase: item["phase"].as_str().map(str::to_owned),
        };
        serde_json::to_string(&signature).ok()
    }

    fn parse(text: &TextContent) -> Option<Self> {
        let signature = text.text_signature.as_deref().filter(|s| !s.is_empty())?;
        let mut parsed: Self = match serde_json::from_str(signature) {
            Ok(parsed @ Self { v: 1, .. }) => parsed,
            // Old sessions store only the id.
            _ => Self {
                v: 0,
                id: signature.to_owned(),
                phase: None,
            },
        };
        parsed
            .phase
            .take_if(|phase| !matches!(phase.as_str(), "commentary" | "final_answer"));
        Some(parsed)
    }
}

pub(super) fn input(request: &Request) -> Vec<Value> {
    let mut items = Vec::new();
    if let Some(prompt) = request.system_prompt.as_deref()
        && !prompt.is_empty()
    {
        let role = if request.model.reasoning {
            "developer"
        } else {
            "system"
        };
        items.push(json!({"role": role, "content": prompt}));
    }
    items.extend(conversation(request));
    items
}

/// Returns the items of the conversation, without the system prompt.
pub(super) fn conversation(request: &Request) -> Vec<Value> {
    let model = &request.model;
    let mut items = Vec::new();
    let unique = UniqueIds::InTheConversation;
    let messages = transform_messages(
        &request.messages,
        request.tool_specs(),
        model,
        unique,
        |id, answer| normalize_id(id, model, answer),
    );
    for (index, message) in messages.iter().enumerate() {
        match message.as_ref() {
            Message::User(user) => items.extend(from_user(&user.content, model)),
            Message::Assistant(answer) => items.extend(from_answer(answer, model, index)),
            Message::ToolResult(result) => items.push(from_tool_result(result, model)),
        }
    }
    drop_repeated_ids(&mut items);
    items
}

/// Drops repeated ids: the API refuses two items with the same id, which a history has if it
/// contains an answer twice. Thoughts are worthless without their id; other items do not need it.
fn drop_repeated_ids(items: &mut Vec<Value>) {
    let mut used = HashSet::new();
    items.retain_mut(|item| {
        let is_repeated = item["id"]
            .as_str()
            .is_some_and(|id| !used.insert(id.to_owned()));
        if is_repeated && let Some(item) = item.as_object_mut() {
            item.shift_remove("id");
        }
        !is_repeated || item["type"] != "reasoning"
    });
}

/// Converts an id of another model: only `A-Za-z0-9_-`, limited in length, and an item's id
/// starts with `fc_`.
fn normalize_id(id: &str, model: &Model, source: &AssistantMessage) -> String {
    let part = |part: &str| {
        let part = sanitize_id(part, MAX_ID_LENGTH);
        part.trim_end_matches('_').to_owned()
    };
    let takes_pairs = PAIRED_IDS.contains(&model.provider.as_str());
    let Some((call_id, item_id)) = id.split_once('|').filter(|_| takes_pairs) else {
        return part(id);
    };
    let is_foreign = source.provider != model.provider || source.api != model.api;
    let item_id = match part(item_id) {
        _ if is_foreign => format!("fc_{}", short_hash(item_id)),
        item_id if item_id.starts_with("fc_") => item_id,
        item_id => part(&format!("fc_{item_id}")),
    };
    format!("{}|{item_id}", part(call_id))
}

/// Returns a short hash. The result needs to be stable only within this process.
fn short_hash(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn from_user(content: &UserContent, model: &Model) -> Option<Value> {
    let parts: Vec<Value> = match content {
        UserContent::Text(text) => vec![text_part(text)],
        UserContent::Blocks(blocks) => blocks
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text_part(&text.text)),
                ContentBlock::Image(image) => {
                    model.takes_images().then(|| image_part(&data_url(image)))
                }
                ContentBlock::Other(_) => None,
            })
            .collect(),
    };
    (!parts.is_empty()).then(|| json!({"role": "user", "content": parts}))
}

fn text_part(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

fn image_part(url: &str) -> Value {
    json!({"type": "input_image", "detail": "auto", "image_url": url})
}

fn from_answer(answer: &AssistantMessage, model: &Model, index: usize) -> Vec<Value> {
    // OpenAI checks that a call comes with the thoughts that led to it. Thoughts of another model
    // are not sent, and OpenAI does not check a call without the item's id.
    let is_sibling =
        answer.model != model.id && answer.provider == model.provider && answer.api == model.api;
    let convert = |block: &AssistantBlock| match block {
        AssistantBlock::Thinking(thinking) => {
            let item: Value = serde_json::from_str(thinking.thinking_signature.as_deref()?).ok()?;
            item.is_object().then_some(item)
        }
        AssistantBlock::Text(text) => {
            let signature = TextSignature::parse(text);
            let id = match signature.as_ref().map(|signature| signature.id.as_str()) {
                None => format!("msg_{index}"),
                Some(id) if id.len() > MAX_ID_LENGTH => format!("msg_{}", short_hash(id)),
                Some(id) => id.to_owned(),
            };
            let mut item = json!({
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": text.text, "annotations": []}],
                "status": "completed",
                "id": id,
            });
            if let Some(phase) = signature.and_then(|signature| signature.phase) {
                item["phase"] = json!(phase);
            }
            Some(item)
        }
        AssistantBlock::ToolCall(call) => {
            let (call_id, item_id) = match call.id.split_once('|') {
                Some((call_id, item_id)) => (call_id, Some(item_id)),
                None => (call.id.as_str(), None),
            };
            let item_id = item_id.filter(|id| !(is_sibling && id.starts_with("fc_")));
            let mut item = json!({
                "type": "function_call",
                "call_id": call_id,
                "name": call.name,
                "arguments": call.arguments.to_string(),
            });
            if let Some(item_id) = item_id {
                item["id"] = json!(item_id);
            }
            Some(item)
        }
    };
    let mut items: Vec<Value> = answer.content.iter().filter_map(convert).collect();
    // The API refuses thoughts without an item after them, which an answer has that was cut off.
    while items.last().is_some_and(|item| item["type"] == "reasoning") {
        items.pop();
    }
    items
}

fn from_tool_result(result: &ToolResultMessage, model: &Model) -> Value {
    let text = join_text(&result.content);
    let output = if has_image(&result.content) && model.takes_images() {
        let text = Some(text).filter(|text| !text.is_empty());
        text.iter()
            .map(|text| text_part(text))
            .chain(images(&result.content).map(|image| image_part(&data_url(image))))
            .collect()
    } else if text.is_empty() && has_image(&result.content) {
        json!(IMAGE_ONLY_TEXT)
    } else {
        json!(text)
    };
    let call_id = match result.tool_call_id.split_once('|') {
        Some((call_id, _)) => call_id,
        None => &result.tool_call_id,
    };
    json!({"type": "function_call_output", "call_id": call_id, "output": output})
}
