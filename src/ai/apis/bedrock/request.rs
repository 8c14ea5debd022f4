//! Builds the request from the options. The body has the format of AWS's SDK, without the model's
//! id, which is part of the address.

use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};

use super::credentials::Credentials;
use super::response::BedrockDecoder;
use crate::apis::options::Retention;
use crate::apis::request_parts::{is_blank, max_tokens, thinking_level, with_thinking_budget};
use crate::apis::transform::{UniqueIds, sanitize_id, transform_messages};
use crate::auth::secret_value::Env;
use crate::failure::{Envelope, Failure};
use crate::http::exchange::{HttpRequest, set_header};
use crate::message::{
    AssistantBlock, AssistantMessage, ContentBlock, Message, ToolResultMessage, UserContent,
};
use crate::model::{Model, ThinkingLevel};
use crate::stream::Request;

const MAX_ID_LENGTH: usize = 64;
/// Replaces the text of a tool result without content.
const EMPTY: &str = "<empty>";
const BETA: &str = "interleaved-thinking-2025-05-14";

pub(super) fn build_request(request: &Request) -> Result<(HttpRequest, BedrockDecoder), Failure> {
    let env = request.options.env();
    let model = &request.model;
    let credentials = Credentials::find(&env, &request.options);
    let mut headers = HeaderMap::new();
    set_header(&mut headers, "content-type", "application/json")?;
    set_header(&mut headers, "accept", "application/vnd.amazon.eventstream")?;
    for (name, value) in request
        .options
        .headers
        .iter()
        .chain(model.headers.iter().flatten())
    {
        set_header(&mut headers, name, value)?;
    }
    let region = credentials.region.clone();
    let call = HttpRequest {
        url: format!(
            "{}/model/{}/converse-stream",
            endpoint(model, &env, &region),
            escape(&model.id)
        ),
        headers,
        body: payload(request, &region, request.options.retention(), &env),
        envelope: Envelope::Bedrock,
        encode: Some(without_id),
        sign: Some(Box::new(credentials)),
    };
    Ok((call, BedrockDecoder::default()))
}

/// Returns the endpoint of the user's region; the address in the catalogue has another region.
fn endpoint(model: &Model, env: &Env, region: &str) -> String {
    let set = env
        .get("AWS_ENDPOINT_URL_BEDROCK_RUNTIME")
        .or_else(|| env.get("AWS_ENDPOINT_URL"));
    if let Some(url) = set {
        return url.trim_end_matches('/').to_owned();
    }
    let own = model.base_url.trim().trim_end_matches('/');
    match own.is_empty() || own.ends_with(".amazonaws.com") {
        true => format!("https://bedrock-runtime.{region}.amazonaws.com"),
        false => own.to_owned(),
    }
}

/// Escapes all characters but those that AWS calls unreserved.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

fn without_id(mut payload: Value) -> Value {
    if let Some(object) = payload.as_object_mut() {
        object.shift_remove("modelId");
    }
    payload
}

pub(super) fn payload(request: &Request, region: &str, retention: Retention, env: &Env) -> Value {
    let model = &request.model;
    let point = match retention {
        _ if !caches(model, env) => None,
        Retention::None => None,
        Retention::Short => Some(json!({"cachePoint": {"type": "default"}})),
        Retention::Long => Some(json!({"cachePoint": {"type": "default", "ttl": "1h"}})),
    };
    let (max_tokens, more) = thinking(request, region);
    let mut payload = Map::new();
    let mut set = |name: &str, value: Value| payload.insert(name.to_owned(), value);
    set("modelId", json!(model.id));
    let mut list = messages(request);
    if let (Some(point), Some(last)) = (&point, list.last_mut())
        && last["role"] == "user"
        && let Some(content) = last["content"].as_array_mut()
    {
        content.push(point.clone());
    }
    set("messages", Value::Array(list));
    if let Some(prompt) = request
        .system_prompt
        .as_deref()
        .filter(|text| !text.is_empty())
    {
        let mut system = vec![json!({ "text": prompt })];
        system.extend(point);
        set("system", Value::Array(system));
    }
    let mut inference = json!({});
    if let Some(tokens) = max_tokens {
        inference["maxTokens"] = json!(tokens);
    }
    if let Some(temperature) = request.options.temperature {
        inference["temperature"] = json!(temperature);
    }
    set("inferenceConfig", inference);
    if let Some(tools) = tools(request) {
        set("toolConfig", tools);
    }
    if let Some(more) = more {
        set("additionalModelRequestFields", more);
    }
    if let Some(metadata) = &request.options.api_options.bedrock.request_metadata {
        set("requestMetadata", json!(metadata));
    }
    Value::Object(payload)
}

