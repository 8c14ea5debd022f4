//! Tests of the rendered streams; all other tests that use the server show that a client
//! understands them.

use serde_json::{Value, json};

use super::*;
use crate::answer::{Answer, Kind};

/// The data of the events, parsed where it is JSON.
fn data(api: Api, answer: Answer) -> Vec<Value> {
    let Kind::Stream(reply) = answer.kind else {
        panic!("not a stream");
    };
    frames(api, &reply, 7, "m")
        .into_iter()
        .map(|frame| {
            let data = frame.text.trim_end().rsplit_once("data: ").unwrap().1;
            serde_json::from_str(data).unwrap_or_else(|_| json!(data))
        })
        .collect()
}

fn types(api: Api, answer: Answer) -> Vec<String> {
    let name = |data: Value| data["type"].as_str().unwrap().to_owned();
    data(api, answer).into_iter().map(name).collect()
}

#[test]
fn anthropic_messages_of_thinking_text_and_a_tool_call() {
    let answer = Answer::thinking("hm")
        .then_text("well")
        .then_tool("bash", json!({"command": "ls"}));
    let events = data(Api::AnthropicMessages, answer);
    let deltas: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "content_block_delta")
        .map(|event| &event["delta"])
        .collect();
    assert_eq!(
        deltas,
        [
            &json!({"type": "thinking_delta", "thinking": "hm"}),
            &json!({"type": "signature_delta", "signature": "signature-7-0"}),
            &json!({"type": "text_delta", "text": "well"}),
            &json!({"type": "input_json_delta", "partial_json": r#"{"command":""#}),
            &json!({"type": "input_json_delta", "partial_json": r#"ls"}"#}),
        ]
    );
    let end = &events[events.len() - 2];
    assert_eq!(end["delta"]["stop_reason"], "tool_use");
    assert_eq!(end["usage"], json!({"output_tokens": 5}));
}

#[test]
fn chat_completions_count_tool_calls_apart_from_text() {
    let answer = Answer::text("both")
        .then_tool("a", json!({}))
        .then_tool("b", json!({}));
    let events = data(Api::OpenAiCompletions, answer);
    let calls: Vec<(&Value, &Value)> = events
        .iter()
        .map(|event| &event["choices"][0]["delta"]["tool_calls"][0])
        .filter(|call| call["id"].is_string())
        .map(|call| (&call["index"], &call["function"]["name"]))
        .collect();
    assert_eq!(calls, [(&json!(0), &json!("a")), (&json!(1), &json!("b"))]);
    assert_eq!(events.last(), Some(&json!("[DONE]")));
}

#[test]
fn responses_close_what_they_open() {
    assert_eq!(
        types(Api::OpenAiResponses, Answer::text("hi")),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
}

#[test]
fn a_cut_counts_deltas_in_every_api() {
    for api in Api::ALL {
        let whole = data(api, Answer::deltas(5, "x"));
        let cut = data(api, Answer::deltas(5, "x").cut_after(2));
        assert_eq!(cut, whole[..cut.len()], "{}", api.name());
        let xs = cut
            .iter()
            .filter(|event| event.to_string().contains(r#""x""#));
        assert_eq!(xs.count(), 2, "{}", api.name());
    }
}

#[test]
fn deltas_never_split_a_character() {
    let texts = crate::answer::split("ééééééééééééé🦀");
    assert_eq!(texts, ["éééééééééééé", "é🦀"]);
}

#[test]
fn a_script_file_equals_the_builder() {
    let script = json!([
        {"blocks": [{"thinking": "hm"}, {"tool": {"name": "bash"}}], "stop": "length"},
        {"status": 429, "message": "slow down", "headers": {"retry-after": "0"}},
        {"blocks": [{"text": ["a", "b"]}], "cutAfter": 1, "delay": 3},
    ]);
    let answers: Vec<Answer> = serde_json::from_value(script).unwrap();
    let built = [
        Answer::thinking("hm")
            .then_tool("bash", json!({}))
            .stop(crate::Stop::Length),
        Answer::error(429, "slow down").with_header("retry-after", "0"),
        Answer::blocks([crate::Block::Text(vec!["a".into(), "b".into()])])
            .cut_after(1)
            .delay(3),
    ];
    assert_eq!(format!("{answers:?}"), format!("{built:?}"));
    let both = json!({"blocks": [], "status": 500});
    let error = serde_json::from_value::<Answer>(both)
        .unwrap_err()
        .to_string();
    assert_eq!(error, "an answer has one of `blocks`, `status` and `raw`");
}
