mod validity;

use serde_json::json;

use crate::message::StopReason;
use crate::testing::{Reply, Server, send_prompt};

#[tokio::test]
async fn thoughts_text_and_calls_become_blocks() {
    let delta = |delta: serde_json::Value| json!({"id": "c1", "choices": [{"delta": delta}]});
    let events = [
        delta(
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}),
        ),
        delta(json!({"content": "I "})),
        delta(json!({"content": [{"type": "text", "text": "look"}]})),
        delta(
            json!({"tool_calls": [{"id": "abcdefghi", "index": 0, "function": {"name": "read", "arguments": "{\"pa"}}]}),
        ),
        delta(
            json!({"tool_calls": [{"id": "abcdefghi", "index": 0, "function": {"name": "", "arguments": "th\":1}"}}]}),
        ),
        json!({"id": "c1", "choices": [{"delta": {}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}}),
    ];
    let server = Server::start(vec![Reply::typed_events(&events)]).await;
    let message = send_prompt(&server, "mistral-conversations", "k").await;
    assert_eq!(message.stop_reason, StopReason::ToolUse, "{message:?}");
    assert_eq!(
        serde_json::to_value(&message.content).unwrap(),
        json!([
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "I look"},
            {"type": "toolCall", "id": "abcdefghi", "name": "read", "arguments": {"path": 1}},
        ])
    );
    assert_eq!((message.usage.input, message.usage.total_tokens), (5, 7));
}

#[tokio::test]
async fn a_refusal_is_quoted() {
    let server = Server::start(vec![Reply::status(422, "{\"detail\": 1}")]).await;
    let message = send_prompt(&server, "mistral-conversations", "k").await;
    assert_eq!(
        message.error_message.as_deref(),
        Some("Mistral API error (422): {\"detail\": 1}")
    );
}
