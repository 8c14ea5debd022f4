//! Builds the request for the Gemini API and for Vertex AI. Extensions see the payload in the
//! format of Google's SDK, which differs from the wire format.

use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};

use super::response::GeminiDecoder;
use super::{convert, thinking};
use crate::apis::request_parts::{api_key, configured_headers, max_tokens, url};
use crate::failure::{Envelope, Failure};
use crate::http::exchange::{HttpRequest, set_header};
use crate::stream::Request;

/// Members of the SDK's `config` that stand beside `generationConfig` on the wire.
const TOP_LEVEL_MEMBERS: [&str; 5] = [
    "tools",
    "toolConfig",
    "safetySettings",
    "cachedContent",
    "labels",
];

pub(super) fn generative_ai(request: &Request) -> Result<(HttpRequest, GeminiDecoder), Failure> {
    let path = format!("/models/{}:streamGenerateContent?alt=sse", request.model.id);
    call(request, url(request, &path)?, api_key(request)?)
}

pub(super) fn vertex(request: &Request) -> Result<(HttpRequest, GeminiDecoder), Failure> {
    let key = request.options.api_key.as_deref().map(str::trim);
    let key = key.filter(|key| !(key.is_empty() || key.starts_with('<') && key.ends_with('>')));
    let Some(key) = key else {
        let explicit = &request.options.api_options.google;
        let named = match explicit.project.is_some() || explicit.location.is_some() {
            true => " The options \"project\" and \"location\" are for such credentials.",
            false => "",
        };
        return Err(Failure::Provider(format!(
            "Vertex AI with Application Default Credentials is not supported: set \
             GOOGLE_CLOUD_API_KEY or pass apiKey instead.{named}"
        )));
    };
    let model = &request.model;
    // The catalogue's address has a location; requests with a key need none.
    let base = match model.base_url.contains("{location}") {
        true => "https://aiplatform.googleapis.com",
        false => model.base_url.trim().trim_end_matches('/'),
    };
    let path = format!(
        "{base}/v1/publishers/google/models/{}:streamGenerateContent?alt=sse",
        model.id
    );
    call(request, path, Some(key))
}

fn call(
    request: &Request,
    url: String,
    key: Option<&str>,
) -> Result<(HttpRequest, GeminiDecoder), Failure> {
    let mut headers = HeaderMap::new();
    set_header(&mut headers, "content-type", "application/json")?;
    if let Some(key) = key {
        set_header(&mut headers, "x-goog-api-key", key)?;
    }
    configured_headers(request, &mut headers, &[])?;
    let call = HttpRequest {
        url,
        headers,
        body: payload(request),
        envelope: Envelope::Bare,
        encode: Some(encode),
        sign: None,
    };
    Ok((call, GeminiDecoder::default()))
}

/// Builds the payload of the SDK's `generateContentStream`.
pub(super) fn payload(request: &Request) -> Value {
    let mut config = json!({});
    if let Some(tokens) = max_tokens(request) {
        config["maxOutputTokens"] = json!(tokens);
    }
    if let Some(temperature) = request.options.temperature {
        config["temperature"] = json!(temperature);
    }
    if let Some(prompt) = request
        .system_prompt
        .as_deref()
        .filter(|text| !text.is_empty())
    {
        config["systemInstruction"] = json!(prompt);
    }
    if !request.tool_specs().is_empty() {
        config["tools"] = convert::tools(request.tool_specs(), "parametersJsonSchema");
        if let Some(mode) = tool_mode(request) {
            config["toolConfig"] = mode;
        }
    }
    if let Some(thinking) = thinking::config(request) {
        config["thinkingConfig"] = thinking;
    }
    json!({
        "model": request.model.id,
        "contents": convert::contents(request),
        "config": config,
    })
}

pub(super) fn tool_mode(request: &Request) -> Option<Value> {
    let mode = match request.options.tool_choice.as_ref()?.as_str() {
        Some("none") => "NONE",
        Some("any") => "ANY",
        _ => "AUTO",
    };
    Some(json!({ "functionCallingConfig": { "mode": mode } }))
}

/// Converts the payload to the wire format like the SDK.
pub(super) fn encode(payload: Value) -> Value {
    let mut body = Map::new();
    let mut generation = Map::new();
    body.insert("contents".into(), payload["contents"].clone());
    for (name, value) in payload["config"].as_object().into_iter().flatten() {
        match name.as_str() {
            "systemInstruction" => {
                let instruction = match value {
                    Value::String(text) => json!({ "parts": [{ "text": text }], "role": "user" }),
                    other => other.clone(),
                };
                body.insert(name.clone(), instruction);
            }
            name if TOP_LEVEL_MEMBERS.contains(&name) => {
                body.insert(name.to_owned(), value.clone());
            }
            // The SDK uses these members itself.
            "httpOptions" | "abortSignal" => {}
            _ => {
                generation.insert(name.clone(), value.clone());
            }
        }
    }
    if payload["config"].is_object() {
        // An empty object is sent, too.
        body.insert("generationConfig".into(), Value::Object(generation));
    }
    Value::Object(body)
}
