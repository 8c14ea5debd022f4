//! The reasons why an answer failed. The texts are part of the interface: retry and compaction
//! match them (see [`super::classify`]).

use std::error::Error;
use std::time::Duration;

use serde_json::Value;

use super::http::HttpSetupError;

/// Start of the text of [`Failure::TooBusy`]. The agent does not retry such a failure.
pub(super) const TOO_BUSY: &str = "The server asks for a wait";

/// Maximum length of an error text: error pages can be whole web sites.
const MAX_TEXT_BYTES: usize = 4000;

#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("Request was aborted.")]
    Aborted,
    #[error("{0}")]
    Setup(#[from] HttpSetupError),
    #[error(
        "No API key for provider: {0}. Set its environment variable, or add it to auth.json or models.json."
    )]
    NoKey(String),
    #[error("Invalid value of header {0:?}: only visible ASCII characters and spaces can be sent")]
    Header(String),
    #[error("Cannot send a request to {url}: {error}. Check the base URL of the model.")]
    Url { url: String, error: String },
    #[error("Connection error. {0}")]
    Connection(String),
    #[error("Request timed out. {0}")]
    Timeout(String),
    /// A hook refused the request or the response.
    #[error("{0}")]
    Hook(String),
    /// The stream ended or failed before the answer was complete.
    #[error("Connection lost: {0}")]
    Lost(String),
    /// Status and error text of the provider.
    #[error("{0}")]
    Http(String),
    #[error(
        "{TOO_BUSY} of {} s, which is longer than retry.maxDelayMs in settings.json allows. {refusal}",
        delay.as_secs_f64().ceil()
    )]
    TooBusy { delay: Duration, refusal: String },
    #[error("Malformed event in the answer: {error}: {data}")]
    Malformed { error: String, data: String },
    /// The provider reported a failure in the middle of an answer.
    #[error("{0}")]
    Provider(String),
}

impl Failure {
    pub(super) fn sending(error: &reqwest::Error, url: &str) -> Self {
        let cause = causes(error);
        if error.is_builder() {
            Self::Url {
                url: url.to_owned(),
                error: cause,
            }
        } else if error.is_timeout() {
            Self::Timeout(cause)
        } else {
            Self::Connection(cause)
        }
    }

    pub(super) fn receiving(error: &reqwest::Error) -> Self {
        Self::Lost(format!(
            "the answer was cut off in the middle ({})",
            causes(error)
        ))
    }

    /// `event` names what the stream ended without.
    pub(super) fn unfinished(event: &str) -> Self {
        Self::Lost(format!("the stream ended without {event}"))
    }

    pub(super) fn malformed(error: &serde_json::Error, data: &str) -> Self {
        Self::Malformed {
            error: error.to_string(),
            data: shorten(data),
        }
    }
}

/// Returns the text of an error response: `429 {"type":"error",…}`, `400 message`, or `413 status
/// code (no body)`.
pub(super) fn http_text(status: u16, body: &str, envelope: Envelope) -> String {
    let body = body.trim();
    match envelope {
        Envelope::Bare => return bare_text(status, body),
        Envelope::CodeAssist => {
            let message = serde_json::from_str::<Value>(body).ok();
            let message = message
                .as_ref()
                .and_then(|body| body["error"]["message"].as_str());
            let text = shorten(message.unwrap_or(body));
            return format!("Cloud Code Assist API error ({status}): {text}");
        }
        Envelope::Bedrock => {
            let body: Value = serde_json::from_str(body).unwrap_or(Value::String(body.into()));
            let kind = body["__type"].as_str().unwrap_or_default();
            let kind = kind.rsplit('#').next().unwrap_or_default();
            // The header with the name of the exception is not available here; the status
            // determines it.
            let kind = match (kind, status) {
                ("", 400) => "ValidationException",
                ("", 429) => "ThrottlingException",
                ("", 500) => "InternalServerException",
                ("", 503) => "ServiceUnavailableException",
                ("", 403) => "AccessDeniedException",
                ("", _) => "Unknown",
                (kind, _) => kind,
            };
            let message = body["message"].as_str().or(body["Message"].as_str());
            let message = shorten(message.or(body.as_str()).unwrap_or_default());
            return super::apis::bedrock::exception_text(kind, &message);
        }
        Envelope::Mistral => {
            return format!("Mistral API error ({status}): {}", shorten(body));
        }
        Envelope::Codex => {
            let body: Value = serde_json::from_str(body).unwrap_or(Value::String(body.into()));
            let limit = super::apis::openai_responses::limit_text(status, &body);
            return limit.unwrap_or_else(|| match error_text(&body, Envelope::Error) {
                text if text.is_empty() => format!("{status} status code (no body)"),
                text => shorten(&text),
            });
        }
        Envelope::Whole | Envelope::Error => {}
    }
    let text = match serde_json::from_str::<Value>(body) {
        Ok(json) => error_text(&json, envelope),
        Err(_) => body.to_owned(),
    };
    if text.is_empty() {
        format!("{status} status code (no body)")
    } else {
        format!("{status} {}", shorten(&text))
    }
}

