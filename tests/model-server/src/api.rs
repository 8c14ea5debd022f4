//! The wire APIs that the server speaks, told apart by the path of a request.

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    AnthropicMessages,
    OpenAiCompletions,
    OpenAiResponses,
}

impl Api {
    pub const ALL: [Self; 3] = [
        Self::AnthropicMessages,
        Self::OpenAiCompletions,
        Self::OpenAiResponses,
    ];

    /// The name in `models.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenAiCompletions => "openai-completions",
            Self::OpenAiResponses => "openai-responses",
        }
    }

    pub(crate) fn of_path(path: &str) -> Option<Self> {
        match path {
            "/v1/messages" => Some(Self::AnthropicMessages),
            "/v1/chat/completions" => Some(Self::OpenAiCompletions),
            "/v1/responses" => Some(Self::OpenAiResponses),
            _ => None,
        }
    }

    /// The path that clients put before the API's own path.
    pub(crate) fn base_path(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "",
            Self::OpenAiCompletions | Self::OpenAiResponses => "/v1",
        }
    }

    /// Describes what is wrong with a request that no provider would accept.
    pub(crate) fn check(self, body: &Value) -> Result<(), String> {
        let list = match self {
            Self::AnthropicMessages | Self::OpenAiCompletions => "messages",
            Self::OpenAiResponses => "input",
        };
        if !body["model"].is_string() {
            return Err("model: must be a string".into());
        }
        if !body[list].is_array() {
            return Err(format!("{list}: must be an array"));
        }
        if body["stream"] != json!(true) {
            return Err("stream: this server only streams".into());
        }
        if self == Self::AnthropicMessages && !body["max_tokens"].is_u64() {
            return Err("max_tokens: must be a positive number".into());
        }
        Ok(())
    }

    /// An error in this API's shape.
    pub(crate) fn error_body(self, status: u16, message: &str) -> Value {
        let kind = match status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        match self {
            Self::AnthropicMessages => {
                json!({"type": "error", "error": {"type": kind, "message": message}})
            }
            Self::OpenAiCompletions | Self::OpenAiResponses => {
                json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
            }
        }
    }
}
