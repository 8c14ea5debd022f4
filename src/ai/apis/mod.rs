//! Looks up wire APIs by the names that models use.

mod accepted_content;
pub mod anthropic;
pub mod bedrock;
mod conversation_repair;
pub mod google;
pub mod mistral;
pub mod openai_completions;
pub mod openai_responses;
pub mod options;
pub(crate) mod request_parts;
mod transform;
#[cfg(test)]
mod wire_tests;

use std::sync::Arc;

use super::apis::anthropic::AnthropicMessages;
use super::apis::bedrock::Bedrock;
use super::apis::google::{GoogleGeminiCli, GoogleGenerativeAi, GoogleVertex};
use super::apis::mistral::Mistral;
use super::apis::openai_completions::OpenAiCompletions;
use super::apis::openai_responses::{AzureOpenAiResponses, OpenAiCodexResponses, OpenAiResponses};
use super::stream::Api;

/// Names of the APIs that use the network, as extensions know them.
pub const WIRE_NAMES: [&str; 10] = [
    "anthropic-messages",
    "azure-openai-responses",
    "bedrock-converse-stream",
    "google-gemini-cli",
    "google-generative-ai",
    "google-vertex",
    "mistral-conversations",
    "openai-codex-responses",
    "openai-completions",
    "openai-responses",
];

/// Returns `None` for an unknown name.
pub fn wire_api(name: &str) -> Option<Arc<dyn Api>> {
    Some(match name {
        "anthropic-messages" => Arc::new(AnthropicMessages),
        super::demo::DEMO_API => Arc::new(super::demo::DemoApi),
        "azure-openai-responses" => Arc::new(AzureOpenAiResponses),
        "bedrock-converse-stream" => Arc::new(Bedrock),
        "google-gemini-cli" => Arc::new(GoogleGeminiCli),
        "google-generative-ai" => Arc::new(GoogleGenerativeAi),
        "google-vertex" => Arc::new(GoogleVertex),
        "mistral-conversations" => Arc::new(Mistral),
        "openai-codex-responses" => Arc::new(OpenAiCodexResponses),
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
        assert!(WIRE_NAMES.into_iter().all(|name| wire_api(name).is_some()));
        assert!(wire_api("google").is_none());
    }
}
