//! OpenAI responses.

use serde_json::{Value, json};

use super::Frame;
use crate::answer::{Block, Ending, Reply, Stop, split};

pub(super) fn frames(reply: &Reply, number: usize, model: &str) -> Vec<Frame> {
    let mut writer = Writer {
        frames: Vec::new(),
        number,
    };
    let response = |status: &str, output: &[Value], usage: Value, more: (&str, Value)| {
        let mut response = json!({"id": format!("resp_{number}"), "object": "response",
            "created_at": 1_700_000_000, "model": model, "status": status,
            "output": output, "usage": usage, "error": null, "incomplete_details": null});
        response[more.0] = more.1;
        response
    };
    let none = ("error", Value::Null);
    let opened = response("in_progress", &[], Value::Null, none.clone());
    writer.event("response.created", json!({"response": opened}));
    writer.event("response.in_progress", json!({"response": opened}));
    let output: Vec<Value> = reply
        .blocks
        .iter()
        .enumerate()
        .map(|(index, block)| writer.item(index, block))
        .collect();
    let usage = json!({"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0}});
    if let Ending::Error(message) = &reply.ending {
        let error = json!({"code": "server_error", "message": message});
        let failed = response("failed", &output, usage, ("error", error));
        writer.event("response.failed", json!({"response": failed}));
    } else if reply.stop() == Stop::Length {
        let details = json!({"reason": "max_output_tokens"});
        let cut = response(
            "incomplete",
            &output,
            usage,
            ("incomplete_details", details),
        );
        writer.event("response.incomplete", json!({"response": cut}));
    } else {
        let completed = response("completed", &output, usage, none);
        writer.event("response.completed", json!({"response": completed}));
    }
    writer.frames
}

struct Writer {
    frames: Vec<Frame>,
    number: usize,
}

impl Writer {
    fn event(&mut self, kind: &str, mut data: Value) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.frames.len());
        let is_delta = kind.ends_with(".delta");
        self.frames.push(Frame::named(&data, is_delta));
    }

    /// Everything about one output item; the answer is the item when complete.
    fn item(&mut self, index: usize, block: &Block) -> Value {
        let number = self.number;
        match block {
            Block::Text(texts) => {
                let id = format!("msg_{number}_{index}");
                let text = texts.concat();
                let item = |status: &str, content: Value| {
                    json!({"id": id, "type": "message", "role": "assistant", "status": status,
                        "content": content})
                };
                let part =
                    |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
                let at = json!({"item_id": id, "output_index": index, "content_index": 0});
                self.opened(index, item("in_progress", json!([])));
                self.event("response.content_part.added", with(&at, "part", part("")));
                for delta in texts {
                    self.event(
                        "response.output_text.delta",
                        with(&at, "delta", json!(delta)),
                    );
                }
                self.event("response.output_text.done", with(&at, "text", json!(text)));
                self.event("response.content_part.done", with(&at, "part", part(&text)));
                self.closed(index, item("completed", json!([part(&text)])))
            }
            Block::Thinking(texts) => {
                let id = format!("rs_{number}_{index}");
                let text = texts.concat();
                let at = json!({"item_id": id, "output_index": index, "summary_index": 0});
                let part = |text: &str| json!({"type": "summary_text", "text": text});
                let item =
                    |summary: Value| json!({"id": id, "type": "reasoning", "summary": summary});
                self.opened(index, item(json!([])));
                self.event(
                    "response.reasoning_summary_part.added",
                    with(&at, "part", part("")),
                );
                for delta in texts {
                    let data = with(&at, "delta", json!(delta));
                    self.event("response.reasoning_summary_text.delta", data);
                }
                let done = with(&at, "text", json!(text));
                self.event("response.reasoning_summary_text.done", done);
                let part_done = with(&at, "part", part(&text));
                self.event("response.reasoning_summary_part.done", part_done);
                let encrypted = json!(format!("encrypted-{number}-{index}"));
                let item = with(&item(json!([part(&text)])), "encrypted_content", encrypted);
                self.closed(index, item)
            }
            Block::Tool { name, arguments } => {
                let id = format!("fc_{number}_{index}");
                let arguments = arguments.to_string();
                let item = |status: &str, arguments: &str| {
                    json!({"id": id, "type": "function_call", "status": status, "name": name,
                        "call_id": format!("call_{number}_{index}"), "arguments": arguments})
                };
                let at = json!({"item_id": id, "output_index": index});
                self.opened(index, item("in_progress", ""));
                for part in split(&arguments) {
                    let data = with(&at, "delta", json!(part));
                    self.event("response.function_call_arguments.delta", data);
                }
                let data = with(&at, "arguments", json!(arguments));
                self.event("response.function_call_arguments.done", data);
                self.closed(index, item("completed", &arguments))
            }
        }
    }

    fn opened(&mut self, index: usize, item: Value) {
        let data = json!({"output_index": index, "item": item});
        self.event("response.output_item.added", data);
    }

    fn closed(&mut self, index: usize, item: Value) -> Value {
        let data = json!({"output_index": index, "item": item});
        self.event("response.output_item.done", data);
        item
    }
}

fn with(object: &Value, key: &str, value: Value) -> Value {
    let mut object = object.clone();
    object[key] = value;
    object
}
