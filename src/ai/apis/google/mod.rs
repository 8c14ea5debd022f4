//! The wire format of Gemini, and three APIs that use it: `google-generative-ai`,
//! `google-vertex`, and `google-gemini-cli` (Code Assist, for subscriptions).

mod code_assist;
mod convert;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod thinking;

use crate::http::exchange;
use crate::stream::{Api, AssistantStream, Request};

pub struct GoogleGenerativeAi;

impl Api for GoogleGenerativeAi {
    fn stream(&self, request: Request) -> AssistantStream {
        exchange::stream(request, request::generative_ai)
    }
}

pub struct GoogleVertex;

impl Api for GoogleVertex {
    fn stream(&self, request: Request) -> AssistantStream {
        exchange::stream(request, request::vertex)
    }
}

pub struct GoogleGeminiCli;

impl Api for GoogleGeminiCli {
    fn stream(&self, request: Request) -> AssistantStream {
        exchange::stream(request, code_assist::build_request)
    }
}
