//! Normalises messages that were written by hand, by an extension's provider or by another
//! version. Missing members that pi does not need are added, and meaningless ones are removed, so
//! that the message is not lost.

use serde_json::{Map, Value, json};

use super::json::lenient::known;
use super::message::{AssistantBlock, ContentBlock, StopReason, Usage};
use super::stream::tool_arguments::read_or_explain;

/// Normalises a message of an assistant, a tool or a user. Other messages are left unchanged.
pub fn normalize(message: &mut Value) {
    let Some(message) = message.as_object_mut() else {
        return;
    };
    match message.get("role").and_then(Value::as_str) {
        Some("assistant") => normalize_answer(message),
        Some("toolResult") => {
            texts(message, &["toolCallId", "toolName"]);
            if !message.get("isError").is_some_and(Value::is_boolean) {
                message.insert("isError".into(), false.into());
            }
            blocks(message, known::<ContentBlock>);
        }
        // A user message without content is no message.
        Some("user") if message.get("content").is_some_and(Value::is_array) => {
            blocks(message, known::<ContentBlock>);
        }
        _ => {}
    }
}

fn normalize_answer(message: &mut Map<String, Value>) {
    texts(message, &["api", "provider", "model"]);
    for member in ["responseId", "errorMessage"] {
        if message.get(member).is_some_and(|value| !value.is_string()) {
            message.remove(member);
        }
    }
    let usage = message.get("usage").cloned().and_then(known::<Usage>);
    message.insert("usage".into(), json!(usage.unwrap_or_default()));
    let reason = message.get("stopReason").cloned();
    if reason.and_then(known::<StopReason>).is_none() {
        let calls = message.get("content").and_then(Value::as_array);
        let calls = calls.is_some_and(|all| all.iter().any(|one| one["type"] == "toolCall"));
        let reason = match calls {
            true => StopReason::ToolUse,
            false => StopReason::Stop,
        };
        message.insert("stopReason".into(), json!(reason));
    }
    blocks(message, |mut block| {
        if block["type"] == "toolCall" {
            normalize_arguments(&mut block);
        }
        if let (true, Value::Number(id)) = (block["type"] == "toolCall", &block["id"]) {
            block["id"] = id.to_string().into();
        }
        known::<AssistantBlock>(block)
    });
}

/// Makes an object of a call's arguments. If they are no object, they are kept in the reason why
/// the call cannot be made. A call without arguments is checked by its tool.
pub(super) fn normalize_arguments(call: &mut Value) {
    let text = match &call["arguments"] {
        Value::Object(_) => return,
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let (arguments, error) = read_or_explain(&text);
    call["arguments"] = Value::Object(arguments);
    if let Some(error) = error {
        call["argumentsError"] = error.into();
    }
}

fn texts(message: &mut Map<String, Value>, members: &[&str]) {
    for &member in members {
        let text = match message.get(member) {
            Some(Value::String(_)) => continue,
            // An id of a call may be a number.
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        message.insert(member.into(), text.into());
    }
}

/// Converts content to blocks: a text becomes a block, and unknown blocks are removed.
fn blocks<T: serde::Serialize>(
    message: &mut Map<String, Value>,
    known: impl Fn(Value) -> Option<T>,
) {
    let blocks = match message.remove("content") {
        Some(Value::Array(blocks)) => blocks,
        Some(Value::String(text)) => vec![json!({ "type": "text", "text": text })],
        _ => Vec::new(),
    };
    let blocks: Vec<T> = blocks.into_iter().filter_map(known).collect();
    message.insert("content".into(), json!(blocks));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;

    fn normalized(mut message: Value) -> Message {
        normalize(&mut message);
        serde_json::from_value(message).unwrap()
    }

    #[test]
    fn missing_members_are_filled_in() {
        let Message::Assistant(answer) = normalized(json!({
            "role": "assistant", "stopReason": "tool_calls", "usage": null, "model": 5,
            "content": [{"type": "image", "data": "", "mimeType": "image/png"},
                {"type": "toolCall", "id": 1, "name": "look"}]
        })) else {
            panic!("no answer")
        };
        assert_eq!(answer.stop_reason, StopReason::ToolUse);
        assert_eq!(answer.tool_calls().next().unwrap().arguments, json!({}));
        assert_eq!(answer.content.len(), 1);
        let Message::ToolResult(result) =
            normalized(json!({"role": "toolResult", "toolCallId": 1, "content": "seen"}))
        else {
            panic!("no result")
        };
        assert_eq!(result.content, [ContentBlock::text("seen")]);
        assert_eq!(result.tool_call_id, answer.tool_calls().next().unwrap().id);
        let unknown =
            json!({"role": "user", "content": [{"type": "audio"}, {"type": "text", "text": "a"}]});
        assert!(matches!(normalized(unknown), Message::User(_)));
    }
    #[test]
    fn arguments_that_are_no_object_are_read_or_refused() {
        let call = |arguments: Value| {
            let call =
                json!({"type": "toolCall", "id": "1", "name": "look", "arguments": arguments});
            let Message::Assistant(answer) =
                normalized(json!({"role": "assistant", "content": [call]}))
            else {
                panic!("no answer")
            };
            let call = answer.tool_calls().next().unwrap().clone();
            (call.arguments, call.arguments_error.is_some())
        };
        for (given, expected) in [
            (json!({"a": 1}), (json!({"a": 1}), false)),
            (json!("{\"a\":1}"), (json!({"a": 1}), false)),
            (Value::Null, (json!({}), false)),
            (json!("{\"a\":1"), (json!({}), true)),
            (json!([1]), (json!({}), true)),
        ] {
            assert_eq!(call(given.clone()), expected, "{given}");
        }
    }
}
