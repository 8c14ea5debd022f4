//! OpenAI chat completions. Thinking is sent as `reasoning_content`, as most servers that imitate
//! this API do.

use serde_json::{Value, json};

use super::Frame;
use crate::answer::{Block, Ending, Reply, Stop, split};
use crate::api::Api;

pub(super) fn frames(reply: &Reply, number: usize, model: &str) -> Vec<Frame> {
    let chunk = |choices: Value, usage: Value| {
        json!({"id": format!("chatcmpl-{number}"), "object": "chat.completion.chunk",
            "created": 1_700_000_000, "model": model, "choices": choices, "usage": usage})
        .to_string()
    };
    let choice = |delta: Value, finish: Value| {
        chunk(
            json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]),
            Value::Null,
        )
    };
    let opening = json!({"role": "assistant", "content": ""});
    let mut frames = vec![Frame::unnamed(&choice(opening, Value::Null), false)];
    for (index, block) in reply.blocks.iter().enumerate() {
        for (delta, is_delta) in deltas(block, &reply.blocks, number, index) {
            frames.push(Frame::unnamed(&choice(delta, Value::Null), is_delta));
        }
    }
    if let Ending::Error(message) = &reply.ending {
        let error = Api::OpenAiCompletions.error_body(500, message).to_string();
        frames.push(Frame::unnamed(&error, false));
        return frames;
    }
    let finish = match reply.stop() {
        Stop::EndTurn => "stop",
        Stop::ToolUse => "tool_calls",
        Stop::Length => "length",
    };
    let usage = json!({"prompt_tokens": reply.input_tokens, "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
        "prompt_tokens_details": {"cached_tokens": 0}});
    frames.push(Frame::unnamed(&choice(json!({}), json!(finish)), false));
    frames.push(Frame::unnamed(&chunk(json!([]), usage), false));
    frames.push(Frame::unnamed("[DONE]", false));
    frames
}

/// The `delta` objects of a block, each with whether it carries content.
fn deltas(block: &Block, all: &[Block], number: usize, index: usize) -> Vec<(Value, bool)> {
    match block {
        Block::Text(texts) => texts
            .iter()
            .map(|text| (json!({"content": text}), true))
            .collect(),
        Block::Thinking(texts) => texts
            .iter()
            .map(|text| (json!({"reasoning_content": text}), true))
            .collect(),
        Block::Tool { name, arguments } => {
            // Tool calls have an index of their own.
            let position = all[..index]
                .iter()
                .filter(|block| matches!(block, Block::Tool { .. }))
                .count();
            let call = |function: Value| json!({"index": position, "function": function});
            let mut first = call(json!({"name": name, "arguments": ""}));
            first["id"] = json!(format!("call_{number}_{index}"));
            first["type"] = json!("function");
            let mut deltas = vec![(json!({"tool_calls": [first]}), false)];
            deltas.extend(split(&arguments.to_string()).iter().map(|part| {
                let part = call(json!({"arguments": part}));
                (json!({"tool_calls": [part]}), true)
            }));
            deltas
        }
    }
}
