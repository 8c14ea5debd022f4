//! Builds the request from the conversation and the options.

#[cfg(test)]
mod tests;

use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};

use super::claude_code;
use super::response::AnthropicDecoder;
use crate::apis::options::Retention;
use crate::apis::request_parts::{
    IMAGE_ONLY_TEXT, api_key, compat_flag, configured_headers, has_image, is_blank, max_tokens,
    thinking_level, url, with_thinking_budget,
};
use crate::apis::transform::{UniqueIds, sanitize_id, transform_messages};
use crate::failure::{Envelope, Failure};
use crate::http::exchange::{HttpRequest, set_header};
use crate::message::{
    AssistantBlock, AssistantMessage, ContentBlock, Message, ToolResultMessage, UserContent,
    join_text,
};
use crate::model::{Model, ThinkingLevel};
use crate::stream::{Request, ToolSpec};

const MAX_ID_LENGTH: usize = 64;
/// The smallest budget that the API accepts, and the number of tokens reserved for the answer.
const MIN_THINKING_BUDGET: u64 = 1024;
const DEFAULT_DISPLAY: &str = "summarized";

pub(super) fn build_request(request: &Request) -> Result<(HttpRequest, AnthropicDecoder), Failure> {
    let key = api_key(request)?;
    let as_claude_code =
        request.model.provider != "github-copilot" && key.is_some_and(claude_code::is_subscription);
    let call = HttpRequest {
        url: url(request, "/v1/messages")?,
        headers: headers(request, key, as_claude_code)?,
        body: body(request, as_claude_code, request.options.retention()),
        envelope: Envelope::Whole,
        encode: None,
        sign: None,
    };
    let tools = as_claude_code.then(|| request.tool_specs().to_vec());
    Ok((call, AnthropicDecoder::new(tools)))
}

fn headers(
    request: &Request,
    key: Option<&str>,
    as_claude_code: bool,
) -> Result<HeaderMap, Failure> {
    let is_copilot = request.model.provider == "github-copilot";
    let mut headers = HeaderMap::new();
    let mut set = |name: &str, value: &str| set_header(&mut headers, name, value);
    set("accept", "application/json")?;
    set("content-type", "application/json")?;
    set("anthropic-version", "2023-06-01")?;
    set("anthropic-dangerous-direct-browser-access", "true")?;
    match key {
        Some(key) if is_copilot || as_claude_code => {
            set("authorization", &format!("Bearer {key}"))?;
        }
        Some(key) => set("x-api-key", key)?,
        None => {}
    }
    let mut betas = Vec::new();
    if as_claude_code {
        set("user-agent", claude_code::USER_AGENT)?;
        set("x-app", "cli")?;
        betas.extend(claude_code::BETAS);
    }
    if !is_copilot {
        betas.push("fine-grained-tool-streaming-2025-05-14");
    }
    // Models with adaptive thinking interleave without the beta header.
    let interleaves = request.options.api_options.anthropic.interleaved_thinking;
    if interleaves.unwrap_or(true) && !thinks_adaptively(&request.model) {
        betas.push("interleaved-thinking-2025-05-14");
    }
    if !betas.is_empty() {
        set("anthropic-beta", &betas.join(","))?;
    }
    configured_headers(request, &mut headers, &[])?;
    Ok(headers)
}

