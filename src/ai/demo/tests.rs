use std::collections::HashSet;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::message::{ContentBlock, Message, ToolResultMessage, UserMessage};
use crate::stream::{StreamOptions, ToolSpec};

const BUILT_IN: [&str; 4] = ["read", "bash", "edit", "write"];

/// A conversation with the demo.
struct Talk {
    messages: Vec<Message>,
    tools: Vec<ToolSpec>,
}

impl Talk {
    fn new(tools: &[&str]) -> Self {
        let spec = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            description: String::new(),
            parameters: json!({"type": "object"}),
        };
        Self {
            messages: Vec::new(),
            tools: tools.iter().map(spec).collect(),
        }
    }

    fn request(&self, cancel: CancellationToken) -> Request {
        Request {
            model: Arc::new(entry().models.remove(0)),
            system_prompt: Some("You are pi.".into()),
            messages: self.messages.clone(),
            tools: Some(self.tools.clone()),
            options: StreamOptions::default(),
            cancel,
        }
    }

    fn user(&mut self, text: &str) {
        let message = UserMessage::new(text, Vec::new());
        self.messages.push(Message::User(message));
    }

    fn result(&mut self, call: &ToolCall, text: &str, is_error: bool) {
        self.messages.push(Message::ToolResult(ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: vec![ContentBlock::text(text)],
            details: None,
            usage: None,
            is_error,
            timestamp: 0,
        }));
    }

    async fn answer(&mut self) -> (Vec<AssistantEvent>, AssistantMessage) {
        let mut stream = DemoApi.stream(self.request(CancellationToken::new()));
        let mut events = Vec::new();
        loop {
            match stream.next().await.unwrap() {
                StreamItem::Event { event, .. } => events.push(event),
                StreamItem::Done(message) => {
                    assert!(stream.next().await.is_none());
                    let message = Arc::unwrap_or_clone(message);
                    self.messages.push(Message::Assistant(message.clone()));
                    return (events, message);
                }
            }
        }
    }

    /// Returns the text and the calls of the answer to `text`.
    async fn send_prompt(&mut self, text: &str) -> (String, Vec<ToolCall>) {
        self.user(text);
        self.next_answer().await
    }

    async fn next_answer(&mut self) -> (String, Vec<ToolCall>) {
        let (_, message) = self.answer().await;
        let calls = message.tool_calls().cloned().collect();
        (message.texts().collect(), calls)
    }

    /// Returns the answer after the one tool call has returned `result`.
    async fn reply(&mut self, text: &str, result: &str, is_error: bool) -> String {
        let (_, calls) = self.send_prompt(text).await;
        assert_eq!(calls.len(), 1, "{calls:?}");
        self.result(&calls[0], result, is_error);
        let (answer, calls) = self.next_answer().await;
        assert_eq!(calls, []);
        answer
    }
}

#[tokio::test]
async fn tools_are_called_and_their_results_described() {
    let mut talk = Talk::new(&BUILT_IN);
    let (text, calls) = talk.send_prompt("list the files and read README.md").await;
    assert_eq!(text, "I'll list the files here and read `README.md`.");
    let made: Vec<(&str, &Value)> = calls
        .iter()
        .map(|c| (c.name.as_str(), &c.arguments))
        .collect();
    assert_eq!(
        made,
        [
            ("bash", &json!({"command": "ls -Ap -- '.'"})),
            ("read", &json!({"path": "README.md"})),
        ]
    );
    let ids: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), 2);

    // Results may come in any order.
    talk.result(&calls[1], "# Title\n\nText\n", false);
    talk.result(&calls[0], ".git/\nsrc/\nREADME.md\n", false);
    let (text, calls) = talk.next_answer().await;
    assert_eq!(
        text,
        "This folder has 2 folders and 1 file: `.git/`, `src/`, `README.md`.\n\n\
         `README.md` says:\n\n```\n# Title\n\nText\n```"
    );
    assert_eq!(calls, []);

    // The next prompt is treated as a new one.
    let (text, _) = talk.send_prompt("thanks").await;
    assert!(text.starts_with("Hello! I am pi's built-in demo: not a language model"));
}

