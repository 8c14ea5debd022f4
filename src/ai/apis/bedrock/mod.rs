//! `bedrock-converse-stream`: models on Amazon Bedrock, with AWS's keys, signatures and framing.

mod credentials;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub(crate) use response::exception_text;

use crate::http::exchange;
use crate::stream::{Api, AssistantStream, Request};

pub struct Bedrock;

impl Api for Bedrock {
    fn stream(&self, request: Request) -> AssistantStream {
        exchange::stream(request, request::build_request)
    }
}