pub(super) fn body(request: &Request, as_claude_code: bool, retention: Retention) -> Value {
    let model = &request.model;
    let converter = Converter {
        model,
        as_claude_code,
        cache: cache_control(model, retention),
    };
    let thinking = match request.options.without_defaults {
        true => Thinking::explicit(request),
        false => Thinking::new(request),
    };
    let mut body = json!({
        "model": model.id,
        "messages": converter.messages(request),
        "max_tokens": thinking.max_tokens,
        "stream": true,
    });
    let identity = as_claude_code.then_some(claude_code::IDENTITY);
    let system: Vec<Value> = identity
        .into_iter()
        .chain(request.system_prompt.as_deref())
        .filter(|text| !text.is_empty())
        .map(|text| converter.cached(json!({"type": "text", "text": text})))
        .collect();
    if !system.is_empty() {
        body["system"] = system.into();
    }
    // The API refuses a temperature together with thinking.
    if let Some(temperature) = request.options.temperature
        && !thinking.is_on
        && compat_flag(model, "supportsTemperature") != Some(false)
    {
        body["temperature"] = json!(temperature);
    }
    if let Some(tools) = &request.tools {
        body["tools"] = converter.tools(tools);
    }
    match &request.options.tool_choice {
        Some(Value::String(kind)) => body["tool_choice"] = json!({ "type": kind }),
        Some(choice) => body["tool_choice"] = choice.clone(),
        None => {}
    }
    if model.reasoning
        && let Some(mode) = thinking.mode
    {
        body["thinking"] = mode;
        if let Some(effort) = thinking.effort {
            body["output_config"] = json!({"effort": effort});
        }
    }
    if let Some(user @ Value::String(_)) = request.options.metadata.get("user_id") {
        body["metadata"] = json!({"user_id": user});
    }
    body
}

/// Returns the cache mark; `None` if nothing is to be cached.
fn cache_control(model: &Model, retention: Retention) -> Option<Value> {
    match retention {
        Retention::None => None,
        Retention::Long if model.base_url.contains("api.anthropic.com") => {
            Some(json!({"type": "ephemeral", "ttl": "1h"}))
        }
        Retention::Short | Retention::Long => Some(json!({"type": "ephemeral"})),
    }
}

fn is_version(model: &Model, family: &str, versions: &[&str]) -> bool {
    versions.iter().any(|version| {
        let dashed = version.replace('.', "-");
        model.id.contains(&format!("{family}-{version}"))
            || model.id.contains(&format!("{family}-{dashed}"))
    })
}

/// Returns true for models that choose the length of their thinking themselves, from an effort
/// instead of a budget.
fn thinks_adaptively(model: &Model) -> bool {
    compat_flag(model, "forceAdaptiveThinking").unwrap_or_else(|| {
        is_version(model, "opus", &["4.6", "4.7"]) || is_version(model, "sonnet", &["4.6"])
    })
}

struct Thinking {
    /// `None` leaves the choice to the API.
    mode: Option<Value>,
    effort: Option<String>,
    /// Limit of output tokens, including those of the thoughts.
    max_tokens: u64,
    is_on: bool,
}

impl Thinking {
    /// Builds the parameters from options in the API's own terms.
    fn explicit(request: &Request) -> Self {
        let options = &request.options.api_options.anthropic;
        let display = options
            .thinking_display
            .as_deref()
            .unwrap_or(DEFAULT_DISPLAY);
        let is_adaptive = thinks_adaptively(&request.model);
        // The cast converts the number to the nearest integer that fits.
        let budget = options.thinking_budget_tokens.map(|tokens| tokens as u64);
        let budget = budget
            .filter(|tokens| *tokens > 0)
            .unwrap_or(MIN_THINKING_BUDGET);
        let is_on = options.thinking_enabled == Some(true);
        Self {
            mode: options.thinking_enabled.map(|enabled| match enabled {
                true if is_adaptive => json!({"type": "adaptive", "display": display}),
                true => json!({"type": "enabled", "budget_tokens": budget, "display": display}),
                false => json!({"type": "disabled"}),
            }),
            effort: (options.effort.clone()).filter(|_| is_on && is_adaptive),
            // This is the only member that the API requires.
            max_tokens: max_tokens(request).unwrap_or(request.model.max_tokens / 3),
            is_on,
        }
    }

