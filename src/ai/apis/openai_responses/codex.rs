//! `openai-codex-responses`: the API of ChatGPT subscriptions. Only HTTP is supported; the
//! original can also use a WebSocket, which transfers the same events.

use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};

use super::convert::conversation;
use super::request::{DEFAULT_SUMMARY, tools};
use super::response::{ResponsesDecoder, Tier};
use crate::apis::request_parts::{api_key, configured_headers, thinking_level};
use crate::auth::oauth::account_id;
use crate::failure::{Envelope, Failure};
use crate::http::exchange::{HttpRequest, set_header};
use crate::model::{Model, ThinkingLevel};
use crate::stream::Request;

const BASE_URL: &str = "https://chatgpt.com/backend-api";

pub(super) fn build_request(request: &Request) -> Result<(HttpRequest, ResponsesDecoder), Failure> {
    let key = api_key(request)?.unwrap_or_default();
    let account = account_id(key)
        .ok_or_else(|| Failure::Provider("Failed to extract accountId from token".into()))?;
    let mut headers = HeaderMap::new();
    configured_headers(request, &mut headers, &[])?;
    let mut set = |name: &str, value: &str| set_header(&mut headers, name, value);
    set("authorization", &format!("Bearer {key}"))?;
    set("chatgpt-account-id", &account)?;
    set("originator", "pi")?;
    let system = format!("pi ({}; {})", std::env::consts::OS, std::env::consts::ARCH);
    set("user-agent", &system)?;
    set("openai-beta", "responses=experimental")?;
    set("accept", "text/event-stream")?;
    set("content-type", "application/json")?;
    if let Some(id) = request.options.cached_session() {
        set("session_id", id)?;
        set("x-client-request-id", id)?;
    }
    let call = HttpRequest {
        url: url(&request.model),
        headers,
        body: body(request),
        envelope: Envelope::Codex,
        encode: None,
        sign: None,
    };
    let tier = request.options.api_options.responses.service_tier.clone();
    Ok((
        call,
        ResponsesDecoder::with_tier(Tier::RequestedFromChatGpt(tier)),
    ))
}

fn url(model: &Model) -> String {
    let base = match model.base_url.trim() {
        "" => BASE_URL,
        base => base.trim_end_matches('/'),
    };
    match base {
        base if base.ends_with("/codex/responses") => base.to_owned(),
        base if base.ends_with("/codex") => format!("{base}/responses"),
        base => format!("{base}/codex/responses"),
    }
}

pub(super) fn body(request: &Request) -> Value {
    let model = &request.model;
    let options = &request.options.api_options.responses;
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| body.insert(name.to_owned(), value);
    set("model", json!(model.id));
    set("store", json!(false));
    set("stream", json!(true));
    if let Some(prompt) = &request.system_prompt {
        set("instructions", json!(prompt));
    }
    set("input", Value::Array(conversation(request)));
    let verbosity = options.text_verbosity.as_deref().unwrap_or("medium");
    set("text", json!({ "verbosity": verbosity }));
    // The API stores nothing, so the next request has to bring the thoughts back.
    set("include", json!(["reasoning.encrypted_content"]));
    if let Some(session_id) = request.options.cached_session() {
        set("prompt_cache_key", json!(session_id));
    }
    let choice = request.options.tool_choice.clone();
    set("tool_choice", choice.unwrap_or_else(|| json!("auto")));
    set("parallel_tool_calls", json!(true));
    if let Some(temperature) = request.options.temperature {
        set("temperature", json!(temperature));
    }
    if let Some(tier) = &options.service_tier {
        set("service_tier", json!(tier));
    }
    if let Some(known) = &request.tools {
        set("tools", tools(known, Value::Null));
    }
    let effort = match thinking_level(request) {
        Some(level) => {
            let effort = model.level_name(level);
            Some(effort.unwrap_or_else(|| usual_effort(model, level).as_str()))
        }
        // The effort is sent explicitly instead of leaving it to the API.
        None if disables_thinking(request) => {
            Some(model.level_name(ThinkingLevel::Off).unwrap_or("none"))
        }
        None => None,
    };
    if let Some(effort) = effort {
        let summary = options
            .reasoning_summary
            .as_deref()
            .unwrap_or(DEFAULT_SUMMARY);
        set("reasoning", json!({"effort": effort, "summary": summary}));
    }
    Value::Object(body)
}

fn disables_thinking(request: &Request) -> bool {
    let options = &request.options;
    options.without_defaults && options.reasoning == Some(ThinkingLevel::Off)
}

/// Returns a level that the model accepts: not every model accepts every level.
fn usual_effort(model: &Model, level: ThinkingLevel) -> ThinkingLevel {
    use ThinkingLevel::{High, Low, Medium, Minimal, Xhigh};
    let id = model.id.rsplit('/').next().unwrap_or_default();
    let is_new = ["gpt-5.2", "gpt-5.3", "gpt-5.4"]
        .iter()
        .any(|new| id.starts_with(new));
    match (id, level) {
        (_, Minimal) if is_new => Low,
        ("gpt-5.1", Xhigh) => High,
        ("gpt-5.1-codex-mini", High | Xhigh) => High,
        ("gpt-5.1-codex-mini", _) => Medium,
        (_, level) => level,
    }
}

/// Returns the error text for a subscriber whose limit is used up.
pub(crate) fn limit_text(status: u16, body: &Value) -> Option<String> {
    let error = Some(&body["error"]).filter(|error| error.is_object())?;
    let code = error["code"]
        .as_str()
        .or(error["type"].as_str())
        .unwrap_or_default();
    let is_limit = [
        "usage_limit_reached",
        "usage_not_included",
        "rate_limit_exceeded",
    ]
    .iter()
    .any(|known| code.to_lowercase().contains(known));
    if !is_limit && status != 429 {
        return None;
    }
    let plan = error["plan_type"]
        .as_str()
        .map(|plan| format!(" ({} plan)", plan.to_lowercase()));
    let minutes = error["resets_at"].as_f64().map(|at| {
        let left = at * 1000.0 - crate::message::now() as f64;
        (left / 60_000.0).round().max(0.0)
    });
    let when = minutes.map(|minutes| format!(" Try again in ~{minutes} min."));
    Some(format!(
        "You have hit your ChatGPT usage limit{}.{}",
        plan.unwrap_or_default(),
        when.unwrap_or_default()
    ))
}
