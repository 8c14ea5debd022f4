//! `openai-responses`: the Responses API of OpenAI.

mod convert;
mod request;
mod response;
#[cfg(test)]
mod tests;

use super::exchange;
use super::stream::{Api, AssistantStream, Request};

pub struct OpenAiResponses;

impl Api for OpenAiResponses {
    fn stream(&self, request: Request) -> AssistantStream {
        exchange::stream(request, request::prepare)
    }
}
