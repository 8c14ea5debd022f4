mod validity;

use serde_json::{Value, json};

use super::request::{body, build_request};
use crate::apis::options::Retention;
use crate::apis::wire_api;
use crate::message::{
    AssistantBlock, AssistantMessage, ContentBlock, Message, StopReason, TextContent,
};
use crate::model::{Model, ThinkingLevel};
use crate::stream::AssistantEvent;
use crate::testing::{
    Reply, Server, answer, answer_of, call, collect, model, picture, request, request_for, result,
    text, thinking, tool, user,
};

const RESPONSES_API: &str = "openai-responses";
/// A token with the claim `{"https://api.openai.com/auth":{"chatgpt_account_id":"acc"}}`.
const SUBSCRIPTION: &str =
    "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjIn19.s";

fn openai() -> Model {
    Model {
        provider: "openai".into(),
        base_url: "https://api.openai.com/v1".into(),
        ..model(RESPONSES_API)
    }
}

fn input_of(model: &Model, messages: Vec<Message>) -> Value {
    let mut request = request_for(model.clone(), messages);
    request.system_prompt = None;
    body(&request, Retention::Short)["input"].take()
}

fn signed(content: &str, signature: &str) -> AssistantBlock {
    AssistantBlock::Text(TextContent {
        text: content.into(),
        text_signature: Some(signature.into()),
    })
}

#[test]
fn an_empty_list_of_tools_is_another_thing_than_none() {
    let mut request = request_for(openai(), vec![user("hello")]);
    assert_eq!(body(&request, Retention::Short).get("tools"), None);
    request.tools = Some(vec![]);
    assert_eq!(body(&request, Retention::Short)["tools"], json!([]));
}

/// Returns the cost of an answer as a multiple of the list price.
async fn factor_of(api_name: &str, model_id: &str, requested: &str, answered: Value) -> f64 {
    let usage = json!({"input_tokens": 1_000_000, "output_tokens": 0, "total_tokens": 1_000_000});
    let mut response = json!({"id": "r", "status": "completed", "usage": usage});
    if !answered.is_null() {
        response["service_tier"] = answered;
    }
    let done = json!({"type": "response.completed", "response": response});
    let server = Server::start(vec![Reply::typed_events(&[done])]).await;
    let mut request = request(api_name, &server, vec![user("hello")]);
    std::sync::Arc::make_mut(&mut request.model).id = model_id.into();
    request.options.api_key = Some(SUBSCRIPTION.into());
    request.options.api_options.responses.service_tier =
        Some(requested.to_owned()).filter(|requested| !requested.is_empty());
    let price = request.model.cost.input;
    let (message, _) = collect(wire_api(api_name).unwrap().stream(request)).await;
    message.usage.cost.total / price
}

#[tokio::test]
async fn requested_tier_counts_if_the_response_names_none() {
    let codex = "openai-codex-responses";
    for (api, model, requested, answered, factor) in [
        (RESPONSES_API, "m", "", json!(null), 1.0),
        (RESPONSES_API, "m", "flex", json!(null), 0.5),
        (RESPONSES_API, "m", "priority", json!(null), 2.0),
        (RESPONSES_API, "gpt-5.5", "priority", json!(null), 2.5),
        (RESPONSES_API, "m", "priority", json!("default"), 1.0),
        (RESPONSES_API, "m", "", json!("flex"), 0.5),
        // ChatGPT answers "default" to every request.
        (codex, "m", "priority", json!("default"), 2.0),
        (codex, "m", "flex", json!("default"), 0.5),
        (codex, "m", "auto", json!("default"), 1.0),
        (codex, "m", "flex", json!("priority"), 2.0),
    ] {
        let found = factor_of(api, model, requested, answered.clone()).await;
        assert_eq!(found, factor, "{api} {model} {requested} {answered}");
    }
}