    fn new(request: &Request) -> Self {
        let max_tokens = max_tokens(request).unwrap_or(request.model.max_tokens);
        let Some(level) = thinking_level(request) else {
            let disabled = || json!({"type": "disabled"});
            return Self {
                mode: request.model.can_disable_thinking().then(disabled),
                effort: None,
                max_tokens,
                is_on: false,
            };
        };
        if thinks_adaptively(&request.model) {
            return Self {
                mode: Some(json!({"type": "adaptive", "display": DEFAULT_DISPLAY})),
                effort: Some(effort(&request.model, level).to_owned()),
                max_tokens,
                is_on: true,
            };
        }
        let (max_tokens, mut budget) = with_thinking_budget(request, level, max_tokens);
        if budget == 0 {
            budget = MIN_THINKING_BUDGET;
        }
        let mode = json!({"type": "enabled", "budget_tokens": budget, "display": DEFAULT_DISPLAY});
        Self {
            mode: Some(mode),
            effort: None,
            max_tokens,
            is_on: true,
        }
    }
}

fn effort(model: &Model, level: ThinkingLevel) -> &str {
    if let Some(name) = model.level_name(level) {
        return name;
    }
    match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
        ThinkingLevel::Medium => "medium",
        ThinkingLevel::High => "high",
        ThinkingLevel::Xhigh if is_version(model, "opus", &["4.6"]) => "max",
        ThinkingLevel::Xhigh if is_version(model, "opus", &["4.7"]) => "xhigh",
        ThinkingLevel::Xhigh => "high",
        ThinkingLevel::Max => "max",
    }
}

fn any_block(block: &ContentBlock) -> Option<Value> {
    Some(match block {
        ContentBlock::Text(text) => json!({"type": "text", "text": text.text}),
        ContentBlock::Image(image) => json!({"type": "image", "source": {
            "type": "base64",
            "media_type": image.mime_type,
            "data": image.data,
        }}),
        ContentBlock::Other(_) => return None,
    })
}

struct Converter<'a> {
    model: &'a Model,
    as_claude_code: bool,
    /// The mark on the blocks that the provider caches.
    cache: Option<Value>,
}

