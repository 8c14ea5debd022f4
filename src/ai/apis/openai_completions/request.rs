//! Builds the request from the conversation and the options.

use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};

use super::compat::Compat;
use super::convert::Converter;
use super::response::CompletionsDecoder;
use super::thinking::thinking;
use crate::apis::options::Retention;
use crate::apis::request_parts::{api_key, configured_headers, max_tokens, sampling_params, url};
use crate::failure::{Envelope, Failure};
use crate::http::exchange::{HttpRequest, set_header};
use crate::message::mentions_tools;
use crate::model::Model;
use crate::stream::{Request, ToolSpec};

pub(super) fn build_request(
    request: &Request,
) -> Result<(HttpRequest, CompletionsDecoder), Failure> {
    let compat = Compat::new(&request.model).map_err(Failure::Provider)?;
    let mut headers = HeaderMap::new();
    set_header(&mut headers, "accept", "application/json")?;
    set_header(&mut headers, "content-type", "application/json")?;
    if let Some(key) = api_key(request)? {
        set_header(&mut headers, "authorization", &format!("Bearer {key}"))?;
    }
    configured_headers(request, &mut headers, &[])?;
    let call = HttpRequest {
        url: url(request, "/chat/completions")?,
        headers,
        body: body(request, &compat),
        envelope: Envelope::Error,
        encode: None,
        sign: None,
    };
    Ok((call, CompletionsDecoder::new(&compat)))
}

pub(super) fn body(request: &Request, compat: &Compat) -> Value {
    let model = &request.model;
    let mut messages = Converter { model, compat }.messages(request);
    if model.provider == "openrouter" && model.id.starts_with("anthropic/") {
        match request.options.retention() {
            Retention::None => {}
            Retention::Short => mark_for_cache(&mut messages, json!({"type": "ephemeral"})),
            Retention::Long => {
                mark_for_cache(&mut messages, json!({"type": "ephemeral", "ttl": "1h"}));
            }
        }
    }
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| body.insert(name.to_owned(), value);
    set("model", json!(model.id));
    set("messages", Value::Array(messages));
    set("stream", json!(true));
    if compat.supports_usage_in_streaming {
        set("stream_options", json!({"include_usage": true}));
    }
    if compat.supports_store {
        set("store", json!(false));
    }
    if let Some(tokens) = max_tokens(request) {
        set(&compat.max_tokens_field, json!(tokens));
    }
    if let Some(temperature) = request.options.temperature {
        set("temperature", json!(temperature));
    }
    if let Some(known) = &request.tools {
        set("tools", tools(known, compat));
        if compat.zai_tool_stream {
            set("tool_stream", json!(true));
        }
    } else if mentions_tools(&request.messages) {
        set("tools", json!([]));
    }
    if let Some(choice) = &request.options.tool_choice {
        set("tool_choice", choice.clone());
    }
    for (name, value) in thinking(request, compat) {
        set(name, value);
    }
    for (name, value) in routing(model, compat) {
        set(name, value);
    }
    body.extend(sampling_params(request));
    Value::Object(body)
}

/// Returns the routing preferences for gateways with several providers.
fn routing(model: &Model, compat: &Compat) -> Vec<(&'static str, Value)> {
    let mut members = Vec::new();
    if let Some(routing) = &compat.open_router_routing
        && model.base_url.contains("openrouter.ai")
    {
        members.push(("provider", routing.clone()));
    }
    if let Some(routing) = &compat.vercel_gateway_routing
        && model.base_url.contains("ai-gateway.vercel.sh")
    {
        let gateway: Map<String, Value> = ["only", "order"]
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), routing.get(name)?.clone())))
            .collect();
        if !gateway.is_empty() {
            members.push(("providerOptions", json!({"gateway": gateway})));
        }
    }
    members
}

/// Marks the last text for Anthropic's cache, which requires a mark.
fn mark_for_cache(messages: &mut [Value], mark: Value) {
    let conversation = messages
        .iter_mut()
        .rev()
        .filter(|message| message["role"] == "user" || message["role"] == "assistant");
    for message in conversation {
        match &mut message["content"] {
            Value::String(text) => {
                let text = std::mem::take(text);
                message["content"] = json!([{"type": "text", "text": text, "cache_control": mark}]);
                return;
            }
            Value::Array(parts) => {
                if let Some(part) = parts.iter_mut().rev().find(|part| part["type"] == "text") {
                    part["cache_control"] = mark;
                    return;
                }
            }
            _ => {}
        }
    }
}

fn tools(tools: &[ToolSpec], compat: &Compat) -> Value {
    let convert = |tool: &ToolSpec| {
        let mut function = json!({
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        });
        if compat.supports_strict_mode {
            function["strict"] = json!(false);
        }
        json!({"type": "function", "function": function})
    };
    tools.iter().map(convert).collect()
}