#[test]
fn retention_none_sends_no_session_id() {
    let mut request = request_for(openai(), vec![user("hello")]);
    request.options.session_id = Some("s1".into());
    request.options.api_key = Some(SUBSCRIPTION.into());
    for (api, keeps) in [(Retention::None, false), (Retention::Short, true)] {
        request.options.cache_retention = Some(api);
        for call in [
            build_request(&request).unwrap().0,
            super::codex::build_request(&request).unwrap().0,
        ] {
            let found = [
                call.headers.contains_key("session_id"),
                call.body.get("prompt_cache_key").is_some(),
            ];
            assert_eq!(found, [keeps; 2]);
        }
    }
}

#[test]
fn a_request() {
    let mut request = request_for(openai(), vec![user("hello")]);
    request.tools = Some(vec![tool("read")]);
    request.options.session_id = Some("s1".into());
    request.options.reasoning = Some(ThinkingLevel::Low);
    assert_eq!(
        body(&request, Retention::Long),
        json!({
            "model": "test-model",
            "input": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
            ],
            "stream": true,
            "prompt_cache_key": "s1",
            "prompt_cache_retention": "24h",
            "store": false,
            "max_output_tokens": 32000,
            "tools": [{
                "type": "function", "name": "read", "description": "The tool read",
                "parameters": tool("read").parameters, "strict": false,
            }],
            "reasoning": {"effort": "low", "summary": "auto"},
            "include": ["reasoning.encrypted_content"],
        })
    );
    let call = build_request(&request).unwrap().0;
    assert_eq!(call.url, "https://api.openai.com/v1/responses");
    for (name, value) in [
        ("authorization", "Bearer key"),
        ("session_id", "s1"),
        ("x-client-request-id", "s1"),
    ] {
        assert_eq!(call.headers[name], value);
    }
}

#[test]
fn thinking_off() {
    let reasoning = |model: Model| {
        let body = body(&request_for(model, vec![]), Retention::Short);
        (
            body.get("reasoning").cloned(),
            body["input"][0]["role"].clone(),
        )
    };
    let none = Some(json!({"effort": "none"}));
    assert_eq!(reasoning(openai()), (none, json!("developer")));
    let copilot = Model {
        provider: "github-copilot".into(),
        ..openai()
    };
    assert_eq!(reasoning(copilot), (None, json!("developer")));
    let plain = Model {
        reasoning: false,
        ..openai()
    };
    assert_eq!(reasoning(plain), (None, json!("system")));
}

