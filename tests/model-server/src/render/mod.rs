//! Turns a neutral answer into the events of one wire API.

mod anthropic;
mod completions;
mod responses;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::answer::{Ending, Reply};
use crate::api::Api;

/// One server-sent event.
#[derive(Debug, PartialEq)]
pub(crate) struct Frame {
    pub text: String,
    /// Whether the event carries content; delays and cuts count such events.
    pub is_delta: bool,
}

impl Frame {
    /// Anthropic and responses name the event; its data repeats the name.
    fn named(data: &Value, is_delta: bool) -> Self {
        let name = data["type"].as_str().unwrap_or_default();
        Self {
            text: format!("event: {name}\ndata: {data}\n\n"),
            is_delta,
        }
    }

    fn unnamed(data: &str, is_delta: bool) -> Self {
        Self {
            text: format!("data: {data}\n\n"),
            is_delta,
        }
    }
}

/// `number` makes ids unique: it counts the requests of a server.
pub(crate) fn frames(api: Api, reply: &Reply, number: usize, model: &str) -> Vec<Frame> {
    let mut frames = match api {
        Api::AnthropicMessages => anthropic::frames(reply, number, model),
        Api::OpenAiCompletions => completions::frames(reply, number, model),
        Api::OpenAiResponses => responses::frames(reply, number, model),
    };
    if let Ending::Cut(count) | Ending::Stall(count) = reply.ending {
        let deltas = || (0..frames.len()).filter(|index| frames[*index].is_delta);
        let first_unsent = deltas().nth(count);
        let keep = first_unsent.or_else(|| deltas().next_back().map(|last| last + 1));
        frames.truncate(keep.unwrap_or(1));
    }
    frames
}
