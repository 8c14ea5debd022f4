//! Parts that the requests of several APIs have in common.

use reqwest::header::HeaderMap;
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::http::exchange::set_header;
use crate::message::{ContentBlock, ImageContent, Message, UserContent};
use crate::model::{Model, ThinkingLevel};
use crate::stream::Request;

const DEFAULT_MAX_TOKENS: u64 = 32_000;
/// Tokens that thinking leaves for the answer.
const MIN_ANSWER_TOKENS: u64 = 1024;

/// Text of a tool result that has only images.
pub(crate) const IMAGE_ONLY_TEXT: &str = "(see attached image)";

/// Returns a flag of the model's `compat`; `None` if it is not set.
pub(crate) fn compat_flag(model: &Model, name: &str) -> Option<bool> {
    model.compat.as_ref()?.get(name)?.as_bool()
}

/// Returns the limit of output tokens; `None` leaves it to the API.
pub(crate) fn max_tokens(request: &Request) -> Option<u64> {
    match request.options.max_tokens {
        Some(tokens) if tokens > 0 => Some(tokens),
        _ if request.options.without_defaults => None,
        _ => Some(request.model.max_tokens.min(DEFAULT_MAX_TOKENS)),
    }
}

/// Returns the limit of output tokens, thoughts included, and the budget of thoughts, for models
/// with a thinking budget.
pub(crate) fn with_thinking_budget(
    request: &Request,
    level: ThinkingLevel,
    answer: u64,
) -> (u64, u64) {
    let level = level.min(ThinkingLevel::High);
    let configured = request.options.thinking_budgets.get(&level).copied();
    let budget = configured.unwrap_or(match level {
        ThinkingLevel::Off => 0,
        ThinkingLevel::Minimal => 1024,
        ThinkingLevel::Low => 2048,
        ThinkingLevel::Medium => 8192,
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => 16384,
    });
    if request.options.without_defaults {
        return (answer, budget);
    }
    let tokens = answer.saturating_add(budget).min(request.model.max_tokens);
    match tokens <= budget {
        true => (tokens, tokens.saturating_sub(MIN_ANSWER_TOKENS)),
        false => (tokens, budget),
    }
}

/// Returns the members that the model's configuration adds to every request. They are set last
/// and override others.
pub(crate) fn sampling_params(request: &Request) -> Map<String, Value> {
    let mut params = request.model.sampling_params.clone().unwrap_or_default();
    let by_level = &request.model.sampling_params_by_thinking_level;
    let level = thinking_level(request).unwrap_or(ThinkingLevel::Off);
    let of_level = (by_level.as_ref()).and_then(|levels| levels.get(level.as_str()));
    params.extend(of_level.cloned().unwrap_or_default());
    params.extend(request.options.sampling_params.clone());
    params
}

/// Returns the requested level as the model offers it. `None` if thinking is off or the request
/// has no level; a model that always thinks then decides by itself.
pub(crate) fn thinking_level(request: &Request) -> Option<ThinkingLevel> {
    let level = request.options.reasoning?;
    match request.model.clamp_thinking(level) {
        ThinkingLevel::Off => None,
        level => Some(level),
    }
}

/// Returns the key. Fails if there is none, unless a configured header replaces it.
pub(crate) fn api_key(request: &Request) -> Result<Option<&str>, Failure> {
    let key = request.options.api_key.as_deref().map(str::trim);
    if let Some(key) = key.filter(|key| !key.is_empty()) {
        return Ok(Some(key));
    }
    let model_headers = request
        .model
        .headers
        .iter()
        .flat_map(|headers| headers.keys());
    let mut names = model_headers.chain(request.options.headers.keys());
    let is_authorised = names.any(|name| {
        ["authorization", "x-api-key"]
            .iter()
            .any(|auth| name.eq_ignore_ascii_case(auth))
    });
    match is_authorised {
        true => Ok(None),
        false => Err(Failure::NoKey(request.model.provider.clone())),
    }
}