#[test]
fn own_answers_are_sent_back_as_the_same_items() {
    let model = openai();
    let reasoning = "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":\"x\"}";
    let long_id = "m".repeat(70);
    let input = input_of(
        &model,
        vec![
            user("go"),
            answer(
                &model,
                vec![
                    thinking("", Some(reasoning)),
                    thinking("broken", Some("no json")),
                    signed("a", "{\"v\":1,\"id\":\"msg_a\",\"phase\":\"commentary\"}"),
                    signed("b", "msg_old"),
                    signed("c", &long_id),
                    text("d"),
                    call("call_1|fc_1", "read", json!({"path": "a"})),
                ],
            ),
            result(
                "call_1|fc_1",
                vec![ContentBlock::text("x"), ContentBlock::image(picture())],
            ),
        ],
    );
    let hashed = input[4]["id"].clone();
    assert!(
        hashed
            .as_str()
            .is_some_and(|id| id.starts_with("msg_") && id.len() <= 64)
    );
    let message = |text: &str, id: Value| {
        json!({
            "type": "message", "role": "assistant", "status": "completed", "id": id,
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        })
    };
    let mut first = message("a", json!("msg_a"));
    first["phase"] = json!("commentary");
    assert_eq!(
        input,
        json!([
            {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "reasoning", "id": "rs_1", "encrypted_content": "x"},
            first,
            message("b", json!("msg_old")),
            message("c", hashed),
            message("d", json!("msg_1")),
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": "{\"path\":\"a\"}"},
            {"type": "function_call_output", "call_id": "call_1", "output": [
                {"type": "input_text", "text": "x"},
                {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AAAA"},
            ]},
        ])
    );
}

#[test]
fn siblings_lose_the_item_id_and_strangers_get_one() {
    let sibling = Model {
        id: "gpt-other".into(),
        ..openai()
    };
    let stranger = Model {
        provider: "github-copilot".into(),
        ..openai()
    };
    let claude = Model {
        provider: "anthropic".into(),
        api: "anthropic-messages".into(),
        ..openai()
    };
    let input = input_of(
        &openai(),
        vec![
            user("go"),
            answer(
                &sibling,
                vec![
                    thinking("hm", Some("{}")),
                    call("call_1|fc_1", "read", json!({})),
                ],
            ),
            result("call_1|fc_1", vec![ContentBlock::text("1")]),
            answer(&stranger, vec![call("call_2|a+/=", "read", json!({}))]),
            result("call_2|a+/=", vec![ContentBlock::text("2")]),
            answer(&claude, vec![call("toolu_3__", "read", json!({}))]),
            user("go on"),
        ],
    );
    assert_eq!(input[1]["content"][0]["text"], "hm");
    assert_eq!(
        (&input[2]["call_id"], input[2].get("id")),
        (&json!("call_1"), None)
    );
    assert_eq!(input[3]["call_id"], "call_1");
    let hashed = input[4]["id"].as_str().unwrap();
    assert!(hashed.starts_with("fc_") && hashed.len() == 19, "{hashed}");
    assert_eq!(input[5]["call_id"], "call_2");
    assert_eq!(
        (&input[6]["call_id"], input[6].get("id")),
        (&json!("toolu_3"), None)
    );
    assert_eq!(
        input[7],
        json!({"type": "function_call_output", "call_id": "toolu_3", "output": "No result provided"})
    );
}

async fn stream_of(events: &[Value]) -> (AssistantMessage, Vec<AssistantEvent>) {
    let server = Server::start(vec![Reply::typed_events(events)]).await;
    let request = request(RESPONSES_API, &server, vec![user("go")]);
    let (message, steps) = collect(wire_api(RESPONSES_API).unwrap().stream(request)).await;
    (message, steps.into_iter().map(|(event, _)| event).collect())
}

fn event(kind: &str, index: u64, member: &str, value: Value) -> Value {
    json!({"type": format!("response.{kind}"), "output_index": index, member: value})
}

#[tokio::test]
async fn an_answer_with_thinking_text_and_tool_calls() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [
        {"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"},
    ], "encrypted_content": "x"});
    let (message, events) = stream_of(&[
        json!({"type": "response.created", "response": {"id": "resp_1"}}),
        event("output_item.added", 0, "item", json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        event("reasoning_summary_part.added", 0, "part", json!({"text": ""})),
        event("reasoning_summary_text.delta", 0, "delta", json!("one")),
        event("reasoning_summary_part.done", 0, "part", json!({"text": "one"})),
        event("reasoning_summary_part.added", 0, "part", json!({"text": ""})),
        event("reasoning_summary_text.delta", 0, "delta", json!("two")),
        event("output_item.done", 0, "item", reasoning.clone()),
        event("output_item.added", 1, "item", json!({"type": "message", "id": "msg_1", "content": []})),
        event("content_part.added", 1, "part", json!({"type": "output_text", "text": ""})),
        event("output_text.delta", 1, "delta", json!("Sure. ")),
        event("refusal.delta", 1, "delta", json!("No.")),
        event("output_item.done", 1, "item", json!({"type": "message", "id": "msg_1", "phase": "final_answer", "content": [
            {"type": "output_text", "text": "Sure. "}, {"type": "refusal", "refusal": "No."},
        ]})),
        event("output_item.added", 2, "item", json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": ""})),
        event("output_item.added", 3, "item", json!({"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "bash", "arguments": ""})),
        event("function_call_arguments.delta", 2, "delta", json!("{\"path\":")),
        event("function_call_arguments.delta", 3, "delta", json!("{}")),
        event("function_call_arguments.done", 2, "arguments", json!("{\"path\":\"a\"}")),
        event("output_item.done", 2, "item", json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": "{\"path\":\"a\"}"})),
        event("output_item.done", 3, "item", json!({"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "bash", "arguments": "{\"other\":1}"})),
        json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "service_tier": "priority", "usage": {
            "input_tokens": 1000, "output_tokens": 500, "total_tokens": 1500, "input_tokens_details": {"cached_tokens": 400},
        }}}),
    ])
    .await;

    let mut expected = answer_of(
        &model(RESPONSES_API),
        vec![
            thinking("one\n\ntwo", Some(&reasoning.to_string())),
            signed(
                "Sure. No.",
                "{\"v\":1,\"id\":\"msg_1\",\"phase\":\"final_answer\"}",
            ),
            call("call_1|fc_1", "read", json!({"path": "a"})),
            call("call_2|fc_2", "bash", json!({"other": 1})),
        ],
    );
    expected.response_id = Some("resp_1".into());
    expected.stop_reason = StopReason::ToolUse;
    expected.timestamp = message.timestamp;
    expected.usage = message.usage;
    assert_eq!(message, expected);
    let usage = message.usage;
    assert_eq!(
        (
            usage.input,
            usage.output,
            usage.cache_read,
            usage.cache_write,
            usage.total_tokens
        ),
        (600, 500, 400, 0, 1500)
    );
    // 600 × 1 + 500 × 2 + 400 × 4, at twice the price.
    assert!(
        (usage.cost.total - 0.0064).abs() < 1e-12,
        "{:?}",
        usage.cost
    );

    let calls: Vec<_> = message.tool_calls().cloned().collect();
    use AssistantEvent::*;
    assert_eq!(
        events,
        [
            Start,
            ThinkingStart { content_index: 0 },
            ThinkingDelta {
                content_index: 0,
                delta: "one".into()
            },
            ThinkingDelta {
                content_index: 0,
                delta: "\n\n".into()
            },
            ThinkingDelta {
                content_index: 0,
                delta: "two".into()
            },
            ThinkingEnd {
                content_index: 0,
                content: "one\n\ntwo".into()
            },
            TextStart { content_index: 1 },
            TextDelta {
                content_index: 1,
                delta: "Sure. ".into()
            },
            TextDelta {
                content_index: 1,
                delta: "No.".into()
            },
            TextEnd {
                content_index: 1,
                content: "Sure. No.".into()
            },
            ToolCallStart { content_index: 2 },
            ToolCallStart { content_index: 3 },
            ToolCallDelta {
                content_index: 2,
                delta: "{\"path\":".into()
            },
            ToolCallDelta {
                content_index: 2,
                delta: "\"a\"}".into()
            },
            ToolCallEnd {
                content_index: 2,
                tool_call: calls[0].clone()
            },
            ToolCallDelta {
                content_index: 3,
                delta: "{\"other\":1}".into()
            },
            ToolCallEnd {
                content_index: 3,
                tool_call: calls[1].clone()
            },
        ]
    );
}

#[tokio::test]
async fn unannounced_items_are_accepted() {
    let (message, _) = stream_of(&[
        event("output_item.done", 0, "item", json!({"type": "message", "content": [{"type": "output_text", "text": "hi"}]})),
        event("output_item.done", 1, "item", json!({"type": "function_call", "call_id": "c", "name": "read", "arguments": "{\"path\":\"a\"}"})),
        json!({"type": "response.incomplete", "response": {"status": "incomplete", "usage": {"output_tokens": 3}}}),
    ])
    .await;
    assert_eq!(
        message.content,
        [text("hi"), call("c", "read", json!({"path": "a"}))]
    );
    assert_eq!(
        (message.stop_reason, message.usage.output),
        (StopReason::Length, 3)
    );
}

/// LM Studio sends such events, and some servers leave out the numbers of items.
#[tokio::test]
async fn arguments_that_come_only_in_their_own_event_count() {
    let numbered = |event: Value, numbers: bool, number: u64| match numbers {
        true => {
            let mut event = event;
            event["output_index"] = json!(number);
            event
        }
        false => event,
    };
    let item = |number: u64, arguments: &str| {
        json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": format!("c{number}"),
            "name": "read", "arguments": arguments})
    };
    let added = |number| json!({"type": "response.output_item.added", "item": item(number, "")});
    let arguments = |number: u64| {
        json!({"type": "response.function_call_arguments.done", "item_id": format!("fc_{number}"),
            "arguments": format!("{{\"path\":\"{number}\"}}")})
    };
    let done =
        |number, whole| json!({"type": "response.output_item.done", "item": item(number, whole)});
    let end = json!({"type": "response.completed", "response": {"status": "completed"}});
    for numbers in [true, false] {
        for whole in ["{}", "", "{\"path\":\"1\"}"] {
            let usual = [added(1), arguments(1), done(1, whole)];
            let late = [added(1), done(1, whole), arguments(1)];
            let unannounced = [arguments(1), done(1, whole)];
            for order in [usual.to_vec(), late.to_vec(), unannounced.to_vec()] {
                let order = order.into_iter().map(|event| numbered(event, numbers, 0));
                let mut events: Vec<Value> = order.collect();
                let second = [added(2), arguments(2), done(2, "{}")];
                events.extend(second.map(|event| numbered(event, numbers, 1)));
                events.push(end.clone());
                let (message, _) = stream_of(&events).await;
                assert_eq!(message.stop_reason, StopReason::ToolUse, "{message:?}");
                let expected = [("c1|fc_1", "1"), ("c2|fc_2", "2")];
                let expected = expected.map(|(id, path)| call(id, "read", json!({"path": path})));
                assert_eq!(message.content, expected, "{numbers} {events:#?}");
            }
        }
    }
}

