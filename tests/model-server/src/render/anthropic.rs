//! Anthropic messages.

use serde_json::{Value, json};

use super::Frame;
use crate::answer::{Block, Ending, Reply, Stop, split};
use crate::api::Api;

pub(super) fn frames(reply: &Reply, number: usize, model: &str) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut event = |data: Value| {
        let is_delta = data["type"] == "content_block_delta";
        frames.push(Frame::named(&data, is_delta));
    };
    event(json!({"type": "message_start", "message": {
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": model,
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": reply.input_tokens, "output_tokens": 1,
            "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
    }}));
    event(json!({"type": "ping"}));
    for (index, block) in reply.blocks.iter().enumerate() {
        let (start, deltas) = content(block, number, index);
        event(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in deltas {
            event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        event(json!({"type": "content_block_stop", "index": index}));
    }
    if let Ending::Error(message) = &reply.ending {
        event(Api::AnthropicMessages.error_body(529, message));
        return frames;
    }
    let stop = match reply.stop() {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::Length => "max_tokens",
    };
    event(json!({"type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": null},
        "usage": {"output_tokens": reply.output_tokens}}));
    event(json!({"type": "message_stop"}));
    frames
}

/// The content of a block at its start, and the deltas that follow.
fn content(block: &Block, number: usize, index: usize) -> (Value, Vec<Value>) {
    match block {
        Block::Text(texts) => (
            json!({"type": "text", "text": ""}),
            texts
                .iter()
                .map(|text| json!({"type": "text_delta", "text": text}))
                .collect(),
        ),
        Block::Thinking(texts) => (
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            texts
                .iter()
                .map(|text| json!({"type": "thinking_delta", "thinking": text}))
                .chain([json!({"type": "signature_delta",
                    "signature": format!("signature-{number}-{index}")})])
                .collect(),
        ),
        Block::Tool { name, arguments } => (
            json!({"type": "tool_use", "id": format!("call_{number}_{index}"), "name": name, "input": {}}),
            split(&arguments.to_string())
                .iter()
                .map(|part| json!({"type": "input_json_delta", "partial_json": part}))
                .collect(),
        ),
    }
}
