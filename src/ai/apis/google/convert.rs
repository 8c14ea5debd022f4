//! Converts the conversation and the tools to Gemini's format.

use serde_json::{Value, json};

use crate::apis::request_parts::{IMAGE_ONLY_TEXT, images, is_blank};
use crate::apis::transform::{UniqueIds, sanitize_id, transform_messages};
use crate::message::{
    AssistantBlock, AssistantMessage, ContentBlock, ImageContent, Message, ToolResultMessage,
    UserContent, join_text,
};
use crate::model::Model;
use crate::stream::{Request, ToolSpec};

const MAX_ID_LENGTH: usize = 64;
/// Gemini 3 requires a signature on every call; this value stands for a missing one.
const UNSIGNED: &str = "skip_thought_signature_validator";

pub(super) fn contents(request: &Request) -> Vec<Value> {
    let model = &request.model;
    let unique = UniqueIds::InTheConversation;
    let messages = transform_messages(
        &request.messages,
        request.tool_specs(),
        model,
        unique,
        |id, _| match takes_ids(model) {
            true => sanitize_id(id, MAX_ID_LENGTH),
            false => id.to_owned(),
        },
    );
    let mut contents: Vec<Value> = Vec::new();
    // Images that cannot be part of a result follow the results of the turn.
    let mut pictures: Vec<Value> = Vec::new();
    for message in &messages {
        if !matches!(message.as_ref(), Message::ToolResult(_)) {
            contents.append(&mut pictures);
        }
        match message.as_ref() {
            Message::User(user) => contents.extend(from_user(&user.content, model)),
            Message::Assistant(answer) => add_answer(&mut contents, answer, model),
            Message::ToolResult(result) => {
                pictures.extend(add_result(&mut contents, result, model));
            }
        }
    }
    contents.append(&mut pictures);
    contents
}

/// Adds an answer. An answer that follows another is merged with it: the API accepts calls only
/// after a message of the user or a tool.
fn add_answer(contents: &mut Vec<Value>, answer: &AssistantMessage, model: &Model) {
    let Some(mut content) = from_answer(answer, model) else {
        return;
    };
    let last = contents.last_mut().filter(|last| last["role"] == "model");
    let parts = last.and_then(|last| last["parts"].as_array_mut());
    match (parts, &mut content["parts"]) {
        (Some(parts), Value::Array(more)) => parts.append(more),
        _ => contents.push(content),
    }
}

/// Returns true for the models of Anthropic and OpenAI, which pair calls and results by id.
/// Gemini pairs them by order.
fn takes_ids(model: &Model) -> bool {
    model.id.starts_with("claude-") || model.id.starts_with("gpt-oss-")
}

fn inline(image: &ImageContent) -> Value {
    json!({ "inlineData": { "mimeType": image.mime_type, "data": image.data } })
}

fn from_user(content: &UserContent, model: &Model) -> Option<Value> {
    let parts: Vec<Value> = match content {
        UserContent::Text(text) => vec![json!({ "text": text })],
        UserContent::Blocks(blocks) => blocks
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(json!({ "text": text.text })),
                ContentBlock::Image(image) => model.takes_images().then(|| inline(image)),
                ContentBlock::Other(_) => None,
            })
            .collect(),
    };
    (!parts.is_empty()).then(|| json!({ "role": "user", "parts": parts }))
}