fn tools(request: &Request) -> Option<Value> {
    let choice = request.options.tool_choice.as_ref();
    if request.tool_specs().is_empty() || choice.is_some_and(|choice| choice == "none") {
        return None;
    }
    let tools = request.tool_specs().iter().map(|tool| {
        json!({"toolSpec": {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": {"json": tool.parameters},
        }})
    });
    let mut config = json!({ "tools": tools.collect::<Vec<_>>() });
    match choice {
        Some(Value::String(word)) if word == "auto" => config["toolChoice"] = json!({"auto": {}}),
        Some(Value::String(word)) if word == "any" => config["toolChoice"] = json!({"any": {}}),
        Some(choice) if choice["type"] == "tool" => {
            config["toolChoice"] = json!({"tool": {"name": choice["name"]}});
        }
        _ => {}
    }
    Some(config)
}

fn is_claude(model: &Model) -> bool {
    model.id.contains("anthropic.claude") || model.id.contains("anthropic/claude")
}

/// Returns true if the model supports caching. Names of inference profiles may not contain the
/// model's id.
fn caches(model: &Model, env: &Env) -> bool {
    let id = model.id.to_lowercase();
    if !id.contains("claude") {
        return env.get("AWS_BEDROCK_FORCE_CACHE").as_deref() == Some("1");
    }
    let families = [
        "-4-",
        "-4.",
        "claude-3-7-sonnet",
        "claude-3-5-haiku",
        "fable-5",
        "haiku-5",
        "opus-5",
        "sonnet-5",
    ];
    families.iter().any(|part| id.contains(part))
}

/// Returns the limit of output tokens, thoughts included, and the thinking parameters.
fn thinking(request: &Request, region: &str) -> (Option<u64>, Option<Value>) {
    let (model, base) = (&request.model, max_tokens(request));
    let options = &request.options.api_options.bedrock;
    let Some(level) = thinking_level(request).filter(|_| is_claude(model)) else {
        return (base, None);
    };
    let has = |parts: &[&str]| parts.iter().any(|part| model.id.contains(part));
    let id = model.id.to_lowercase();
    let is_gov = region.starts_with("us-gov-")
        || id.starts_with("us-gov.")
        || id.starts_with("arn:aws-us-gov:");
    let mut thought = Map::new();
    let adaptive = [
        "opus-4-6",
        "opus-4.6",
        "opus-4-7",
        "opus-4.7",
        "opus-4-8",
        "opus-5",
        "sonnet-4-6",
        "sonnet-4.6",
        "sonnet-5",
        "haiku-5",
        "fable-5",
    ];
    let mut fields = Map::new();
    let mut tokens = base;
    if has(&adaptive) {
        thought.insert("type".into(), json!("adaptive"));
        let usual = match level {
            ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
            ThinkingLevel::Medium => "medium",
            ThinkingLevel::Xhigh if has(&["opus-4-6", "opus-4.6"]) => "max",
            ThinkingLevel::Xhigh if has(&["opus-4-7", "opus-4.7"]) => "xhigh",
            ThinkingLevel::High | ThinkingLevel::Xhigh => "high",
            ThinkingLevel::Max => "max",
        };
        let effort = request.model.level_name(level).unwrap_or(usual);
        fields.insert("output_config".into(), json!({ "effort": effort }));
    } else {
        let (sum, budget) = with_thinking_budget(request, level, base.unwrap_or_default());
        tokens = base.map(|_| sum);
        thought.insert("type".into(), json!("enabled"));
        thought.insert("budget_tokens".into(), json!(budget));
        if options.interleaved_thinking.unwrap_or(true) {
            fields.insert("anthropic_beta".into(), json!([BETA]));
        }
    }
    if !is_gov {
        let display = options.thinking_display.as_deref().unwrap_or("summarized");
        thought.insert("display".into(), json!(display));
    }
    fields.insert("thinking".into(), Value::Object(thought));
    (tokens, Some(Value::Object(fields)))
}