#[tokio::test]
async fn each_kind_of_result_has_its_words() {
    let tools = ["read", "bash", "edit", "write", "ls", "grep", "todo"];
    let long: Vec<String> = (1..=13).map(|n| format!("line {n}")).collect();
    for (prompt, result, answer) in [
        (
            "list src",
            "(empty directory)",
            "`src` is empty.".to_owned(),
        ),
        (
            "list src",
            "a/\nb\n\n[500 entries limit reached]",
            "`src` has 1 folder and 1 file: `a/`, `b`.".to_owned(),
        ),
        (
            "run `true`",
            "(no output)",
            "`true` finished and printed nothing.".to_owned(),
        ),
        (
            "run `echo hi`",
            "hi\n",
            "`echo hi` printed:\n\n```\nhi\n```".to_owned(),
        ),
        (
            "read a.md",
            "a ``` b",
            "`a.md` says:\n\n````\na ``` b\n````".to_owned(),
        ),
        ("read a.md", "", "`a.md` is empty.".to_owned()),
        (
            "read a.md",
            &long.join("\n"),
            format!(
                "`a.md` begins:\n\n```\n{}\n```\n\n(3 more lines)",
                long[..10].join("\n")
            ),
        ),
        (
            "replace a with b in c.txt",
            "Successfully replaced 1 block(s) in c.txt.",
            "Done. Successfully replaced 1 block(s) in c.txt.".to_owned(),
        ),
        (
            "find needle in src",
            "No matches found",
            "I found no `needle`.".to_owned(),
        ),
        (
            "find needle",
            "a.rs:1: needle",
            "I found `needle`:\n\n```\na.rs:1: needle\n```".to_owned(),
        ),
        (
            "call todo {\"action\": \"list\"}",
            "No todos",
            "`todo` says:\n\n```\nNo todos\n```".to_owned(),
        ),
    ] {
        let mut talk = Talk::new(&tools);
        assert_eq!(talk.reply(prompt, result, false).await, answer, "{prompt}");
    }
}

#[tokio::test]
async fn failed_blocked_and_missing_tools_are_reported() {
    let mut talk = Talk::new(&BUILT_IN);
    let answer = talk.reply("run `rm -rf x`", "Blocked by user", true).await;
    assert_eq!(
        answer,
        "That did not work: `bash` on `rm -rf x` failed or was blocked.\n\n```\nBlocked by user\n```"
    );
    let mut talk = Talk::new(&["read"]);
    let (text, calls) = talk.send_prompt("read a.txt and write b to c.txt").await;
    assert_eq!(
        text,
        "I'll read `a.txt`.\n\nTo write `c.txt` I would need the `write` tool, which I was not given."
    );
    assert_eq!(calls.len(), 1);
}

#[tokio::test]
async fn a_queued_request_is_answered_with_the_first() {
    let mut talk = Talk::new(&BUILT_IN);
    let (_, calls) = talk.send_prompt("run `echo 1`").await;
    talk.result(&calls[0], "1", false);
    let (_, calls) = talk.send_prompt("and run `echo 2`").await;
    assert_eq!(calls[0].arguments, json!({"command": "echo 2"}));
    talk.result(&calls[0], "2", false);
    let (text, _) = talk.next_answer().await;
    assert_eq!(
        text,
        "`echo 1` printed:\n\n```\n1\n```\n\n`echo 2` printed:\n\n```\n2\n```"
    );
}

#[tokio::test]
async fn a_summary_can_be_requested() {
    let mut talk = Talk::new(&[]);
    let (text, _) = talk
        .send_prompt(
            "<conversation>\n[User]: read a.txt\n\n[Assistant]: no\n</conversation>\nSummarise.",
        )
        .await;
    assert_eq!(
        text,
        "## Goal\nA demonstration of the agent.\n\n## What the user asked\n- read a.txt"
    );
}

