//! Checks every wire API with mistakes of models and servers: tool calls that are cut off,
//! characters that come in halves, servers that do not stream. Bedrock frames its events
//! differently; `bedrock/tests/mod.rs` has these tests for it.

use serde_json::{Value, json};

use super::wire_api;
use crate::message::{AssistantBlock, AssistantMessage, StopReason, ToolCall};
use crate::stream::AssistantEvent;
use crate::testing::{Reply, Server, collect, request, user};

/// Placeholders for `\ud83d` and `\ude00`, the halves of 😀, which Rust strings cannot contain.
pub(crate) const HIGH: char = '\u{e83d}';
pub(crate) const LOW: char = '\u{ee00}';

pub(crate) fn with_halves(json: &Value) -> String {
    let json = json.to_string();
    json.replace(HIGH, "\\ud83d").replace(LOW, "\\ude00")
}

const CHAT: &str = "openai-completions";
const MISTRAL: &str = "mistral-conversations";
const ANTHROPIC: &str = "anthropic-messages";
const RESPONSES: &str = "openai-responses";
const CODEX: &str = "openai-codex-responses";
const AZURE: &str = "azure-openai-responses";
const GOOGLE: &str = "google-generative-ai";
const GEMINI_CLI: &str = "google-gemini-cli";

/// APIs that stream the arguments of calls as text.
const STREAMING_ARGUMENTS: [&str; 6] = [CHAT, MISTRAL, ANTHROPIC, RESPONSES, CODEX, AZURE];
const ALL: [&str; 8] = [
    CHAT, MISTRAL, ANTHROPIC, RESPONSES, CODEX, AZURE, GOOGLE, GEMINI_CLI,
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    Done,
    Calls,
    Limit,
}

/// The parts of an answer, each in the pieces in which it comes.
#[derive(Clone, Default)]
struct Script {
    thinking: Vec<&'static str>,
    text: Vec<&'static str>,
    calls: Vec<Vec<String>>,
}

fn call_name(index: usize) -> (String, String) {
    (format!("call0000{index}"), format!("tool{index}"))
}

fn chat(script: &Script, stop: Stop) -> Vec<Value> {
    let chunk = |delta: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta}]});
    let mut events = Vec::new();
    for piece in &script.thinking {
        events.push(chunk(json!({"reasoning_content": piece})));
    }
    for piece in &script.text {
        events.push(chunk(json!({"content": piece})));
    }
    for (index, pieces) in script.calls.iter().enumerate() {
        let (id, name) = call_name(index);
        let function = json!({"name": name, "arguments": ""});
        let first = json!({"index": index, "id": id, "function": function});
        events.push(chunk(json!({"tool_calls": [first]})));
        for piece in pieces {
            let piece = json!({"index": index, "function": {"arguments": piece}});
            events.push(chunk(json!({"tool_calls": [piece]})));
        }
    }
    let reason = match stop {
        Stop::Done => "stop",
        Stop::Calls => "tool_calls",
        Stop::Limit => "length",
    };
    let last = json!({"index": 0, "delta": {}, "finish_reason": reason});
    events.push(json!({"id": "c", "choices": [last]}));
    events
}

fn mistral(script: &Script, stop: Stop) -> Vec<Value> {
    let mut events = chat(script, stop);
    for event in &mut events {
        let delta = &mut event["choices"][0]["delta"];
        if let Some(thought) = delta.get("reasoning_content").cloned() {
            let thought = json!([{"type": "text", "text": thought}]);
            *delta = json!({"content": [{"type": "thinking", "thinking": thought}]});
        }
    }
    events
}