#[tokio::test]
async fn a_response_is_incomplete_for_several_reasons() {
    let ended = |details: Value| json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": details}});
    for (details, stop_reason, error) in [
        (
            json!({"reason": "max_output_tokens"}),
            StopReason::Length,
            None,
        ),
        (Value::Null, StopReason::Length, None),
        (
            json!({"reason": "content_filter"}),
            StopReason::Error,
            Some("Response incomplete: content_filter"),
        ),
    ] {
        let (message, _) = stream_of(&[ended(details)]).await;
        let known = (message.stop_reason, message.error_message.as_deref());
        assert_eq!(known, (stop_reason, error));
    }
}

#[tokio::test]
async fn errors_in_the_stream() {
    for (event, expected) in [
        (
            json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}),
            "Error Code rate_limit_exceeded: slow",
        ),
        (
            json!({"type": "error", "error": {"message": "inner"}}),
            "inner",
        ),
        (
            json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "boom"}}}),
            "server_error: boom",
        ),
        (
            json!({"type": "response.failed", "response": {"incomplete_details": {"reason": "max"}}}),
            "incomplete: max",
        ),
        (
            json!({"type": "response.completed", "response": {"status": "cancelled"}}),
            "The provider ended the response with status cancelled",
        ),
    ] {
        let (message, _) = stream_of(&[event]).await;
        assert_eq!(
            (message.stop_reason, message.error_message.as_deref()),
            (StopReason::Error, Some(expected))
        );
    }
}

#[tokio::test]
async fn a_subscription_has_its_own_ending_and_its_own_refusal() {
    use crate::testing::send_prompt;
    let key = SUBSCRIPTION;
    let done = json!({"type": "response.done", "response": {"id": "r", "status": "completed"}});
    let server = Server::start(vec![Reply::typed_events(&[done])]).await;
    let message = send_prompt(&server, "openai-codex-responses", key).await;
    assert_eq!(message.stop_reason, StopReason::Stop, "{message:?}");
    let limit =
        r#"{"error": {"type": "usage_limit_reached", "plan_type": "Plus", "resets_at": 1}}"#;
    let reply = Reply::status(429, limit).header("x-should-retry", "false");
    let server = Server::start(vec![reply]).await;
    let message = send_prompt(&server, "openai-codex-responses", key).await;
    assert_eq!(
        message.error_message.as_deref(),
        Some("You have hit your ChatGPT usage limit (plus plan). Try again in ~0 min.")
    );
}
