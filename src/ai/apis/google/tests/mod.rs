mod validity;

use std::time::{Duration, Instant};

use serde_json::json;

use crate::message::StopReason;
use crate::testing::{Reply, Server, send_prompt};

#[tokio::test]
async fn thoughts_text_and_calls_become_blocks() {
    let events = [
        json!({"responseId": "r1", "candidates": [{"content": {"parts": [
            {"text": "hm", "thought": true}, {"text": ".", "thought": true, "thoughtSignature": "c2ln"}]}}]}),
        json!({"candidates": [{"content": {"parts": [{"text": "I "}]}}]}),
        json!({"candidates": [{"content": {"parts": [
            {"text": "look"},
            {"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "Zm8="},
            {"functionCall": {"id": "x", "name": "read"}}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 10, "cachedContentTokenCount": 4,
                "candidatesTokenCount": 3, "thoughtsTokenCount": 2, "totalTokenCount": 15}}),
    ];
    for (api, wrap) in [("google-generative-ai", false), ("google-gemini-cli", true)] {
        let events = events.clone().map(|event| match wrap {
            true => json!({ "response": event }),
            false => event,
        });
        let server = Server::start(vec![Reply::typed_events(&events)]).await;
        let message = send_prompt(&server, api, r#"{"token":"t","projectId":"p"}"#).await;
        assert_eq!(message.stop_reason, StopReason::ToolUse, "{message:?}");
        assert_eq!(message.response_id.as_deref(), Some("r1"));
        let mut content = serde_json::to_value(&message.content).unwrap();
        let id = content[2]["id"].take();
        assert!(id.as_str().unwrap().starts_with("read_"), "{id}");
        assert_eq!(
            content,
            json!([
                {"type": "thinking", "thinking": "hm.", "thinkingSignature": "c2ln"},
                {"type": "text", "text": "I look"},
                {"type": "toolCall", "id": null, "name": "read", "arguments": {"path": "a"}, "thoughtSignature": "Zm8="},
                {"type": "toolCall", "id": "x", "name": "read", "arguments": {}},
            ])
        );
        let usage = message.usage;
        assert_eq!(
            (
                usage.input,
                usage.output,
                usage.cache_read,
                usage.total_tokens
            ),
            (6, 5, 4, 15)
        );
    }
}

#[tokio::test]
async fn code_assist_is_retried_after_the_time_in_its_error() {
    let busy = |message: &str| {
        let body =
            json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": message}});
        Reply::status(429, &body.to_string())
    };
    let soon = || busy("Your quota will reset after 0.1s.");
    let event = json!({"response": {"candidates": [{"content": {"parts": [{"text": "ok"}]}, "finishReason": "STOP"}]}});
    let key = r#"{"token":"t","projectId":"p"}"#;
    let server = Server::start(vec![soon(), Reply::typed_events(&[event])]).await;
    let requested = Instant::now();
    let message = send_prompt(&server, "google-gemini-cli", key).await;
    assert_eq!(message.stop_reason, StopReason::Stop, "{message:?}");
    assert!(requested.elapsed() >= Duration::from_millis(1100));

    let server = Server::start(vec![busy("Your quota will reset after 18h31m10s.")]).await;
    let message = send_prompt(&server, "google-gemini-cli", key).await;
    let error = message.error_message.unwrap_or_default();
    assert!(error.contains("a wait of 66671 s"), "{error}");
    assert!(error.ends_with("reset after 18h31m10s."), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn refusals_and_broken_streams_are_errors() {
    let overflow = r#"{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8)"}}"#;
    let blocked = json!({"candidates": [{"finishReason": "SAFETY"}]});
    let cut = json!({"candidates": [{"content": {"parts": [{"text": "a"}]}}]});
    for (reply, expected) in [
        (Reply::status(400, overflow), overflow),
        (Reply::typed_events(&[blocked]), "finishReason SAFETY"),
        (Reply::typed_events(&[cut]), "ended without finishReason"),
        (Reply::events(&["data: {nonsense\n\n"]), "Malformed event"),
    ] {
        let server = Server::start(vec![reply]).await;
        let message = send_prompt(&server, "google-generative-ai", "k").await;
        assert_eq!(message.stop_reason, StopReason::Error);
        let error = message.error_message.unwrap();
        assert!(error.contains(expected), "{error}");
    }
}