/// Returns the address of the endpoint, below the model's base URL. Names of variables in braces
/// are replaced from the user's environment.
pub(crate) fn url(request: &Request, path: &str) -> Result<String, Failure> {
    let model = &request.model;
    let mut base = model.base_url.trim().to_owned();
    for name in ["CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_GATEWAY_ID"] {
        let place = format!("{{{name}}}");
        if base.contains(&place) {
            let Some(value) = request.options.env().get(name) else {
                return Err(Failure::Provider(format!(
                    "The provider {} needs the environment variable {name}",
                    model.provider
                )));
            };
            base = base.replace(&place, &value);
        }
    }
    Ok(format!("{}{path}", base.strip_suffix('/').unwrap_or(&base)))
}

/// Adds all configured headers; later ones override earlier ones.
pub(crate) fn configured_headers(
    request: &Request,
    headers: &mut HeaderMap,
    own: &[(&str, &str)],
) -> Result<(), Failure> {
    for (name, value) in request.model.headers.iter().flatten() {
        set_header(headers, name, value)?;
    }
    if request.model.provider == "github-copilot" {
        for (name, value) in copilot_headers(&request.messages) {
            set_header(headers, name, value)?;
        }
    }
    if request.model.provider == "cloudflare-ai-gateway"
        && let Some(key) = &request.options.api_key
    {
        // The key is the gateway's, which stores those of the providers behind it.
        headers.remove("authorization");
        headers.remove("x-api-key");
        set_header(headers, "cf-aig-authorization", &format!("Bearer {key}"))?;
    }
    for (name, value) in own {
        set_header(headers, name, value)?;
    }
    for (name, value) in &request.options.headers {
        set_header(headers, name, value)?;
    }
    Ok(())
}

/// Returns Copilot's headers, which state for billing whether the user or the agent sent the
/// request.
fn copilot_headers(messages: &[Message]) -> Vec<(&'static str, &'static str)> {
    let by_user = matches!(messages.last(), None | Some(Message::User(_)));
    let mut headers = vec![
        ("X-Initiator", if by_user { "user" } else { "agent" }),
        ("Openai-Intent", "conversation-edits"),
    ];
    let has_images = messages.iter().any(|message| match message {
        Message::User(user) => match &user.content {
            UserContent::Text(_) => false,
            UserContent::Blocks(blocks) => has_image(blocks),
        },
        Message::ToolResult(result) => has_image(&result.content),
        Message::Assistant(_) => false,
    });
    if has_images {
        headers.push(("Copilot-Vision-Request", "true"));
    }
    headers
}

pub(crate) fn has_image(blocks: &[ContentBlock]) -> bool {
    images(blocks).next().is_some()
}

pub(crate) fn images(blocks: &[ContentBlock]) -> impl Iterator<Item = &ImageContent> {
    blocks.iter().filter_map(|block| match block {
        ContentBlock::Image(image) => Some(&**image),
        ContentBlock::Text(_) | ContentBlock::Other(_) => None,
    })
}

pub(crate) fn data_url(image: &ImageContent) -> String {
    format!("data:{};base64,{}", image.mime_type, image.data)
}

pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::secret_value::Env;
    use crate::testing::{model, request_for};

    #[test]
    fn an_address_is_filled_from_the_environment() {
        let gateway = Model {
            provider: "cloudflare-ai-gateway".into(),
            base_url: "https://x/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/compat".into(),
            ..model("openai-completions")
        };
        let mut request = request_for(gateway, vec![]);
        let variables = [
            ("CLOUDFLARE_ACCOUNT_ID", "a"),
            ("CLOUDFLARE_GATEWAY_ID", "g"),
        ];
        request.options.env = Some(Env::fixed(variables));
        let address = url(&request, "/chat/completions").ok();
        assert_eq!(
            address.as_deref(),
            Some("https://x/a/g/compat/chat/completions")
        );
        let mut headers = HeaderMap::new();
        set_header(&mut headers, "authorization", "Bearer key").ok();
        configured_headers(&request, &mut headers, &[]).ok();
        assert_eq!(headers["cf-aig-authorization"], "Bearer key");
        assert!(!headers.contains_key("authorization"));
        request.options.env = Some(Env::fixed([("CLOUDFLARE_ACCOUNT_ID", "a")]));
        assert!(matches!(
            url(&request, "/chat/completions"),
            Err(Failure::Provider(error)) if error.contains("CLOUDFLARE_GATEWAY_ID")
        ));
    }
}