/// Formats an error like Google's SDK.
fn bare_text(status: u16, body: &str) -> String {
    match serde_json::from_str::<Value>(body) {
        Ok(json) if json.is_object() => shorten(&json.to_string()),
        _ => {
            let error = serde_json::json!({ "message": shorten(body), "code": status });
            serde_json::json!({ "error": error }).to_string()
        }
    }
}

/// The place of the error text in a provider's error response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Envelope {
    /// The whole body is shown.
    Whole,
    /// The content of `{"error": …}` is shown.
    Error,
    /// Google's format: the whole body is shown without the status, which is part of it.
    Bare,
    /// Google Code Assist's format: the error's message becomes part of a sentence.
    CodeAssist,
    /// Mistral's format: the body becomes part of a sentence.
    Mistral,
    /// Amazon's format: the message follows the name of the exception.
    Bedrock,
    /// ChatGPT's format: only the message is shown; limits become a sentence.
    Codex,
}

/// Returns the `message` of the error object, or the whole object if it has none.
pub(super) fn error_text(body: &Value, envelope: Envelope) -> String {
    let error = match envelope {
        Envelope::Whole | Envelope::Bare | Envelope::Mistral => body,
        Envelope::Error | Envelope::Bedrock | Envelope::CodeAssist | Envelope::Codex => {
            body.get("error").unwrap_or(body)
        }
    };
    let mut text = match (error, error.get("message")) {
        (_, Some(Value::String(message))) if !message.is_empty() => message.clone(),
        (_, Some(message)) if message.is_object() || message.is_array() => message.to_string(),
        (Value::String(text), _) => text.clone(),
        (Value::Null, _) => String::new(),
        _ => error.to_string(),
    };
    // OpenRouter puts the error text of the provider behind it here.
    if let Some(raw) = error.pointer("/metadata/raw") {
        text.push('\n');
        match raw {
            Value::String(raw) => text.push_str(raw),
            raw => text.push_str(&raw.to_string()),
        }
    }
    text
}

/// Returns the text of the innermost cause: outer causes only give the location.
fn causes(error: &reqwest::Error) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let host = error
        .url()
        .map(|url| url.origin().ascii_serialization())
        .unwrap_or_default();
    if host.is_empty() {
        innermost.to_string()
    } else {
        format!("{host}: {innermost}")
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT_BYTES) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_errors_have_the_shapes_that_retry_and_overflow_match() {
        let overloaded =
            r#"{ "type": "error", "error": {"type":"overloaded_error","message":"Overloaded"}}"#;
        let cases = [
            (
                529,
                overloaded,
                Envelope::Whole,
                r#"529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            ),
            (529, overloaded, Envelope::Error, "529 Overloaded"),
            (413, "", Envelope::Whole, "413 status code (no body)"),
            (400, " \n", Envelope::Error, "400 status code (no body)"),
            (502, "<h1>Bad</h1>", Envelope::Error, "502 <h1>Bad</h1>"),
            (400, r#"{"error":"bad"}"#, Envelope::Error, "400 bad"),
            (
                400,
                r#"{"detail":[1]}"#,
                Envelope::Error,
                r#"400 {"detail":[1]}"#,
            ),
            (
                429,
                r#"{"error":{"message":"Provider returned error","metadata":{"raw":"slow down"}}}"#,
                Envelope::Error,
                "429 Provider returned error\nslow down",
            ),
        ];
        for (status, body, envelope, expected) in cases {
            assert_eq!(http_text(status, body, envelope), expected);
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = http_text(500, &"é".repeat(9000), Envelope::Error);
        assert_eq!(text, format!("500 {}…", "é".repeat(MAX_TEXT_BYTES)));
    }
}
