//! The wire APIs by the names that models refer to them with.

use std::sync::Arc;

use super::anthropic_messages::AnthropicMessages;
use super::openai_completions::OpenAiCompletions;
use super::openai_responses::OpenAiResponses;
use super::stream::Api;

pub const NAMES: [&str; 4] = [
    "anthropic-messages",
    super::demo::API,
    "openai-completions",
    "openai-responses",
];

/// Those that go over a wire, as extensions know them.
pub const WIRE_NAMES: [&str; 3] = [
    "anthropic-messages",
    "openai-completions",
    "openai-responses",
];

/// `None` for a name we do not know.
pub fn api(name: &str) -> Option<Arc<dyn Api>> {
    Some(match name {
        "anthropic-messages" => Arc::new(AnthropicMessages),
        super::demo::API => Arc::new(super::demo::DemoApi),
        "openai-completions" => Arc::new(OpenAiCompletions),
        "openai-responses" => Arc::new(OpenAiResponses),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_an_api() {
        assert!(NAMES.into_iter().all(|name| api(name).is_some()));
        assert!(api("google-generative-ai").is_none());
    }
}
