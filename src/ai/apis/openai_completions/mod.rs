//! `openai-completions`: Chat Completions, which each server implements differently (see
//! `compat`).

mod compat;
mod convert;
mod reasoning_details;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod thinking;

use crate::http::exchange;
use crate::stream::{Api, AssistantStream, Request};

pub struct OpenAiCompletions;

impl Api for OpenAiCompletions {
    fn stream(&self, request: Request) -> AssistantStream {
        exchange::stream(request, request::build_request)
    }
}
