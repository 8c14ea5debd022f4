//! Sessions that other programs or hand edits have damaged can be continued: the request is valid,
//! and the file keeps its content.

use std::fs;

use model_server::{Answer, Api, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, prompt};

/// An answer first, a result without a call, a call without a result, a user message between a call
/// and its result, and two results for one call.
fn damaged() -> Vec<Value> {
    let assistant = |content: Value| {
        json!({"role": "assistant", "content": content, "api": "x", "provider": "x", "model": "x",
            "usage": {}, "stopReason": "toolUse", "timestamp": 1})
    };
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {"path": "a"}});
    let result = |id: &str, text: &str| {
        json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "isError": false,
            "content": [{"type": "text", "text": text}], "timestamp": 1})
    };
    let user = |text: &str| json!({"role": "user", "content": text, "timestamp": 1});
    vec![
        assistant(json!([{"type": "text", "text": "I was here first"}])),
        result("lost", "RESULT WITHOUT CALL"),
        assistant(json!([call("one"), call("two")])),
        user("BETWEEN"),
        result("one", "RESULT OF ONE"),
        result("one", "ANOTHER RESULT OF ONE"),
        user("and on"),
    ]
}

fn session_text(cwd: &str) -> String {
    let mut lines = vec![
        json!({"type": "session", "version": 3, "id": "damaged", "cwd": cwd,
            "timestamp": "2026-01-01T00:00:00.000Z"}),
    ];
    let mut parent = Value::Null;
    for (index, message) in damaged().into_iter().enumerate() {
        let id = format!("0000000{index}");
        lines.push(
            json!({"type": "message", "id": id, "parentId": parent, "message": message,
            "timestamp": "2026-01-01T00:00:00.000Z"}),
        );
        parent = json!(id);
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Short forms of the messages of the request, after the system prompt.
async fn continued(api: Api) -> Vec<String> {
    let server = ModelServer::start().await;
    let home = Home::with_api(&server, api);
    let text = session_text(home.cwd().to_str().unwrap());
    let file = home.file("damaged.jsonl", &text);
    let mut rpc = home.rpc(&["-ne", "--session", file.to_str().unwrap()]);
    server.push(Answer::text("Yes."));
    rpc.ok(prompt("go on")).await;
    rpc.event("agent_end").await;
    let kept = fs::read_to_string(&file).unwrap();
    assert!(kept.starts_with(&text), "{kept}");
    let body = server.last_request().body;
    let messages = body["messages"].as_array().unwrap();
    messages
        .iter()
        .filter(|message| {
            !["system", "developer"]
                .iter()
                .any(|role| message["role"] == *role)
        })
        .map(|message| {
            let text = message.to_string();
            let marks = [
                "BETWEEN",
                "ANOTHER RESULT OF ONE",
                "RESULT OF ONE",
                "RESULT WITHOUT CALL",
                "interrupted",
                "I was here first",
                "go on",
            ];
            let mark = marks.iter().find(|mark| text.contains(**mark)).copied();
            format!(
                "{} {}",
                message["role"].as_str().unwrap(),
                mark.unwrap_or("-")
            )
        })
        .collect()
}

#[tokio::test]
async fn a_damaged_session_makes_a_valid_chat() {
    let expected = [
        "user -",
        "assistant I was here first",
        "user RESULT WITHOUT CALL",
        "assistant -",
        "tool interrupted",
        "tool RESULT OF ONE",
        "user BETWEEN",
        "user ANOTHER RESULT OF ONE",
        "user -",
        "user go on",
    ];
    assert_eq!(continued(Api::OpenAiCompletions).await, expected);
}

#[tokio::test]
async fn a_damaged_session_makes_valid_messages() {
    let expected = [
        "user -",
        "assistant I was here first",
        "user RESULT WITHOUT CALL",
        "assistant -",
        "user RESULT OF ONE",
        "user BETWEEN",
        "user ANOTHER RESULT OF ONE",
        "user -",
        "user go on",
    ];
    assert_eq!(continued(Api::AnthropicMessages).await, expected);
}