fn anthropic(script: &Script, stop: Stop) -> Vec<Value> {
    let mut events = vec![json!({"type": "message_start", "message": {"id": "m", "usage": {}}})];
    let mut index = 0;
    let mut block = |block: Value, deltas: Vec<Value>| {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        for delta in deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
        index += 1;
    };
    let deltas = |kind: &str, member: &str, pieces: &[&str]| -> Vec<Value> {
        let deltas = pieces
            .iter()
            .map(|piece| json!({"type": kind, member: piece}));
        deltas.collect()
    };
    if !script.thinking.is_empty() {
        let start = json!({"type": "thinking", "thinking": "", "signature": "s"});
        block(
            start,
            deltas("thinking_delta", "thinking", &script.thinking),
        );
    }
    if !script.text.is_empty() {
        let start = json!({"type": "text", "text": ""});
        block(start, deltas("text_delta", "text", &script.text));
    }
    for (number, pieces) in script.calls.iter().enumerate() {
        let (id, name) = call_name(number);
        let start = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        block(start, deltas("input_json_delta", "partial_json", &pieces));
    }
    let reason = match stop {
        Stop::Done => "end_turn",
        Stop::Calls => "tool_use",
        Stop::Limit => "max_tokens",
    };
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {}}));
    events.push(json!({"type": "message_stop"}));
    events
}

/// Leaves out the whole texts that come at the end of an item, because they would hide how the
/// pieces are joined.
fn responses(script: &Script, stop: Stop) -> Vec<Value> {
    let mut events = Vec::new();
    let mut index = 0;
    let mut item = |item: Value, kind: &str, pieces: &[&str]| {
        events.push(
            json!({"type": "response.output_item.added", "output_index": index, "item": item}),
        );
        for piece in pieces {
            events.push(json!({"type": kind, "output_index": index, "delta": piece}));
        }
        events.push(
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        );
        index += 1;
    };
    if !script.thinking.is_empty() {
        let kind = "response.reasoning_summary_text.delta";
        item(
            json!({"type": "reasoning", "id": "rs"}),
            kind,
            &script.thinking,
        );
    }
    if !script.text.is_empty() {
        let kind = "response.output_text.delta";
        item(json!({"type": "message", "id": "msg"}), kind, &script.text);
    }
    for (number, pieces) in script.calls.iter().enumerate() {
        let (id, name) = call_name(number);
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let call = json!({"type": "function_call", "id": "fc", "call_id": id, "name": name});
        item(call, "response.function_call_arguments.delta", &pieces);
    }
    let response = match stop {
        Stop::Done | Stop::Calls => json!({"id": "r", "status": "completed"}),
        Stop::Limit => json!({"id": "r", "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"}}),
    };
    let kind = match stop {
        Stop::Limit => "response.incomplete",
        _ => "response.completed",
    };
    events.push(json!({"type": kind, "response": response}));
    events
}

fn google(script: &Script, stop: Stop) -> Vec<Value> {
    let chunk = |part: Value| json!({"candidates": [{"content": {"parts": [part]}}]});
    let mut events = Vec::new();
    for piece in &script.thinking {
        events.push(chunk(json!({"text": piece, "thought": true})));
    }
    for piece in &script.text {
        events.push(chunk(json!({"text": piece})));
    }
    for (index, pieces) in script.calls.iter().enumerate() {
        let (id, name) = call_name(index);
        let args: Value = serde_json::from_str(&pieces.concat()).unwrap();
        events.push(chunk(
            json!({"functionCall": {"id": id, "name": name, "args": args}}),
        ));
    }
    let reason = match stop {
        Stop::Done | Stop::Calls => "STOP",
        Stop::Limit => "MAX_TOKENS",
    };
    events.push(json!({"candidates": [{"finishReason": reason}]}));
    events
}

fn events_of(wire: &str, script: &Script, stop: Stop) -> Vec<Value> {
    match wire {
        CHAT => chat(script, stop),
        MISTRAL => mistral(script, stop),
        ANTHROPIC => anthropic(script, stop),
        RESPONSES | CODEX | AZURE => responses(script, stop),
        GOOGLE => google(script, stop),
        _ => {
            let events = google(script, stop).into_iter();
            events.map(|event| json!({ "response": event })).collect()
        }
    }
}

type Answered = (AssistantMessage, Vec<(AssistantEvent, AssistantMessage)>);

async fn answer_to(wire: &str, reply: Reply) -> Answered {
    let server = Server::start(vec![reply]).await;
    let mut request = request(wire, &server, vec![user("go")]);
    request.options.api_key = Some(match wire {
        // A token with the claim `{"https://api.openai.com/auth":{"chatgpt_account_id":"acc"}}`.
        CODEX => {
            "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjIn19.s"
                .into()
        }
        GEMINI_CLI => r#"{"token":"t","projectId":"p"}"#.into(),
        _ => "key".into(),
    });
    request.options.max_retries = Some(0);
    collect(wire_api(wire).unwrap().stream(request)).await
}

