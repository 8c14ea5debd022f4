//! Classifies failures by their text. Nothing else is available: session files keep only the
//! text, and providers of extensions can give only a text.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use super::failure::TOO_BUSY;
use super::message::{AssistantMessage, StopReason};

/// Messages of providers for a conversation that exceeds the context window.
const OVERFLOW: &[&str] = &[
    r"(?i)prompt is too long",
    r"(?i)request_too_large",
    r"(?i)input is too long for requested model",
    r"(?i)exceeds the context window",
    r"(?i)input token count.*exceeds the maximum",
    r"(?i)maximum prompt length is \d+",
    r"(?i)reduce the length of the messages",
    r"(?i)maximum context length is \d+ tokens",
    r"(?i)exceeds the limit of \d+",
    r"(?i)exceeds the available context size",
    r"(?i)greater than the context length",
    r"(?i)context window exceeds limit",
    r"(?i)exceeded model token limit",
    r"(?i)too large for model with \d+ maximum context length",
    r"(?i)model_context_window_exceeded",
    r"(?i)prompt too long; exceeded (?:max )?context length",
    r"(?i)context[_ ]length[_ ]exceeded",
    r"(?i)too many tokens",
    r"(?i)token limit exceeded",
    // Cerebras sends only the status.
    r"(?i)^4(?:00|13)\s*(?:status code)?\s*\(no body\)",
];

/// Throttling messages that mention tokens.
const THROTTLED: &[&str] = &[
    r"(?i)^(Throttling error|Service unavailable):",
    r"(?i)rate limit",
    r"(?i)too many requests",
];

const RETRYABLE: &str = r"(?ix)
    overloaded | provider.?returned.?error | rate.?limit | too\ many\ requests
    | 429 | 500 | 502 | 503 | 504 | service.?unavailable | server.?error | internal.?error
    | network.?error | connection.?error | connection.?refused | connection.?lost
    | other\ side\ closed | fetch\ failed | upstream.?connect | reset\ before\ headers
    | socket\ hang\ up | ended\ without | timed?\ out | timeout | terminated | retry\ delay";

// The tests compile these constant patterns, so `expect` cannot fail.
static OVERFLOW_SET: LazyLock<RegexSet> =
    LazyLock::new(|| RegexSet::new(OVERFLOW).expect("constant patterns"));
static THROTTLED_SET: LazyLock<RegexSet> =
    LazyLock::new(|| RegexSet::new(THROTTLED).expect("constant patterns"));
static RETRYABLE_REGEX: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(RETRYABLE).expect("constant pattern"));

/// Returns the patterns without their flag for ignoring case.
pub fn overflow_patterns() -> Vec<&'static str> {
    let alone = |pattern: &'static str| pattern.strip_prefix("(?i)").unwrap_or(pattern);
    OVERFLOW.iter().map(|pattern| alone(pattern)).collect()
}

/// Returns true if the conversation exceeds the model's context window: the provider said so, or
/// it answered although the input was larger than the window (z.ai). A `context_window` of 0
/// means unknown.
pub fn is_context_overflow(message: &AssistantMessage, context_window: u64) -> bool {
    overflowed(
        message.stop_reason,
        message.error_message.as_deref(),
        message.usage.input.saturating_add(message.usage.cache_read),
        context_window,
    )
}

/// Like [`is_context_overflow`], for the given members of a message. `sent` is in tokens.
pub fn overflowed(
    stop_reason: StopReason,
    error_message: Option<&str>,
    sent: u64,
    context_window: u64,
) -> bool {
    match stop_reason {
        StopReason::Error => error_message
            .is_some_and(|text| !THROTTLED_SET.is_match(text) && OVERFLOW_SET.is_match(text)),
        StopReason::Stop => context_window > 0 && sent > context_window,
        StopReason::Length | StopReason::ToolUse | StopReason::Aborted => false,
    }
}

/// Returns true if another attempt may succeed. Callers check [`is_context_overflow`] first,
/// because a retry does not help against an overflow.
pub fn is_retryable(error_message: &str) -> bool {
    !error_message.starts_with(TOO_BUSY) && RETRYABLE_REGEX.is_match(error_message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Usage;

    fn message(stop_reason: StopReason, error: Option<&str>, input: u64) -> AssistantMessage {
        AssistantMessage {
            content: vec![],
            api: "a".into(),
            provider: "p".into(),
            model: "m".into(),
            response_id: None,
            usage: Usage {
                input,
                cache_read: 10,
                ..Usage::default()
            },
            stop_reason,
            error_message: error.map(str::to_owned),
            timestamp: 0,
        }
    }

    #[test]
    fn overflow_texts() {
        for text in [
            "400 {\"error\":{\"message\":\"prompt is too long: 213462 tokens > 200000 maximum\"}}",
            "413 {\"error\":{\"type\":\"request_too_large\"}}",
            "Your input exceeds the context window of this model",
            "The input token count (1196265) exceeds the maximum number of tokens allowed",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
            "Please reduce the length of the messages or completion",
            "maximum context length is 4096 tokens. However, you requested about 5000",
            "prompt token count of 9 exceeds the limit of 8",
            "Unhandled stop reason: model_context_window_exceeded",
            "413 status code (no body)",
            "400 (no body)",
            "Too many tokens",
        ] {
            let message = message(StopReason::Error, Some(text), 0);
            assert!(is_context_overflow(&message, 0), "{text}");
        }
        for text in [
            "Throttling error: Too many tokens, please wait",
            "429 Rate limit: too many tokens",
            "500 status code (no body)",
            "it said: 413 status code (no body)",
        ] {
            let message = message(StopReason::Error, Some(text), 0);
            assert!(!is_context_overflow(&message, 0), "{text}");
        }
    }

    #[test]
    fn only_failed_answers_are_judged_by_their_text() {
        let aborted = message(StopReason::Aborted, Some("prompt is too long"), 0);
        assert!(!is_context_overflow(&aborted, 0));
        assert!(!is_context_overflow(
            &message(StopReason::Error, None, 900),
            100
        ));
    }

    #[test]
    fn silent_overflow() {
        let answer = message(StopReason::Stop, None, 95);
        assert!(is_context_overflow(&answer, 100));
        assert!(!is_context_overflow(&answer, 105));
        assert!(!is_context_overflow(&answer, 0));
        assert!(!is_context_overflow(
            &message(StopReason::ToolUse, None, 95),
            100
        ));
    }

    #[test]
    fn retryable_texts() {
        for text in [
            "529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
            "Provider returned error",
            "429 slow down",
            "rate_limit_error",
            "Connection error.",
            "Connection lost: the stream ended without message_stop",
            "Provider finish_reason: network_error",
            "Request timed out.",
            "time out",
        ] {
            assert!(is_retryable(text), "{text}");
        }
        for text in [
            "400 bad request",
            "401 invalid x-api-key",
            "Request was aborted.",
        ] {
            assert!(!is_retryable(text), "{text}");
        }
    }
}
