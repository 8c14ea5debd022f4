//! Looks up wire APIs by the names that models use.

use std::sync::Arc;

use super::anthropic_messages::AnthropicMessages;
use super::bedrock::Bedrock;
use super::google::{GoogleGeminiCli, GoogleGenerativeAi, GoogleVertex};
use super::mistral::Mistral;
use super::openai_completions::OpenAiCompletions;
use super::openai_responses::{AzureOpenAiResponses, OpenAiCodexResponses, OpenAiResponses};
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
pub fn api(name: &str) -> Option<Arc<dyn Api>> {
    Some(match name {
        "anthropic-messages" => Arc::new(AnthropicMessages),
        super::demo::API => Arc::new(super::demo::DemoApi),
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
        assert!(WIRE_NAMES.into_iter().all(|name| api(name).is_some()));
        assert!(api("google").is_none());
    }
}