impl Converter<'_> {
    /// Marks a block, so that the conversation up to and including it is cached.
    fn cached(&self, mut block: Value) -> Value {
        if let Some(mark) = &self.cache {
            block["cache_control"] = mark.clone();
        }
        block
    }

    fn messages(&self, request: &Request) -> Value {
        let unique = UniqueIds::InTheConversation;
        let messages = transform_messages(
            &request.messages,
            request.tool_specs(),
            self.model,
            unique,
            |id, _| sanitize_id(id, MAX_ID_LENGTH),
        );
        let mut converted: Vec<Value> = Vec::new();
        // True if the last message holds tool results: all results of a turn go into one message.
        let mut gathers = false;
        for message in &messages {
            let content = match message.as_ref() {
                Message::User(user) => self.user(&user.content),
                Message::Assistant(answer) => Value::Array(self.answer(answer)),
                Message::ToolResult(result) => json!([self.tool_result(result)]),
            };
            let (is_empty, is_result) = match &content {
                Value::Array(blocks) => (
                    blocks.is_empty(),
                    matches!(message.as_ref(), Message::ToolResult(_)),
                ),
                text => (text.as_str().is_none_or(is_blank), false),
            };
            if is_empty {
                continue;
            }
            if gathers
                && is_result
                && let Some(Value::Array(results)) =
                    converted.last_mut().map(|message| &mut message["content"])
                && let Value::Array(more) = content
            {
                results.extend(more);
                continue;
            }
            gathers = is_result;
            let role = match message.as_ref() {
                Message::Assistant(_) => "assistant",
                Message::User(_) | Message::ToolResult(_) => "user",
            };
            converted.push(json!({"role": role, "content": content}));
        }
        // The conversation up to here is cached for the next turn.
        if self.cache.is_some()
            && let Some(last) = converted.last_mut()
            && last["role"] == "user"
        {
            // Only a block can have the mark.
            if let Value::String(text) = &last["content"] {
                last["content"] = json!([{"type": "text", "text": text}]);
            }
            if let Some(block) = last["content"].as_array_mut().and_then(|c| c.last_mut()) {
                *block = self.cached(block.take());
            }
        }
        Value::Array(converted)
    }

    fn user(&self, content: &UserContent) -> Value {
        match content {
            UserContent::Text(text) => json!(text),
            UserContent::Blocks(blocks) => self.blocks(blocks).collect(),
        }
    }

    /// Converts blocks, leaving out blank texts, and images that the model cannot see.
    fn blocks(&self, blocks: &[ContentBlock]) -> impl Iterator<Item = Value> {
        blocks.iter().filter_map(|block| match block {
            ContentBlock::Text(text) if is_blank(&text.text) => None,
            ContentBlock::Image(_) if !self.model.takes_images() => None,
            given => any_block(given),
        })
    }

    fn answer(&self, answer: &AssistantMessage) -> Vec<Value> {
        let convert = |block: &AssistantBlock| match block {
            AssistantBlock::Text(text) if is_blank(&text.text) => None,
            AssistantBlock::Text(text) => Some(json!({"type": "text", "text": text.text})),
            AssistantBlock::Thinking(thinking) => {
                let signature = thinking.thinking_signature.as_deref().unwrap_or_default();
                if thinking.redacted == Some(true) {
                    return Some(json!({"type": "redacted_thinking", "data": signature}));
                }
                // A signature without its text is worthless.
                if is_blank(&thinking.thinking) {
                    return None;
                }
                Some(match is_blank(signature) {
                    // The API refuses thoughts without a signature.
                    true => json!({"type": "text", "text": thinking.thinking}),
                    false => json!({
                        "type": "thinking",
                        "thinking": thinking.thinking,
                        "signature": signature,
                    }),
                })
            }
            AssistantBlock::ToolCall(call) => Some(json!({
                "type": "tool_use",
                "id": call.id,
                "name": self.tool_name(&call.name),
                "input": call.input(),
            })),
        };
        answer.content.iter().filter_map(convert).collect()
    }

    fn tool_result(&self, result: &ToolResultMessage) -> Value {
        let content = if has_image(&result.content) && self.model.takes_images() {
            // The API refuses empty texts; the original sends them.
            let mut blocks: Vec<Value> = self.blocks(&result.content).collect();
            if !blocks.iter().any(|block| block["type"] == "text") {
                blocks.insert(0, json!({"type": "text", "text": IMAGE_ONLY_TEXT}));
            }
            Value::Array(blocks)
        } else {
            let text = join_text(&result.content);
            match text.is_empty() && has_image(&result.content) {
                true => IMAGE_ONLY_TEXT.into(),
                false => text.into(),
            }
        };
        json!({
            "type": "tool_result",
            "tool_use_id": result.tool_call_id,
            "content": content,
            "is_error": result.is_error,
        })
    }

    fn tools(&self, tools: &[ToolSpec]) -> Value {
        let convert = |tool: &ToolSpec| {
            json!({
                "name": self.tool_name(&tool.name),
                "description": tool.description,
                "input_schema": input_schema(&tool.parameters),
            })
        };
        let mut tools: Vec<Value> = tools.iter().map(convert).collect();
        if let Some(last) = tools.last_mut()
            && compat_flag(self.model, "supportsCacheControlOnTools") != Some(false)
        {
            *last = self.cached(last.take());
        }
        Value::Array(tools)
    }

    fn tool_name<'n>(&self, name: &'n str) -> &'n str {
        match self.as_claude_code {
            true => claude_code::outgoing_tool_name(name),
            false => name,
        }
    }
}

/// Makes an object schema of any schema: the API refuses `anyOf`, `oneOf` and `allOf` at the top.
fn input_schema(parameters: &Value) -> Value {
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    let part = |name: &str| parameters.get(name).cloned();
    schema.insert(
        "properties".into(),
        part("properties").unwrap_or_else(|| json!({})),
    );
    schema.insert(
        "required".into(),
        part("required").unwrap_or_else(|| json!([])),
    );
    // The properties may refer to these definitions.
    for name in ["$defs", "definitions", "additionalProperties"] {
        if let Some(part) = part(name) {
            schema.insert(name.into(), part);
        }
    }
    Value::Object(schema)
}