#[tokio::test]
async fn the_stream_has_the_events_of_a_real_api() {
    let mut talk = Talk::new(&BUILT_IN);
    talk.user("replace \"old text\" with 'new ünïcode text' in some/file.txt");
    let mut stream = DemoApi.stream(talk.request(CancellationToken::new()));
    let mut text = String::new();
    let mut json_text = String::new();
    let mut kinds = Vec::new();
    let mut seen_arguments = Vec::new();
    let mut done = None;
    while let Some(item) = stream.next().await {
        let (event, partial) = match item {
            StreamItem::Done(message) => {
                done = Some(message);
                continue;
            }
            StreamItem::Event { event, partial } => (event, partial.message()),
        };
        kinds.push(
            serde_json::to_value(&event).unwrap()["type"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
        match event {
            AssistantEvent::TextDelta {
                delta,
                content_index,
            } => {
                assert_eq!(content_index, 0);
                text.push_str(&delta);
                assert_eq!(partial.texts().collect::<String>(), text);
            }
            AssistantEvent::ToolCallDelta {
                delta,
                content_index,
            } => {
                assert_eq!(content_index, 1);
                json_text.push_str(&delta);
                let call = partial.tool_calls().next().unwrap();
                assert_eq!(call.partial_json.as_deref(), Some(json_text.as_str()));
                seen_arguments.push(call.arguments.clone());
            }
            _ => {}
        }
    }
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "start",
            "text_start",
            "text_delta",
            "text_end",
            "toolcall_start",
            "toolcall_delta",
            "toolcall_end",
        ]
    );
    let arguments = json!({
        "path": "some/file.txt",
        "edits": [{"oldText": "old text", "newText": "new ünïcode text"}],
    });
    assert_eq!(
        serde_json::from_str::<Value>(&json_text).unwrap(),
        arguments
    );
    seen_arguments.dedup();
    assert_eq!(
        seen_arguments,
        [
            json!({}),
            json!({"path": "some/file.txt"}),
            arguments.clone()
        ]
    );

    let done = done.unwrap();
    assert_eq!(done.stop_reason, StopReason::ToolUse);
    assert_eq!(
        (
            done.api.as_str(),
            done.provider.as_str(),
            done.model.as_str()
        ),
        ("demo", "demo", "demo")
    );
    let call = done.tool_calls().next().unwrap();
    assert_eq!(
        (call.partial_json.as_ref(), &call.arguments),
        (None, &arguments)
    );
    let usage = done.usage;
    assert!(usage.input > 20 && usage.output > 10, "{usage:?}");
    assert_eq!(usage.total_tokens, usage.input + usage.output);
    assert_eq!(usage.cost, Default::default());
}

#[tokio::test]
async fn cancelling_keeps_the_text_so_far() {
    let mut talk = Talk::new(&[]);
    talk.user("hello");
    let cancel = CancellationToken::new();
    let mut stream = DemoApi.stream(talk.request(cancel.clone()));
    let mut said = String::new();
    let done = loop {
        match stream.next().await.unwrap() {
            StreamItem::Event {
                event: AssistantEvent::TextDelta { delta, .. },
                ..
            } => {
                said.push_str(&delta);
                cancel.cancel();
            }
            StreamItem::Event { .. } => {}
            StreamItem::Done(message) => break message,
        }
    };
    assert_eq!(done.stop_reason, StopReason::Aborted);
    assert_eq!(done.error_message.as_deref(), Some("Request was aborted."));
    let text: String = done.texts().collect();
    assert!(text.starts_with(&said) && text.len() < 200, "{text}");
}

#[tokio::test]
async fn a_cancelled_stream_without_a_reader_ends() {
    let mut talk = Talk::new(&[]);
    talk.user("hello");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let mut stream = DemoApi.stream(talk.request(cancel));
    let first = stream.next().await.unwrap();
    assert!(
        matches!(first, StreamItem::Done(message) if message.stop_reason == StopReason::Aborted)
    );
}

#[test]
fn deltas_are_a_few_words_and_lose_nothing() {
    let text = "  one two\n\nthree four  five ";
    let deltas: Vec<&str> = by_words(text).collect();
    assert_eq!(deltas.concat(), text);
    assert_eq!(deltas, ["  one two\n\n", "three four  five "]);
}