async fn answer(wire: &str, script: &Script, stop: Stop) -> Answered {
    let events = events_of(wire, script, stop);
    let chunks: Vec<String> = events
        .iter()
        .map(|event| {
            let name = event["type"]
                .as_str()
                .map(|name| format!("event: {name}\n"));
            format!(
                "{}data: {}\n\n",
                name.unwrap_or_default(),
                with_halves(event)
            )
        })
        .collect();
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
    answer_to(wire, Reply::events(&chunks)).await
}

fn calls_of(message: &AssistantMessage) -> Vec<ToolCall> {
    message.tool_calls().cloned().collect()
}

/// Cuts a text into pieces of `size` characters.
fn pieces(text: &str, size: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(size).map(String::from_iter).collect()
}

pub(crate) const WHOLE: &str =
    r#"{"path":"a\nb","edits":[{"x":1},{"smile":"\ud83d\ude00"}],"n":-1.5,"t":true}"#;

/// Returns byte lengths of prefixes that end in different kinds of positions.
pub(crate) fn cuts() -> Vec<usize> {
    (1..WHOLE.len())
        .filter(|cut| WHOLE.is_char_boundary(*cut))
        .collect()
}

#[tokio::test]
async fn a_cut_call_has_an_error_and_no_arguments() {
    for wire in STREAMING_ARGUMENTS {
        // One API is tested with all cuts; the others with cuts within a key, an escape, a pair,
        // and after a comma.
        let cuts = match wire {
            CHAT => cuts(),
            _ => vec![1, 4, 12, 14, 18, 19, 29, 49, 52, 55, 61, WHOLE.len() - 1],
        };
        for cut in cuts {
            for stop in [Stop::Calls, Stop::Limit] {
                let script = Script {
                    text: vec!["I do."],
                    calls: vec![pieces("{\"whole\":1}", 4), pieces(&WHOLE[..cut], 5)],
                    ..Script::default()
                };
                let (message, _) = answer(wire, &script, stop).await;
                let place = format!("{wire} {stop:?} {}", &WHOLE[..cut]);
                let expected = match stop {
                    Stop::Limit => StopReason::Length,
                    _ => StopReason::ToolUse,
                };
                assert_eq!(message.stop_reason, expected, "{place}: {message:?}");
                let [whole, cut_call] = &calls_of(&message)[..] else {
                    panic!("{place}: {message:?}")
                };
                let known = (&whole.arguments, &whole.arguments_error);
                assert_eq!(known, (&json!({"whole": 1}), &None), "{place}");
                assert_eq!(cut_call.arguments, json!({}), "{place}");
                let error = cut_call.arguments_error.as_deref().unwrap_or_default();
                assert!(
                    error.contains(&format!("cut off at character {cut}")),
                    "{place}: {error}"
                );
                assert!(error.ends_with(&WHOLE[..cut]), "{place}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn complete_calls_survive_an_output_limit() {
    for wire in ALL {
        let script = Script {
            calls: vec![pieces("{\"a\":1}", 3), pieces("{\"b\":2}", 7)],
            ..Script::default()
        };
        let (message, _) = answer(wire, &script, Stop::Limit).await;
        assert_eq!(message.stop_reason, StopReason::Length, "{wire}");
        let arguments: Vec<Value> = message
            .tool_calls()
            .map(|call| call.arguments.clone())
            .collect();
        assert_eq!(arguments, [json!({"a": 1}), json!({"b": 2})], "{wire}");
    }
}

#[tokio::test]
async fn a_call_that_was_never_ended_has_no_arguments() {
    for wire in [ANTHROPIC, RESPONSES, CODEX] {
        for start in ["", "{\"a\":"] {
            let script = Script {
                calls: vec![vec![start.to_owned()]],
                ..Script::default()
            };
            let mut events = events_of(wire, &script, Stop::Calls);
            let ends = ["content_block_stop", "response.output_item.done"];
            events.retain(|event| !ends.iter().any(|end| event["type"] == *end));
            let (message, steps) = answer_to(wire, Reply::typed_events(&events)).await;
            assert_eq!(message.stop_reason, StopReason::ToolUse, "{wire}");
            let calls = calls_of(&message);
            assert!(
                calls[0].arguments_error.is_some(),
                "{wire} {start:?}: {message:?}"
            );
            let (last, _) = steps.last().unwrap();
            assert!(
                matches!(last, AssistantEvent::ToolCallEnd { .. }),
                "{wire}: {last:?}"
            );
        }
    }
}

#[tokio::test]
async fn wrong_escapes_and_raw_line_ends_are_repaired() {
    let sent = "{\"content\":\"re.match(r\\\"\\d+\\\", s)\n\\u12\"}";
    let expected = json!({"content": "re.match(r\"\\d+\", s)\n\\u12"});
    for wire in STREAMING_ARGUMENTS {
        for size in [1, 3, 100] {
            let script = Script {
                calls: vec![pieces(sent, size)],
                ..Script::default()
            };
            let (message, steps) = answer(wire, &script, Stop::Calls).await;
            let calls = calls_of(&message);
            let known = (&calls[0].arguments, &calls[0].arguments_error);
            assert_eq!(known, (&expected, &None), "{wire} {size}");
            // The arguments that were shown last equal the final ones.
            let shown = steps
                .iter()
                .rev()
                .find(|(step, _)| matches!(step, AssistantEvent::ToolCallDelta { .. }));
            let AssistantBlock::ToolCall(shown) = &shown.unwrap().1.content[0] else {
                panic!("{wire}: {shown:?}")
            };
            assert_eq!(shown.arguments, expected, "{wire} {size}");
        }
    }
}

#[tokio::test]
async fn halves_of_characters_are_joined_and_never_shown() {
    for wire in ALL {
        let mut script = Script {
            thinking: vec!["a\u{e83d}", "\u{ee00}b"],
            text: vec!["c\u{e83d}", "\u{ee00}\u{e83d}", "\u{ee00}"],
            ..Script::default()
        };
        let streams = STREAMING_ARGUMENTS.contains(&wire);
        if streams {
            let arguments = [
                // One half is raw, the other an escape in the text of the arguments.
                ["{\"smile\":\"d", &HIGH.to_string()].concat(),
                [&LOW.to_string(), "e", "\\ud83d\\"].concat(),
                "ude00\"}".to_owned(),
            ];
            script.calls = vec![arguments.to_vec()];
        }
        let (message, steps) = answer(wire, &script, Stop::Calls).await;
        let content = |message: &AssistantMessage| serde_json::to_string(&message.content).unwrap();
        let whole = content(&message);
        for expected in ["\"a😀b\"", "\"c😀😀\""] {
            assert!(whole.contains(expected), "{wire}: {whole}");
        }
        if streams {
            assert_eq!(
                calls_of(&message)[0].arguments,
                json!({"smile": "d😀e😀"}),
                "{wire}"
            );
        }
        for (step, partial) in &steps {
            let shown = format!("{step:?} {}", content(partial));
            assert!(!shown.contains('\u{fffd}'), "{wire}: {shown}");
        }
        let deltas: String = steps
            .iter()
            .filter_map(|(step, _)| match step {
                AssistantEvent::TextDelta { delta, .. } => Some(delta.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(deltas, "c😀😀", "{wire}");
    }
}

#[tokio::test]
async fn a_half_that_stays_alone_is_one_replacement_character() {
    for wire in ALL {
        let script = Script {
            thinking: vec!["a\u{e83d}"],
            text: vec!["b\u{e83d}", "c", "\u{ee00}", "d\u{e83d}"],
            ..Script::default()
        };
        let (message, _) = answer(wire, &script, Stop::Done).await;
        let content = serde_json::to_string(&message.content).unwrap();
        for expected in ["\"a\u{fffd}\"", "\"b\u{fffd}c\u{fffd}d\u{fffd}\""] {
            assert!(content.contains(expected), "{wire}: {content}");
        }
    }
}

#[tokio::test]
async fn a_stream_without_an_end_is_an_error_that_is_tried_again() {
    for wire in ALL {
        for body in [
            "",
            "data: [DONE]\n\n",
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        ] {
            // The other APIs have no such marks, and report an unknown event.
            if !body.is_empty() && !matches!(wire, CHAT | MISTRAL | ANTHROPIC | RESPONSES) {
                continue;
            }
            let (message, _) = answer_to(wire, Reply::events(&[body])).await;
            assert_eq!(
                message.stop_reason,
                StopReason::Error,
                "{wire} {body:?}: {message:?}"
            );
            let error = message.error_message.unwrap_or_default();
            assert!(
                crate::classify::is_retryable(&error),
                "{wire} {body:?}: {error}"
            );
        }
    }
}

fn whole_answers() -> Vec<(&'static str, Value)> {
    let chat = json!({"id": "c", "object": "chat.completion", "choices": [{"index": 0,
        "message": {"role": "assistant", "content": "hello", "tool_calls": [
            {"id": "call00001", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}}]},
        "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}});
    let response = json!({"id": "r", "object": "response", "status": "completed", "output": [
        {"type": "message", "id": "msg", "content": [{"type": "output_text", "text": "hello"}]},
        {"type": "function_call", "id": "fc", "call_id": "call00001", "name": "read", "arguments": "{\"path\":\"a\"}"}],
        "usage": {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}});
    let google = json!({"candidates": [{"content": {"parts": [{"text": "hello"},
        {"functionCall": {"id": "call00001", "name": "read", "args": {"path": "a"}}}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}});
    let anthropic = json!({"type": "message", "id": "m", "stop_reason": "tool_use", "content": [
        {"type": "text", "text": "hello"},
        {"type": "tool_use", "id": "call00001", "name": "read", "input": {"path": "a"}}],
        "usage": {"input_tokens": 7, "output_tokens": 3}});
    vec![
        (CHAT, chat.clone()),
        (MISTRAL, chat),
        (RESPONSES, response.clone()),
        (AZURE, response),
        (ANTHROPIC, anthropic),
        (GOOGLE, google.clone()),
        (GOOGLE, json!([google])),
        (GEMINI_CLI, json!({"response": google})),
    ]
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    for (wire, body) in whole_answers() {
        for text in [body.to_string(), format!("{body:#}\n")] {
            let reply = Reply::bytes(&[text.as_bytes()]).header("content-type", "application/json");
            let (message, steps) = answer_to(wire, reply).await;
            let shown = format!("{wire}: {message:?}");
            assert_eq!(message.stop_reason, StopReason::ToolUse, "{shown}");
            assert_eq!(message.texts().collect::<String>(), "hello", "{shown}");
            assert_eq!(
                calls_of(&message)[0].arguments,
                json!({"path": "a"}),
                "{shown}"
            );
            assert!(calls_of(&message)[0].id.starts_with("call00001"), "{shown}");
            assert_eq!(
                (message.usage.input, message.usage.output),
                (7, 3),
                "{shown}"
            );
            let is_text = |step: &AssistantEvent| matches!(step, AssistantEvent::TextDelta { .. });
            let texts = steps.iter().filter(|(step, _)| is_text(step)).count();
            assert_eq!(texts, 1, "{shown}");
        }
    }
}

#[tokio::test]
async fn a_body_that_is_no_answer_is_shown() {
    for wire in ALL {
        for (body, expected) in [
            (r#"{"hello":"you"}"#, "did not answer with an event stream"),
            ("<html>busy</html>", "did not answer with an event stream"),
        ] {
            let (message, _) = answer_to(wire, Reply::bytes(&[body.as_bytes()])).await;
            let error = message.error_message.unwrap_or_default();
            assert!(
                error.contains(expected) && error.contains(body),
                "{wire}: {error}"
            );
        }
        let refusal = r#"{"error":{"message":"no such model"}}"#;
        let (message, _) = answer_to(wire, Reply::bytes(&[refusal.as_bytes()])).await;
        let error = message.error_message.unwrap_or_default();
        assert!(error.contains("no such model"), "{wire}: {error}");
    }
}
