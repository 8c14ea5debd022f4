use serde_json::{Value, json};

use crate::apis::wire_api;
use crate::message::{AssistantBlock, Cost, StopReason, ThinkingContent, Usage};
use crate::stream::AssistantEvent;
use crate::testing::{
    Reply, Server, answer_of, call, collect, model, request, text, thinking, tool, user,
};

const ANTHROPIC_API: &str = "anthropic-messages";

#[tokio::test]
async fn an_answer_with_thinking_text_and_tool_calls() {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let arguments = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
    let server = Server::start(vec![Reply::typed_events(&[
        json!({"type": "message_start", "message": {"id": "msg_1", "usage": {
            "input_tokens": 1000, "output_tokens": 1, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 100,
        }}}),
        json!({"type": "ping"}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "si"})),
        delta(0, json!({"type": "signature_delta", "signature": "g"})),
        stop(0),
        start(1, json!({"type": "redacted_thinking", "data": "secret"})),
        stop(1),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "Let me "})),
        delta(2, json!({"type": "text_delta", "text": "look."})),
        stop(2),
        start(3, json!({"type": "tool_use", "id": "t1", "name": "Read", "input": {}})),
        delta(3, arguments("")),
        delta(3, arguments("{\"path\": \"a")),
        delta(3, arguments("b\"}")),
        stop(3),
        start(4, json!({"type": "tool_use", "id": "t2", "name": "other", "input": {"whole": true}})),
        stop(4),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2000, "input_tokens": null}}),
        json!({"type": "message_stop"}),
    ])])
    .await;
    let mut request = request(ANTHROPIC_API, &server, vec![user("go")]);
    request.options.api_key = Some("sk-ant-oat01".into());
    request.tools = Some(vec![tool("read")]);
    let (message, steps) = collect(wire_api(ANTHROPIC_API).unwrap().stream(request)).await;

    let mut expected = answer_of(
        &model(ANTHROPIC_API),
        vec![
            thinking("hm", Some("sig")),
            AssistantBlock::Thinking(ThinkingContent {
                thinking: "[Reasoning redacted]".into(),
                thinking_signature: Some("secret".into()),
                redacted: Some(true),
            }),
            text("Let me look."),
            call("t1", "read", json!({"path": "ab"})),
            call("t2", "other", json!({"whole": true})),
        ],
    );
    expected.response_id = Some("msg_1".into());
    expected.stop_reason = StopReason::ToolUse;
    expected.timestamp = message.timestamp;
    // The digits are those of JavaScript.
    expected.usage = Usage {
        input: 1000,
        output: 2000,
        cache_read: 10,
        cache_write: 100,
        total_tokens: 3110,
        cost: Cost {
            input: 0.001,
            output: 0.004,
            cache_read: 0.000039999999999999996,
            cache_write: 0.0007999999999999999,
            total: 0.00584,
        },
    };
    assert_eq!(message, expected);

    let AssistantBlock::ToolCall(first) = &message.content[3] else {
        unreachable!("compared above")
    };
    let AssistantBlock::ToolCall(second) = &message.content[4] else {
        unreachable!("compared above")
    };
    let events: Vec<AssistantEvent> = steps.iter().map(|(event, _)| event.clone()).collect();
    use AssistantEvent::*;
    assert_eq!(
        events,
        [
            Start,
            ThinkingStart { content_index: 0 },
            ThinkingDelta {
                content_index: 0,
                delta: "hm".into()
            },
            ThinkingEnd {
                content_index: 0,
                content: "hm".into()
            },
            ThinkingStart { content_index: 1 },
            ThinkingEnd {
                content_index: 1,
                content: "[Reasoning redacted]".into()
            },
            TextStart { content_index: 2 },
            TextDelta {
                content_index: 2,
                delta: "Let me ".into()
            },
            TextDelta {
                content_index: 2,
                delta: "look.".into()
            },
            TextEnd {
                content_index: 2,
                content: "Let me look.".into()
            },
            ToolCallStart { content_index: 3 },
            ToolCallDelta {
                content_index: 3,
                delta: "{\"path\": \"a".into()
            },
            ToolCallDelta {
                content_index: 3,
                delta: "b\"}".into()
            },
            ToolCallEnd {
                content_index: 3,
                tool_call: first.clone()
            },
            ToolCallStart { content_index: 4 },
            ToolCallEnd {
                content_index: 4,
                tool_call: second.clone()
            },
        ]
    );
    let AssistantBlock::ToolCall(partial) = &steps[11].1.content[3] else {
        panic!("{:?}", steps[11])
    };
    assert_eq!(partial.arguments, json!({"path": "a"}));
    assert_eq!(partial.partial_json.as_deref(), Some("{\"path\": \"a"));
}

#[tokio::test]
async fn stop_reasons_and_errors_in_the_stream() {
    let stop = |reason: &str| {
        vec![
            json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}),
            json!({"type": "message_stop"}),
        ]
    };
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    for (events, stop_reason, error) in [
        (stop("end_turn"), StopReason::Stop, None),
        (stop("pause_turn"), StopReason::Stop, None),
        (stop("max_tokens"), StopReason::Length, None),
        (
            stop("refusal"),
            StopReason::Error,
            Some("The provider declined to answer (stop reason: refusal)".to_owned()),
        ),
        (
            stop("model_context_window_exceeded"),
            StopReason::Error,
            Some("Unhandled stop reason: model_context_window_exceeded".to_owned()),
        ),
        (
            vec![overloaded.clone()],
            StopReason::Error,
            Some(overloaded.to_string()),
        ),
    ] {
        let server = Server::start(vec![Reply::typed_events(&events)]).await;
        let request = request(ANTHROPIC_API, &server, vec![user("go")]);
        let (message, _) = collect(wire_api(ANTHROPIC_API).unwrap().stream(request)).await;
        assert_eq!(
            (message.stop_reason, message.error_message),
            (stop_reason, error)
        );
    }
}
