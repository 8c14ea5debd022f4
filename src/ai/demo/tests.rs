use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::message::{AssistantMessage, ToolCall, UserMessage};
use crate::stream::{AssistantEvent, StreamItem, StreamOptions, ToolSpec};

fn request(messages: Vec<Message>, tools: &[&str]) -> Request {
    let spec = |name: &&str| ToolSpec {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: json!({"type": "object"}),
    };
    Request {
        model: Arc::new(entry().models.remove(0)),
        system_prompt: Some("You are pi.".into()),
        messages,
        tools: Some(tools.iter().map(spec).collect()),
        options: StreamOptions::default(),
        cancel: CancellationToken::new(),
    }
}

fn user(text: &str) -> Message {
    Message::User(UserMessage::new(text, Vec::new()))
}

fn result(call: &ToolCall, text: &str, is_error: bool) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: vec![ContentBlock::text(text)],
        details: None,
        usage: None,
        is_error,
        timestamp: 0,
    })
}

async fn answer(request: Request) -> (Vec<AssistantEvent>, AssistantMessage) {
    let mut stream = DemoApi.stream(request);
    let mut events = Vec::new();
    loop {
        match stream.next().await.unwrap() {
            StreamItem::Event { event, .. } => events.push(event),
            StreamItem::Done(message) => return (events, Arc::unwrap_or_clone(message)),
        }
    }
}

fn steps(prompt: &str) -> Value {
    let steps = parse_steps(prompt);
    json!(
        steps
            .iter()
            .map(|step| json!([step.tool, step.arguments]))
            .collect::<Vec<_>>()
    )
}

#[test]
fn commands_are_tool_calls() {
    for (prompt, expected) in [
        (
            "run `ls -l | wc`",
            json!([["bash", {"command": "ls -l | wc"}]]),
        ),
        (
            "run `a, then b and c`",
            json!([["bash", {"command": "a, then b and c"}]]),
        ),
        ("$ make", json!([["bash", {"command": "make"}]])),
        (
            "List the files here, then read README.md",
            json!([["ls", {"path": "."}], ["read", {"path": "README.md"}]]),
        ),
        ("list the files in src", json!([["ls", {"path": "src"}]])),
        (
            "read a.txt\nread 'b c.txt'",
            json!([["read", {"path": "a.txt"}], ["read", {"path": "b c.txt"}]]),
        ),
        (
            "write hello world to hello.txt",
            json!([["write", {"path": "hello.txt", "content": "hello world"}]]),
        ),
        (
            "replace hello with good bye in hello.txt",
            json!([["edit", {"path": "hello.txt", "edits": [{"oldText": "hello", "newText": "good bye"}]}]]),
        ),
        (
            "use the count tool with {\"a\": [1, 2]}",
            json!([["count", {"a": [1, 2]}]]),
        ),
        ("call count", json!([["count", {}]])),
        ("run", json!([])),
        ("What is this and why?", json!([])),
        ("", json!([])),
    ] {
        assert_eq!(steps(prompt), expected, "{prompt}");
    }
    assert_eq!(steps(&"read a\n".repeat(2_000)), json!([]));
}

#[tokio::test]
async fn calls_are_streamed_and_their_results_shown() {
    let prompt = user("list the files in it's and read a.txt");
    let (events, message) = answer(request(vec![prompt.clone()], &["read", "bash"])).await;
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    assert!(message.usage.input > 0 && message.usage.output > 0);
    let calls: Vec<ToolCall> = message.tool_calls().cloned().collect();
    assert_eq!(
        calls[0].arguments,
        json!({"command": r"ls -Ap -- 'it'\''s'"})
    );
    assert_eq!(calls[1].arguments, json!({"path": "a.txt"}));
    let deltas = events
        .iter()
        .filter(|event| matches!(event, AssistantEvent::ToolCallDelta { .. }));
    assert!(deltas.count() > 2);

    let mut messages = vec![prompt, Message::Assistant(message)];
    messages.push(result(&calls[0], "a.txt\n", false));
    messages.push(result(&calls[1], &"```\nline\n".repeat(20), true));
    let (_, message) = answer(request(messages, &["read", "bash"])).await;
    let text: String = message.texts().collect();
    assert!(
        text.starts_with("`bash` gave:\n\n```\na.txt\n```\n\n`read` failed:\n\n````\n"),
        "{text}"
    );
    assert!(text.ends_with("\n(28 more lines)\n````"), "{text}");
    assert_eq!(message.stop_reason, StopReason::Stop);
}

#[tokio::test]
async fn other_prompts_are_introduced_and_summarised() {
    let (_, message) = answer(request(vec![user("Why?")], &[])).await;
    assert!(
        message
            .texts()
            .collect::<String>()
            .contains("not a language model")
    );
    let (_, message) = answer(request(vec![user("read a")], &["bash"])).await;
    assert_eq!(
        message.texts().collect::<String>(),
        "I would need the tool `read`, which I was not given."
    );
    let conversation = "<conversation>\n[User]: go\n[Assistant]: gone\n</conversation>";
    let (_, message) = answer(request(vec![user(conversation)], &[])).await;
    assert!(message.texts().collect::<String>().ends_with("asked\n- go"));
}

#[tokio::test]
async fn an_answer_ends_when_it_is_cancelled() {
    let request = request(vec![user("hello")], &[]);
    let cancel = request.cancel.clone();
    let mut stream = DemoApi.stream(request);
    stream.next().await.unwrap();
    cancel.cancel();
    let mut last = None;
    while let Some(item) = stream.next().await {
        last = Some(item);
    }
    let Some(StreamItem::Done(message)) = last else {
        panic!("the stream ended without a message");
    };
    assert_eq!(message.stop_reason, StopReason::Aborted);
}
