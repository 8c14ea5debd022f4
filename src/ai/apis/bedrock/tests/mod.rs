mod credentials;
mod validity;

use serde_json::{Value, json};

use super::request::payload;
use super::response::BedrockDecoder;
use crate::apis::options::Retention;
use crate::apis::wire_tests::{HIGH, LOW, WHOLE, cuts, with_halves};
use crate::auth::secret_value::Env;
use crate::http::aws_event_stream::{FrameDecoder, crc32};
use crate::http::exchange::{Decoder, Flow};
use crate::http::sse::SseEvent;
use crate::message::StopReason;
use crate::model::{Model, ThinkingLevel};
use crate::stream::AssistantStream;
use crate::stream::message_builder::MessageBuilder;
use crate::testing::{
    answer, call, collect, model, request_for, result, text, thinking, tool, user,
};

fn frame(kind: &str, name: &str, payload: &Value) -> Vec<u8> {
    let mut headers = Vec::new();
    for (key, value) in [(":message-type", "event"), (kind, name)] {
        headers.push(key.len() as u8);
        headers.extend(key.as_bytes());
        headers.push(7);
        headers.extend((value.len() as u16).to_be_bytes());
        headers.extend(value.as_bytes());
    }
    let payload = payload.to_string();
    let length = 16 + headers.len() + payload.len();
    let mut frame = Vec::new();
    frame.extend((length as u32).to_be_bytes());
    frame.extend((headers.len() as u32).to_be_bytes());
    frame.extend(crc32(&frame).to_be_bytes());
    frame.extend(headers);
    frame.extend(payload.as_bytes());
    frame.extend(crc32(&frame).to_be_bytes());
    frame
}

#[tokio::test]
async fn any_cut_of_frames_gives_the_same_blocks() {
    let frames = [
        frame(":event-type", "messageStart", &json!({"role": "assistant"})),
        frame(":event-type", "contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "hm"}}})),
        frame(":event-type", "contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "sig"}}})),
        frame(":event-type", "contentBlockStop", &json!({"contentBlockIndex": 0})),
        frame(":event-type", "contentBlockDelta", &json!({"contentBlockIndex": 1, "delta": {"text": "I look"}})),
        frame(":event-type", "contentBlockStop", &json!({"contentBlockIndex": 1})),
        frame(":event-type", "contentBlockStart", &json!({"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t", "name": "read"}}})),
        frame(":event-type", "contentBlockDelta", &json!({"contentBlockIndex": 2, "delta": {"toolUse": {"input": "{\"path\":\"a\"}"}}})),
        frame(":event-type", "contentBlockStop", &json!({"contentBlockIndex": 2})),
        frame(":event-type", "messageStop", &json!({"stopReason": "tool_use"})),
        frame(":event-type", "metadata", &json!({"usage": {"inputTokens": 5, "outputTokens": 2, "totalTokens": 7, "cacheReadInputTokens": 3}})),
    ]
    .concat();
    for size in [1, 7, frames.len()] {
        let mut decoder = FrameDecoder::default();
        let events: Vec<_> = frames
            .chunks(size)
            .flat_map(|chunk| decoder.push(chunk))
            .collect();
        let (items, stream) = AssistantStream::channel();
        let mut answer =
            MessageBuilder::new(&model("bedrock-converse-stream"), items, Default::default());
        let mut reader = BedrockDecoder::default();
        for event in events {
            assert_eq!(reader.event(event, &mut answer).await.unwrap(), Flow::More);
        }
        reader.end(&mut answer).await.unwrap();
        answer.finish(Ok(())).await;
        let (message, _) = collect(stream).await;
        assert_eq!(message.stop_reason, StopReason::ToolUse);
        assert_eq!(
            serde_json::to_value(&message.content).unwrap(),
            json!([
                {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
                {"type": "text", "text": "I look"},
                {"type": "toolCall", "id": "t", "name": "read", "arguments": {"path": "a"}},
            ])
        );
        assert_eq!((message.usage.input, message.usage.cache_read), (5, 3));
    }
}

/// [`crate::apis::wire_tests`] has this test for the other APIs.
#[tokio::test]
async fn cut_calls_and_halves_of_characters() {
    let delta = |number: u64, delta: serde_json::Value| json!({"contentBlockIndex": number, "delta": delta});
    let input = |text: &str| delta(1, json!({"toolUse": {"input": text}}));
    let start =
        json!({"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t", "name": "read"}}});
    let cuts = cuts().into_iter().map(|cut| &WHOLE[..cut]).chain([WHOLE]);
    for arguments in cuts {
        for (stop, stop_reason) in [
            ("max_tokens", StopReason::Length),
            ("tool_use", StopReason::ToolUse),
        ] {
            let events = [
                (
                    "contentBlockDelta",
                    delta(0, json!({"text": format!("a{HIGH}")})),
                ),
                (
                    "contentBlockDelta",
                    delta(0, json!({"text": format!("{LOW}b{HIGH}")})),
                ),
                ("contentBlockStop", json!({"contentBlockIndex": 0})),
                ("contentBlockStart", start.clone()),
                ("contentBlockDelta", input(&arguments[..1])),
                ("contentBlockDelta", input(&arguments[1..])),
                ("messageStop", json!({"stopReason": stop})),
            ];
            let (items, stream) = AssistantStream::channel();
            let mut answer =
                MessageBuilder::new(&model("bedrock-converse-stream"), items, Default::default());
            let mut reader = BedrockDecoder::default();
            for (name, data) in events {
                let event = SseEvent {
                    name: name.to_owned(),
                    data: with_halves(&data),
                };
                reader.event(event, &mut answer).await.unwrap();
            }
            reader.end(&mut answer).await.unwrap();
            answer.finish(Ok(())).await;
            let (message, _) = collect(stream).await;
            assert_eq!(message.stop_reason, stop_reason);
            assert_eq!(message.texts().collect::<String>(), "a😀b\u{fffd}");
            let call = message.tool_calls().next().unwrap();
            assert_eq!(
                call.arguments_error.is_none(),
                arguments == WHOLE,
                "{call:?}"
            );
            assert_eq!(call.arguments == json!({}), arguments != WHOLE, "{call:?}");
        }
    }
}