/// Converts the messages. Consecutive messages of a role are merged, because the API requires
/// alternating roles.
fn messages(request: &Request) -> Vec<Value> {
    let model = &request.model;
    let unique = UniqueIds::InTheConversation;
    let transformed = transform_messages(
        &request.messages,
        request.tool_specs(),
        model,
        unique,
        |id, _| sanitize_id(id, MAX_ID_LENGTH),
    );
    let mut converted: Vec<Value> = Vec::new();
    for message in &transformed {
        let (role, content) = match message.as_ref() {
            Message::User(user) => ("user", from_user(&user.content)),
            Message::Assistant(answer) => ("assistant", from_answer(answer, model)),
            Message::ToolResult(result) => ("user", vec![from_result(result)]),
        };
        if content.is_empty() {
            continue;
        }
        let last = converted.last_mut().filter(|last| last["role"] == role);
        match last.and_then(|last| last["content"].as_array_mut()) {
            Some(blocks) => blocks.extend(content),
            None => converted.push(json!({ "role": role, "content": content })),
        }
    }
    converted
}

fn from_user(content: &UserContent) -> Vec<Value> {
    match content {
        UserContent::Text(text) => vec![json!({ "text": text })],
        UserContent::Blocks(blocks) => blocks.iter().filter_map(block).collect(),
    }
}

/// Converts a block. Returns `None` for blocks that the API refuses, such as blank texts.
fn block(block: &ContentBlock) -> Option<Value> {
    Some(match block {
        ContentBlock::Text(text) if is_blank(&text.text) => return None,
        ContentBlock::Text(text) => json!({ "text": text.text }),
        ContentBlock::Image(image) => {
            let format = match image.mime_type.strip_prefix("image/") {
                Some("jpg") | None => "jpeg",
                Some(format) => format,
            };
            json!({ "image": { "format": format, "source": { "bytes": image.data } } })
        }
        ContentBlock::Other(_) => return None,
    })
}

fn from_answer(answer: &AssistantMessage, model: &Model) -> Vec<Value> {
    let convert = |part: &AssistantBlock| match part {
        AssistantBlock::Text(text) if is_blank(&text.text) => None,
        AssistantBlock::Text(text) => Some(json!({ "text": text.text })),
        AssistantBlock::Thinking(thinking) if is_blank(&thinking.thinking) => None,
        AssistantBlock::Thinking(thinking) => {
            let text = &thinking.thinking;
            let signature = thinking
                .thinking_signature
                .as_deref()
                .filter(|s| !is_blank(s));
            Some(match (is_claude(model), signature) {
                // The API refuses thoughts without a signature.
                (true, None) => json!({ "text": text }),
                (true, Some(signature)) => json!({ "reasoningContent": {
                    "reasoningText": { "text": text, "signature": signature } } }),
                (false, _) => json!({ "reasoningContent": { "reasoningText": { "text": text } } }),
            })
        }
        AssistantBlock::ToolCall(call) => Some(json!({ "toolUse": {
            "toolUseId": call.id, "name": call.name, "input": call.input() } })),
    };
    answer.content.iter().filter_map(convert).collect()
}

fn from_result(result: &ToolResultMessage) -> Value {
    let mut content: Vec<Value> = result.content.iter().filter_map(block).collect();
    if content.is_empty() && !result.content.is_empty() {
        content.push(json!({ "text": EMPTY }));
    }
    let status = if result.is_error { "error" } else { "success" };
    json!({ "toolResult": {
        "toolUseId": result.tool_call_id, "content": content, "status": status } })
}