fn from_answer(answer: &AssistantMessage, model: &Model) -> Option<Value> {
    let is_own = answer.provider == model.provider && answer.model == model.id;
    let signed = |part: &mut Value, signature: Option<&str>| {
        if let Some(signature) = signature.filter(|text| is_own && is_base64(text)) {
            part["thoughtSignature"] = json!(signature);
        }
    };
    let convert = |block: &AssistantBlock| match block {
        AssistantBlock::Text(text) if is_blank(&text.text) => None,
        AssistantBlock::Text(text) => {
            let mut part = json!({ "text": text.text });
            signed(&mut part, text.text_signature.as_deref());
            Some(part)
        }
        AssistantBlock::Thinking(thinking) if is_blank(&thinking.thinking) => None,
        AssistantBlock::Thinking(thinking) if is_own => {
            let mut part = json!({ "thought": true, "text": thinking.thinking });
            signed(&mut part, thinking.thinking_signature.as_deref());
            Some(part)
        }
        AssistantBlock::Thinking(thinking) => Some(json!({ "text": thinking.thinking })),
        AssistantBlock::ToolCall(call) => {
            let mut part = json!({ "functionCall": { "name": call.name, "args": call.input() } });
            if takes_ids(model) {
                part["functionCall"]["id"] = json!(call.id);
            }
            signed(&mut part, call.thought_signature.as_deref());
            if part.get("thoughtSignature").is_none()
                && model.id.to_lowercase().contains("gemini-3")
            {
                part["thoughtSignature"] = json!(UNSIGNED);
            }
            Some(part)
        }
    };
    let parts: Vec<Value> = answer.content.iter().filter_map(convert).collect();
    (!parts.is_empty()).then(|| json!({ "role": "model", "parts": parts }))
}

/// Returns true for base64 that Google accepts as bytes.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let is_sign = |sign: u8| sign.is_ascii_alphanumeric() || matches!(sign, b'+' | b'/');
    !body.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(is_sign)
}

/// Adds a result; consecutive results go into one turn. Returns the result's images if the model
/// does not accept them as part of it.
fn add_result(
    contents: &mut Vec<Value>,
    result: &ToolResultMessage,
    model: &Model,
) -> Option<Value> {
    let text = join_text(&result.content);
    let pictures: Vec<Value> = match model.takes_images() {
        true => images(&result.content).map(inline).collect(),
        false => Vec::new(),
    };
    let text = match (text.is_empty(), pictures.is_empty()) {
        (true, false) => IMAGE_ONLY_TEXT.to_owned(),
        _ => text,
    };
    let key = if result.is_error { "error" } else { "output" };
    let mut part = json!({
        "functionResponse": { "name": result.tool_name, "response": { key: text } }
    });
    let nested = takes_nested_pictures(model);
    if nested && !pictures.is_empty() {
        part["functionResponse"]["parts"] = json!(pictures);
    }
    if takes_ids(model) {
        part["functionResponse"]["id"] = json!(result.tool_call_id);
    }
    let open = contents.last_mut().filter(|last| {
        let parts = last["parts"].as_array();
        last["role"] == "user"
            && parts.is_some_and(|parts| {
                parts
                    .iter()
                    .any(|part| part.get("functionResponse").is_some())
            })
    });
    match open.and_then(|last| last["parts"].as_array_mut()) {
        Some(parts) => parts.push(part),
        None => contents.push(json!({ "role": "user", "parts": [part] })),
    }
    (!nested && !pictures.is_empty()).then(|| {
        let mut parts = vec![json!({ "text": "Tool result image:" })];
        parts.extend(pictures);
        json!({ "role": "user", "parts": parts })
    })
}

/// Returns true if the model accepts images in tool results. Gemini before 3 does not.
fn takes_nested_pictures(model: &Model) -> bool {
    let id = model.id.to_lowercase();
    let version = id
        .strip_prefix("gemini-")
        .map(|rest| rest.strip_prefix("live-").unwrap_or(rest));
    let version = version.map(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>()
    });
    match version {
        Some(Ok(version)) => version >= 3,
        _ => true,
    }
}

/// `key` is the name of the member with the schema of the arguments.
pub(super) fn tools(tools: &[ToolSpec], key: &str) -> Value {
    let declarations = tools.iter().map(
        |tool| json!({ "name": tool.name, "description": tool.description, key: tool.parameters }),
    );
    json!([{ "functionDeclarations": declarations.collect::<Vec<_>>() }])
}
