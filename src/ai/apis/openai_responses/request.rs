//! Builds the request from the conversation and the options.

use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};

use super::convert::input;
use super::response::{ResponsesDecoder, Tier};
use crate::apis::options::Retention;
use crate::apis::request_parts::{
    api_key, configured_headers, max_tokens, sampling_params, thinking_level, url,
};
use crate::failure::{Envelope, Failure};
use crate::http::exchange::{HttpRequest, set_header};
use crate::model::ThinkingLevel;
use crate::stream::{Request, ToolSpec};

/// Default amount of thoughts that the model shows.
pub(super) const DEFAULT_SUMMARY: &str = "auto";

pub(super) fn build_request(request: &Request) -> Result<(HttpRequest, ResponsesDecoder), Failure> {
    let mut headers = HeaderMap::new();
    set_header(&mut headers, "accept", "application/json")?;
    set_header(&mut headers, "content-type", "application/json")?;
    if let Some(key) = api_key(request)? {
        set_header(&mut headers, "authorization", &format!("Bearer {key}"))?;
    }
    // Requests with the same id reach a server that has the start of the conversation cached.
    let session = request.options.cached_session().into_iter();
    let session = session.flat_map(|id| [("session_id", id), ("x-client-request-id", id)]);
    let session: Vec<(&str, &str)> = session.collect();
    configured_headers(request, &mut headers, &session)?;
    let call = HttpRequest {
        url: url(request, "/responses")?,
        headers,
        body: body(request, request.options.retention()),
        envelope: Envelope::Error,
        encode: None,
        sign: None,
    };
    let tier = request.options.api_options.responses.service_tier.clone();
    Ok((call, ResponsesDecoder::with_tier(Tier::Requested(tier))))
}

pub(super) fn body(request: &Request, retention: Retention) -> Value {
    let mut body = common_members(request, &request.model.id);
    if retention == Retention::None {
        body.shift_remove("prompt_cache_key");
    }
    if let Some(tier) = &request.options.api_options.responses.service_tier {
        body.insert("service_tier".into(), json!(tier));
    }
    if retention == Retention::Long && request.model.base_url.contains("api.openai.com") {
        body.insert("prompt_cache_retention".into(), json!("24h"));
    }
    body.insert("store".into(), json!(false));
    Value::Object(body)
}

/// Returns the members that requests to Azure have in common with those to OpenAI.
pub(super) fn common_members(request: &Request, model_name: &str) -> Map<String, Value> {
    let model = &request.model;
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| body.insert(name.to_owned(), value);
    set("model", json!(model_name));
    set("input", Value::Array(input(request)));
    set("stream", json!(true));
    if let Some(session_id) = &request.options.session_id {
        set("prompt_cache_key", json!(session_id));
    }
    if let Some(tokens) = max_tokens(request) {
        set("max_output_tokens", json!(tokens));
    }
    if let Some(temperature) = request.options.temperature {
        set("temperature", json!(temperature));
    }
    if let Some(known) = &request.tools {
        set("tools", tools(known, json!(false)));
    }
    if let Some(choice) = &request.options.tool_choice {
        set("tool_choice", choice.clone());
    }
    let summary = request
        .options
        .api_options
        .responses
        .reasoning_summary
        .as_deref();
    let level = match request.options.reasoning {
        // A caller that asks for a summary of thoughts wants the model to think.
        None if model.reasoning && summary.is_some() => Some(ThinkingLevel::Medium),
        _ => thinking_level(request),
    };
    if let Some(level) = level {
        let effort = model.level_name(level).unwrap_or(level.as_str());
        let reasoning = json!({"effort": effort, "summary": summary.unwrap_or(DEFAULT_SUMMARY)});
        set("reasoning", reasoning);
        // The API stores nothing, so the next request has to bring the thoughts back.
        set("include", json!(["reasoning.encrypted_content"]));
    } else if model.reasoning && model.can_disable_thinking() && model.provider != "github-copilot"
    {
        let none = model.level_name(ThinkingLevel::Off).unwrap_or("none");
        set("reasoning", json!({"effort": none}));
    }
    body.extend(sampling_params(request));
    body
}

pub(super) fn tools(tools: &[ToolSpec], strict: Value) -> Value {
    let tools = tools.iter();
    tools.map(|known| tool(known, strict.clone())).collect()
}

/// `strict` is the API's value for a schema that is not strict.
fn tool(tool: &ToolSpec, strict: Value) -> Value {
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": strict,
    })
}
