//! The Responses API of OpenAI (`openai-responses`), of Azure, and of ChatGPT subscriptions
//! (`openai-codex-responses`).

mod azure;
mod codex;
mod convert;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub(crate) use codex::limit_text;

use crate::http::exchange;
use crate::stream::{Api, AssistantStream, Request};

pub struct OpenAiResponses;

impl Api for OpenAiResponses {
    fn stream(&self, request: Request) -> AssistantStream {
        exchange::stream(request, request::build_request)
    }
}

pub struct AzureOpenAiResponses;

impl Api for AzureOpenAiResponses {
    fn stream(&self, request: Request) -> AssistantStream {
        exchange::stream(request, azure::build_request)
    }
}

pub struct OpenAiCodexResponses;

impl Api for OpenAiCodexResponses {
    fn stream(&self, request: Request) -> AssistantStream {
        exchange::stream(request, codex::build_request)
    }
}
