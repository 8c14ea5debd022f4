//! `anthropic-messages`: the Messages API of Anthropic, of compatible gateways, and of Claude
//! subscriptions.

mod claude_code;
mod request;
mod response;

use crate::http::exchange;
use crate::stream::{Api, AssistantStream, Request};

pub struct AnthropicMessages;

impl Api for AnthropicMessages {
    fn stream(&self, request: Request) -> AssistantStream {
        exchange::stream(request, request::build_request)
    }
}
