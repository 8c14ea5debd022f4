//! Builds the request. Extensions see the payload in the format of Mistral's SDK, with names in
//! camel case; the wire format has snake case.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};

use super::response::MistralDecoder;
use crate::apis::request_parts::{
    IMAGE_ONLY_TEXT, api_key, configured_headers, data_url, has_image, images, is_blank,
    max_tokens, thinking_level, url,
};
use crate::apis::transform::{UniqueIds, transform_messages};
use crate::failure::{Envelope, Failure};
use crate::http::exchange::{HttpRequest, set_header};
use crate::message::{
    AssistantBlock, AssistantMessage, ContentBlock, Message, ToolResultMessage, UserContent,
    join_text,
};
use crate::model::Model;
use crate::stream::Request;

/// Number of letters and digits in the id of a call.
const ID_LENGTH: usize = 9;
/// Text of the assistant message between tool results and a user message.
const AFTER_RESULTS: &str = "I have processed the tool results.";
const NO_IMAGE: &str = "(image omitted: model does not support images)";

pub(super) fn build_request(request: &Request) -> Result<(HttpRequest, MistralDecoder), Failure> {
    let mut headers = HeaderMap::new();
    set_header(&mut headers, "content-type", "application/json")?;
    set_header(&mut headers, "accept", "text/event-stream")?;
    if let Some(key) = api_key(request)? {
        set_header(&mut headers, "authorization", &format!("Bearer {key}"))?;
    }
    // Requests with the same id reach a server that has the start of the conversation cached.
    let session = request.options.cached_session();
    let own: Vec<(&str, &str)> = session.map(|id| ("x-affinity", id)).into_iter().collect();
    configured_headers(request, &mut headers, &own)?;
    let call = HttpRequest {
        url: url(request, "/v1/chat/completions")?,
        headers,
        body: payload(request),
        envelope: Envelope::Mistral,
        encode: Some(encode),
        sign: None,
    };
    Ok((call, MistralDecoder::default()))
}

pub(super) fn payload(request: &Request) -> Value {
    let model = &request.model;
    let mut payload = Map::new();
    let mut set = |name: &str, value: Value| payload.insert(name.to_owned(), value);
    set("model", json!(model.id));
    set("stream", json!(true));
    set("messages", Value::Array(messages(request)));
    if !request.tool_specs().is_empty() {
        let tools = request.tool_specs().iter().map(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": false,
            }})
        });
        set("tools", tools.collect());
    }
    if let Some(temperature) = request.options.temperature {
        set("temperature", json!(temperature));
    }
    if let Some(tokens) = max_tokens(request) {
        set("maxTokens", json!(tokens));
    }
    if request.options.without_defaults {
        let options = &request.options.api_options.mistral;
        if let Some(mode) = &options.prompt_mode {
            set("promptMode", json!(mode));
        }
        if let Some(effort) = &options.reasoning_effort {
            set("reasoningEffort", json!(effort));
        }
    } else if let Some(level) = thinking_level(request) {
        match model.id.as_str() {
            "mistral-small-2603" | "mistral-small-latest" => {
                let effort = model.level_name(level).unwrap_or("high");
                set("reasoningEffort", json!(effort));
            }
            _ => {
                set("promptMode", json!("reasoning"));
            }
        }
    }
    if let Some(choice) = &request.options.tool_choice {
        set("toolChoice", choice.clone());
    }
    Value::Object(payload)
}

/// Converts names to the wire format. Schemas of tools are user data and stay unchanged.
fn encode(mut payload: Value) -> Value {
    const NAMES: [(&str, &str); 6] = [
        ("maxTokens", "max_tokens"),
        ("promptMode", "prompt_mode"),
        ("reasoningEffort", "reasoning_effort"),
        ("toolChoice", "tool_choice"),
        ("randomSeed", "random_seed"),
        ("parallelToolCalls", "parallel_tool_calls"),
    ];
    let rename = |object: &mut Value, from: &str, to: &str| {
        if let Some(value) = object
            .as_object_mut()
            .and_then(|object| object.shift_remove(from))
        {
            object[to] = value;
        }
    };
    for (from, to) in NAMES {
        rename(&mut payload, from, to);
    }
    for message in payload["messages"].as_array_mut().into_iter().flatten() {
        rename(message, "toolCalls", "tool_calls");
        rename(message, "toolCallId", "tool_call_id");
        for part in message["content"].as_array_mut().into_iter().flatten() {
            rename(part, "imageUrl", "image_url");
        }
        // The SDK adds this member.
        if message["role"] == "assistant" && message.get("prefix").is_none() {
            message["prefix"] = json!(false);
        }
        for call in message
            .get_mut("tool_calls")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if call.get("index").is_none() {
                call["index"] = json!(0);
            }
        }
    }
    payload
}

