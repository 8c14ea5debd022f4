//! Mistakes of models and servers do no damage: truncated tool calls do not run, wrong escapes stay
//! as they are, and characters that arrive in halves are whole in files.

use std::fs;

use model_server::{Answer, Api, ModelServer};
use serde_json::{Value, json};

use crate::support::{DEMO_NO_SESSION, Home, Rpc, blocks, message_end, text_of};

/// Placeholders for `\ud83d` and `\ude00`, the halves of 😀, which a Rust string cannot hold.
const HIGH: &str = "\u{e83d}";
const LOW: &str = "\u{ee00}";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    Calls,
    Limit,
}

/// An answer with these calls, each a name and the parts of its arguments' text.
fn calls(api: Api, calls: &[(&str, Vec<&str>)], stop: Stop) -> Answer {
    let events = match api {
        Api::OpenAiCompletions => chat(calls, stop),
        Api::AnthropicMessages => anthropic(calls, stop),
        Api::OpenAiResponses => responses(calls, stop),
    };
    raw(&events)
}

fn raw(events: &[Value]) -> Answer {
    let events = events.iter().map(|event| {
        let name = event["type"]
            .as_str()
            .map(|name| format!("event: {name}\n"));
        let data = event.to_string();
        let data = data.replace(HIGH, "\\ud83d").replace(LOW, "\\ude00");
        format!("{}data: {data}\n\n", name.unwrap_or_default())
    });
    Answer::malformed(events.collect::<String>())
}

