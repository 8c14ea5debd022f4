//! `mistral-conversations`: Mistral's chat completions, which differ from OpenAI's in thinking
//! and in the form of ids.

mod request;
mod response;
#[cfg(test)]
mod tests;

use crate::http::exchange;
use crate::stream::{Api, AssistantStream, Request};

pub struct Mistral;

impl Api for Mistral {
    fn stream(&self, request: Request) -> AssistantStream {
        exchange::stream(request, request::build_request)
    }
}