fn messages(request: &Request) -> Vec<Value> {
    let model = &request.model;
    let ids = RefCell::new(Ids::default());
    let unique = UniqueIds::InAnAnswer;
    let transformed = transform_messages(
        &request.messages,
        request.tool_specs(),
        model,
        unique,
        |id, _| ids.borrow_mut().get(id),
    );
    let mut list: Vec<Value> = Vec::new();
    if let Some(prompt) = request
        .system_prompt
        .as_deref()
        .filter(|text| !text.is_empty())
    {
        list.push(json!({"role": "system", "content": prompt}));
    }
    for message in &transformed {
        match message.as_ref() {
            Message::User(user) => {
                let converted = from_user(&user.content, model);
                // The API refuses a user message directly after a tool result.
                if converted.is_some() && list.last().is_some_and(|last| last["role"] == "tool") {
                    list.push(json!({"role": "assistant", "content": AFTER_RESULTS}));
                }
                list.extend(converted);
            }
            Message::Assistant(answer) => list.extend(from_answer(answer)),
            Message::ToolResult(result) => list.push(from_result(result, model)),
        }
    }
    list
}

/// Converts ids of other models to unique ids in Mistral's form.
#[derive(Default)]
struct Ids {
    known: HashMap<String, String>,
}

impl Ids {
    fn get(&mut self, id: &str) -> String {
        if let Some(known) = self.known.get(id) {
            return known.clone();
        }
        let mut attempt = 0;
        loop {
            let candidate = derive_id(id, attempt);
            if self.known.values().all(|taken| *taken != candidate) {
                self.known.insert(id.to_owned(), candidate.clone());
                return candidate;
            }
            attempt += 1;
        }
    }
}

/// Derives an id from a text. The result needs to be stable only within this process.
pub(super) fn derive_id(id: &str, attempt: u32) -> String {
    let plain: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
    if attempt == 0 && plain.len() == ID_LENGTH {
        return plain;
    }
    let mut hasher = DefaultHasher::new();
    (id, attempt).hash(&mut hasher);
    let hash = format!("{:016x}", hasher.finish());
    hash[..ID_LENGTH].to_owned()
}

fn picture(image: &crate::message::ImageContent) -> Value {
    json!({"type": "image_url", "imageUrl": data_url(image)})
}

fn from_user(content: &UserContent, model: &Model) -> Option<Value> {
    let blocks = match content {
        UserContent::Text(text) => return Some(json!({"role": "user", "content": text})),
        UserContent::Blocks(blocks) => blocks,
    };
    let parts: Vec<Value> = blocks
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(json!({"type": "text", "text": text.text})),
            ContentBlock::Image(image) => model.takes_images().then(|| picture(image)),
            ContentBlock::Other(_) => None,
        })
        .collect();
    match parts.is_empty() {
        false => Some(json!({"role": "user", "content": parts})),
        true => has_image(blocks).then(|| json!({"role": "user", "content": NO_IMAGE})),
    }
}

fn from_answer(answer: &AssistantMessage) -> Option<Value> {
    let (mut parts, mut calls) = (Vec::new(), Vec::new());
    for block in &answer.content {
        match block {
            AssistantBlock::Text(text) if is_blank(&text.text) => {}
            AssistantBlock::Text(text) => parts.push(json!({"type": "text", "text": text.text})),
            AssistantBlock::Thinking(thinking) if is_blank(&thinking.thinking) => {}
            AssistantBlock::Thinking(thinking) => parts.push(json!({
                "type": "thinking",
                "thinking": [{"type": "text", "text": thinking.thinking}],
            })),
            AssistantBlock::ToolCall(call) => calls.push(json!({
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments.to_string()},
            })),
        }
    }
    if parts.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = json!({"role": "assistant"});
    if !parts.is_empty() {
        message["content"] = json!(parts);
    }
    if !calls.is_empty() {
        message["toolCalls"] = json!(calls);
    }
    Some(message)
}

fn from_result(result: &ToolResultMessage, model: &Model) -> Value {
    let text = join_text(&result.content);
    let (has_images, sees) = (has_image(&result.content), model.takes_images());
    let text = match text.trim() {
        "" if has_images && sees => IMAGE_ONLY_TEXT.to_owned(),
        "" if has_images => NO_IMAGE.to_owned(),
        "" => "(no tool output)".to_owned(),
        text if has_images && !sees => {
            format!("{text}\n[tool image omitted: model does not support images]")
        }
        text => text.to_owned(),
    };
    let text = match result.is_error {
        true => format!("[tool error] {text}"),
        false => text,
    };
    let mut content = vec![json!({"type": "text", "text": text})];
    if sees {
        content.extend(images(&result.content).map(picture));
    }
    json!({
        "role": "tool",
        "toolCallId": result.tool_call_id,
        "name": result.tool_name,
        "content": content,
    })
}