fn chat(calls: &[(&str, Vec<&str>)], stop: Stop) -> Vec<Value> {
    let piece = |piece: Value| json!({"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]});
    let mut events = Vec::new();
    for (index, (name, pieces)) in calls.iter().enumerate() {
        let function = json!({"name": name, "arguments": ""});
        events.push(piece(
            json!({"index": index, "id": format!("t{index}"), "function": function}),
        ));
        for text in pieces {
            events.push(piece(
                json!({"index": index, "function": {"arguments": text}}),
            ));
        }
    }
    let reason = if stop == Stop::Limit {
        "length"
    } else {
        "tool_calls"
    };
    events
        .push(json!({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
    events
}

fn anthropic(calls: &[(&str, Vec<&str>)], stop: Stop) -> Vec<Value> {
    let mut events = vec![json!({"type": "message_start", "message": {"id": "m", "usage": {}}})];
    for (index, (name, pieces)) in calls.iter().enumerate() {
        let call =
            json!({"type": "tool_use", "id": format!("t{index}"), "name": name, "input": {}});
        events.push(json!({"type": "content_block_start", "index": index, "content_block": call}));
        for text in pieces {
            let delta = json!({"type": "input_json_delta", "partial_json": text});
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let reason = if stop == Stop::Limit {
        "max_tokens"
    } else {
        "tool_use"
    };
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {}}));
    events.push(json!({"type": "message_stop"}));
    events
}

fn responses(calls: &[(&str, Vec<&str>)], stop: Stop) -> Vec<Value> {
    let mut events = Vec::new();
    for (index, (name, pieces)) in calls.iter().enumerate() {
        let id = format!("t{index}");
        let item = json!({"type": "function_call", "id": "fc", "call_id": id, "name": name});
        events.push(
            json!({"type": "response.output_item.added", "output_index": index, "item": item}),
        );
        for text in pieces {
            events.push(json!({"type": "response.function_call_arguments.delta",
                "output_index": index, "delta": text}));
        }
        events.push(
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        );
    }
    let response = match stop {
        Stop::Calls => json!({"id": "r", "status": "completed"}),
        Stop::Limit => json!({"id": "r", "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"}}),
    };
    let kind = if stop == Stop::Limit {
        "response.incomplete"
    } else {
        "response.completed"
    };
    events.push(json!({"type": kind, "response": response}));
    events
}

/// The tool results of a run, in the order of their calls.
fn results(events: &[Value]) -> Vec<Value> {
    let ends = events
        .iter()
        .filter(|event| message_end("toolResult")(event));
    let mut results: Vec<Value> = ends.map(|event| event["message"].clone()).collect();
    results.sort_by_key(|result| result["toolCallId"].to_string());
    results
}

async fn started(api: Api) -> (ModelServer, Home, Rpc) {
    let server = ModelServer::start().await;
    let home = Home::with_api(&server, api);
    let rpc = home.rpc(&[]);
    (server, home, rpc)
}

#[tokio::test]
async fn a_truncated_call_does_not_run() {
    for api in Api::ALL {
        let (server, home, mut rpc) = started(api).await;
        let kept = home.file("kept.txt", "all of it\n");
        let bash = ("bash", vec!["{\"command\":\"echo ran >> ran.txt\"}"]);
        let write = (
            "write",
            vec!["{\"path\":\"kept.txt\",\"content\":\"half of", " it"],
        );
        let danger = (
            "bash",
            vec!["{\"command\":\"echo first > ran2.txt && rm -rf /a/b"],
        );
        let ran = || fs::read_to_string(home.cwd().join("ran.txt")).unwrap_or_default();
        for (stop, runs) in [(Stop::Limit, ""), (Stop::Calls, "ran\n")] {
            let requested = server.requests().len();
            server.push(calls(
                api,
                &[bash.clone(), write.clone(), danger.clone()],
                stop,
            ));
            server.push(Answer::text("I see."));
            let events = rpc.run("do it").await;
            let results = results(&events);
            assert_eq!(results.len(), 3, "{api:?} {stop:?}: {results:#?}");
            assert_eq!(ran(), runs, "{api:?} {stop:?}");
            assert_eq!(results[0]["isError"], stop == Stop::Limit, "{results:#?}");
            for (result, cut) in results[1..].iter().zip(["half of it", "rm -rf /a/b"]) {
                let text = text_of(result);
                assert_eq!(result["isError"], true, "{text}");
                assert!(text.contains("did not run"), "{text}");
                assert!(text.contains("cut off at character"), "{text}");
                assert!(text.contains(cut), "{text}");
                assert_eq!(
                    text.contains("output token limit"),
                    stop == Stop::Limit,
                    "{text}"
                );
            }
            // The run continues, and the model gets the reason.
            let requests = server.requests();
            assert_eq!(requests.len(), requested + 2, "{api:?} {stop:?}");
            let request = requests[requested + 1].body.to_string();
            assert!(request.contains("cut off at character"), "{request}");
        }
        assert_eq!(fs::read_to_string(kept).unwrap(), "all of it\n");
        assert!(!home.cwd().join("ran2.txt").exists(), "{api:?}");
        assert_eq!(rpc.close().await.code(), Some(0));
        let answers = home.entries();
        let kept_calls: Vec<&Value> = answers
            .iter()
            .filter_map(|entry| entry["message"]["content"].as_array())
            .flatten()
            .filter(|block| block["type"] == "toolCall")
            .collect();
        assert_eq!(kept_calls.len(), 6, "{api:?}");
        for call in [1, 2, 4, 5].map(|index| kept_calls[index]) {
            assert_eq!(call["arguments"], json!({}), "{call}");
            let error = call["argumentsError"].as_str().unwrap_or_default();
            assert!(error.contains("Received arguments:\n{\""), "{call}");
        }
    }
}

#[tokio::test]
async fn wrong_escapes_are_written_as_the_model_meant_them() {
    for api in Api::ALL {
        let (server, home, mut rpc) = started(api).await;
        let write = "{\"path\":\"o.txt\",\"content\":\"re.match(r\\\"\\d+\\\", s)\nend\\.\"}";
        server.push(calls(api, &[("write", vec![write])], Stop::Calls));
        let edit = "{\"path\":\"o.txt\",\"edits\":[{\"oldText\":\"\\d+\",\"newText\":\"\\w*\"}]}";
        server.push(calls(api, &[("edit", vec![edit])], Stop::Calls));
        server.push(Answer::text("done"));
        let events = rpc.run("write").await;
        for result in results(&events) {
            assert_eq!(result["isError"], false, "{result}");
        }
        let written = fs::read_to_string(home.cwd().join("o.txt")).unwrap();
        assert_eq!(written, "re.match(r\"\\w*\", s)\nend\\.", "{api:?}");
    }
}

#[tokio::test]
async fn unreadable_arguments_are_refused_with_their_position() {
    let (server, home, mut rpc) = started(Api::OpenAiCompletions).await;
    let texts = [
        "{\"path\":\"o.txt\",\"content\":\"a\",}",
        "{\"path\":\"o.txt\" \"content\":\"a\"}",
        "{\"path\":\"o.txt\",\"content\":\"a\"}{}",
        "[\"o.txt\",\"a\"]",
    ];
    for text in texts {
        server.push(calls(
            Api::OpenAiCompletions,
            &[("write", vec![text])],
            Stop::Calls,
        ));
        server.push(Answer::text("I see."));
        let events = rpc.run("write").await;
        let results = results(&events);
        let output = text_of(&results[0]);
        assert_eq!(results[0]["isError"], true, "{output}");
        assert!(
            output.contains("wrong at character") || text.starts_with('['),
            "{output}"
        );
        assert!(output.ends_with(text), "{output}");
    }
    assert!(!home.cwd().join("o.txt").exists());
}

#[tokio::test]
async fn characters_in_halves_are_whole_in_files_and_sessions() {
    for api in Api::ALL {
        let (server, home, mut rpc) = started(api).await;
        let (first, last) = (
            format!("{{\"path\":\"o.txt\",\"content\":\"a{HIGH}"),
            format!("{LOW}b\\ud83d"),
        );
        let pieces = vec![first.as_str(), last.as_str(), "\\ude00c\"}"];
        server.push(calls(api, &[("write", pieces)], Stop::Calls));
        server.push(Answer::text("done"));
        rpc.run("write").await;
        let written = fs::read_to_string(home.cwd().join("o.txt")).unwrap();
        assert_eq!(written, "a😀b😀c", "{api:?}");
        for line in rpc.raw_lines() {
            assert!(!line.contains('\u{fffd}'), "{api:?}: {line}");
        }
        assert_eq!(rpc.close().await.code(), Some(0));
        let session = fs::read_to_string(home.session()).unwrap();
        assert!(!session.contains('\u{fffd}'), "{api:?}");
    }
}

#[tokio::test]
async fn a_stream_without_finish_reason_is_retried() {
    let (server, _home, mut rpc) = started(Api::OpenAiCompletions).await;
    for body in ["data: [DONE]\n\n", ""] {
        server.push(Answer::malformed(body));
    }
    server.push(Answer::text("here"));
    rpc.ok(crate::support::prompt("hello")).await;
    for _ in 0..2 {
        let retry = rpc.event("auto_retry_start").await;
        let error = retry["errorMessage"].as_str().unwrap_or_default();
        assert!(error.contains("ended without a finish_reason"), "{retry}");
    }
    rpc.event("auto_retry_end").await;
    rpc.event("agent_end").await;
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_completion_in_one_piece_is_the_answer() {
    let (server, home, mut rpc) = started(Api::OpenAiCompletions).await;
    let whole = |message: Value, reason: &str| {
        let body = json!({"id": "c", "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}});
        Answer::malformed(body.to_string()).with_header("content-type", "application/json")
    };
    let function = json!({"name": "write", "arguments": "{\"path\":\"o.txt\",\"content\":\"x\"}"});
    let call = json!({"id": "t", "type": "function", "function": function});
    server.push(whole(
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        "tool_calls",
    ));
    let parts = json!([{"type": "text", "text": "all "}, {"type": "text", "text": "done"}]);
    server.push(whole(
        json!({"role": "assistant", "content": parts}),
        "stop",
    ));
    assert_eq!(rpc.answer_to("write").await, "all done");
    assert_eq!(fs::read_to_string(home.cwd().join("o.txt")).unwrap(), "x");
    // A complete call in a completion that reached the limit does not run, either.
    let function = json!({"name": "write", "arguments": "{\"path\":\"p.txt\",\"content\":\"x\"}"});
    let call = json!({"id": "t2", "type": "function", "function": function});
    server.push(whole(
        json!({"role": "assistant", "tool_calls": [call]}),
        "length",
    ));
    server.push(whole(
        json!({"role": "assistant", "content": "I see."}),
        "stop",
    ));
    assert_eq!(rpc.answer_to("write").await, "I see.");
    assert!(!home.cwd().join("p.txt").exists());
}

/// Streams a call of `bash` in the way that the prompt names.
const PROVIDER: &str = include_str!("fixtures/model-mistakes/provider.ts");

#[tokio::test]
async fn truncated_calls_of_an_extensions_stream_do_not_run() {
    let home = Home::bare();
    home.settings(json!({}));
    home.extension("mine.ts", PROVIDER);
    let mut rpc = home.rpc(&["--provider", "mine", "--model", "m"]);
    for (how, output) in [
        ("limit", "output token limit"),
        ("partial", "cut off at character"),
        ("text", "cut off at character"),
        ("open", "cut off at character"),
        ("named", "named by the provider"),
        ("fine", ""),
    ] {
        let events = rpc.run(how).await;
        let results = results(&events);
        assert_eq!(results.len(), 1, "{how}: {results:?}");
        assert_eq!(results[0]["isError"], how != "fine", "{how}: {results:?}");
        let text = blocks(&results[0]["content"], "text");
        assert!(text.contains(output), "{how}: {text}");
    }
    let ran = fs::read_to_string(home.cwd().join("ran.txt")).unwrap();
    assert_eq!(ran, "fine\n");
    assert_eq!(rpc.close().await.code(), Some(0));
}

/// The loop and the proxy of pi-agent-core, which run in JavaScript.
const LOOP: &str = include_str!("fixtures/model-mistakes/loop.ts");

#[tokio::test]
async fn the_javascript_loop_does_not_run_truncated_calls() {
    let home = Home::bare();
    home.settings(json!({}));
    home.extension("loop.ts", LOOP);
    let mut rpc = home.rpc(&DEMO_NO_SESSION);
    rpc.ok(crate::support::prompt("/try")).await;
    let notification = rpc
        .wait("the outcome", |line| line["method"] == "notify")
        .await;
    let outcome: Value = serde_json::from_str(notification["message"].as_str().unwrap()).unwrap();
    assert_eq!(outcome["ran"], 1, "{outcome}");
    let results = outcome["results"].as_array().unwrap();
    for (result, output) in results
        .iter()
        .zip(["output token limit", "cut here", "false: ran"])
    {
        assert!(result.as_str().unwrap().contains(output), "{outcome}");
    }
    assert_eq!(results.len(), 3, "{outcome}");
    assert_eq!(outcome["cut"], json!({"args": {}, "cut": true}));
    assert_eq!(outcome["whole"], json!({"args": {"command": "\\d"}}));
    assert_eq!(rpc.close().await.code(), Some(0));
}