#[test]
fn an_invalid_frame_ends_the_stream() {
    let mut whole = frame(":event-type", "x", &json!({}));
    let last = whole.len() - 1;
    whole[last] ^= 1;
    for bytes in [
        b"{\"message\": \"not a stream\"}".as_slice(),
        &whole,
        &[0; 64],
    ] {
        assert!(FrameDecoder::default().push(bytes).is_empty());
    }
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
}

#[test]
fn a_request() {
    let claude = Model {
        id: "us.anthropic.claude-sonnet-4-20250514-v1:0".into(),
        provider: "amazon-bedrock".into(),
        ..model("bedrock-converse-stream")
    };
    let mut request = request_for(
        claude.clone(),
        vec![
            user("look"),
            answer(
                &claude,
                vec![
                    thinking("hm", Some("sig")),
                    text("I look."),
                    call("c", "read", json!({"path": "a"})),
                    call("d", "read", json!({})),
                ],
            ),
            result("c", vec![]),
            result("d", vec![]),
        ],
    );
    request.tools = Some(vec![tool("read")]);
    request.options.reasoning = Some(ThinkingLevel::Low);
    let body = payload(
        &request,
        "us-east-1",
        Retention::Short,
        &Env::fixed([("", ""); 0]),
    );
    assert_eq!(
        body,
        json!({
            "modelId": claude.id,
            "messages": [
                {"role": "user", "content": [{"text": "look"}]},
                {"role": "assistant", "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}},
                    {"text": "I look."},
                    {"toolUse": {"toolUseId": "c", "name": "read", "input": {"path": "a"}}},
                    {"toolUse": {"toolUseId": "d", "name": "read", "input": {}}},
                ]},
                {"role": "user", "content": [
                    {"toolResult": {"toolUseId": "c", "content": [], "status": "success"}},
                    {"toolResult": {"toolUseId": "d", "content": [], "status": "success"}},
                    {"cachePoint": {"type": "default"}},
                ]},
            ],
            "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
            "inferenceConfig": {"maxTokens": request.model.max_tokens.min(34048)},
            "toolConfig": {"tools": [{"toolSpec": {"name": "read", "description": "The tool read",
                "inputSchema": {"json": tool("read").parameters}}}]},
            "additionalModelRequestFields": {
                "thinking": {"type": "enabled", "budget_tokens": 2048, "display": "summarized"},
                "anthropic_beta": ["interleaved-thinking-2025-05-14"],
            },
        })
    );
}
