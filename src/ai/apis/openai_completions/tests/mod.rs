use serde_json::{Value, json};

use super::compat::Compat;
use super::request::{body, build_request};
use crate::apis::options::Retention;
use crate::apis::wire_api;
use crate::message::{AssistantBlock, AssistantMessage, ContentBlock, Message, StopReason};
use crate::model::{Modality, Model, ThinkingLevel};
use crate::stream::{AssistantEvent, Request};
use crate::testing::{
    Reply, Server, answer, answer_of, call, collect, model, picture, request, request_for, result,
    text, thinking, tool, user,
};

mod call_pieces;
mod thinking_formats;
mod validity;

const COMPLETIONS_API: &str = "openai-completions";

fn body_of(request: &Request) -> Value {
    body(request, &Compat::new(&request.model).unwrap())
}

fn messages_of(model: &Model, messages: Vec<Message>) -> Value {
    let mut request = request_for(model.clone(), messages);
    request.system_prompt = None;
    body_of(&request)["messages"].take()
}

fn with_compat(compat: Value) -> Model {
    Model {
        compat: Some(compat),
        ..model(COMPLETIONS_API)
    }
}

#[test]
fn a_request() {
    let mut request = request_for(model(COMPLETIONS_API), vec![user("hello")]);
    request.tools = Some(vec![tool("read")]);
    request.options.temperature = Some(0.5);
    request.options.reasoning = Some(ThinkingLevel::Xhigh);
    assert_eq!(
        body_of(&request),
        json!({
            "model": "test-model",
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            ],
            "stream": true,
            "stream_options": {"include_usage": true},
            "store": false,
            "max_completion_tokens": 32000,
            "temperature": 0.5,
            "tools": [{"type": "function", "function": {
                "name": "read",
                "description": "The tool read",
                "parameters": tool("read").parameters,
                "strict": false,
            }}],
            "reasoning_effort": "high",
        })
    );
    let call = build_request(&request).unwrap().0;
    assert_eq!(call.url, "http://test/chat/completions");
    assert_eq!(call.headers["authorization"], "Bearer key");
}

#[test]
fn servers_known_by_their_address() {
    let at = |url: &str| {
        let model = Model {
            base_url: url.into(),
            ..model(COMPLETIONS_API)
        };
        let mut request = request_for(model, vec![user("a")]);
        request.options.reasoning = Some(ThinkingLevel::Low);
        let mut body = body_of(&request);
        let role = body["messages"][0]["role"].take();
        let map = body.as_object_mut().unwrap();
        map.retain(|name, _| {
            !matches!(
                name.as_str(),
                "model" | "messages" | "stream" | "stream_options"
            )
        });
        (role, body)
    };
    let system = json!("system");
    assert_eq!(
        at("https://api.z.ai/v4"),
        (
            system.clone(),
            json!({"max_completion_tokens": 32000, "enable_thinking": true})
        )
    );
    assert_eq!(
        at("https://api.x.ai/v1"),
        (system.clone(), json!({"max_completion_tokens": 32000}))
    );
    assert_eq!(
        at("https://llm.chutes.ai/v1"),
        (
            system,
            json!({"max_tokens": 32000, "reasoning_effort": "low"})
        )
    );
    assert_eq!(
        at("https://openrouter.ai/api/v1"),
        (
            json!("developer"),
            json!({"store": false, "max_completion_tokens": 32000, "reasoning": {"effort": "low"}})
        )
    );
}

#[test]
fn compat_overrides() {
    let mut request = request_for(
        Model {
            base_url: "https://openrouter.ai/api/v1".into(),
            ..with_compat(json!({
                "supportsStore": false, "supportsDeveloperRole": false,
                "supportsUsageInStreaming": false, "maxTokensField": "max_tokens",
                "thinkingFormat": "qwen-chat-template", "supportsStrictMode": false,
                "zaiToolStream": true, "openRouterRouting": {"only": ["a"]},
                "vercelGatewayRouting": {"only": ["b"]}, "unknown": 1,
            }))
        },
        vec![user("a")],
    );
    request.tools = Some(vec![tool("read")]);
    assert_eq!(
        body_of(&request),
        json!({
            "model": "test-model",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "a"}]},
            ],
            "stream": true,
            "max_tokens": 32000,
            "tools": [{"type": "function", "function": {
                "name": "read", "description": "The tool read", "parameters": tool("read").parameters,
            }}],
            "tool_stream": true,
            "chat_template_kwargs": {"enable_thinking": false, "preserve_thinking": true},
            "provider": {"only": ["a"]},
        })
    );
    std::sync::Arc::make_mut(&mut request.model).base_url =
        "https://ai-gateway.vercel.sh/v1".into();
    assert_eq!(
        body_of(&request)["providerOptions"],
        json!({"gateway": {"only": ["b"]}})
    );
}

#[test]
fn a_compat_that_makes_no_sense_is_named() {
    let request = request_for(with_compat(json!({"thinkingFormat": "loud"})), vec![]);
    let error = build_request(&request).err().unwrap().to_string();
    assert!(
        error.starts_with("Invalid compat of model test/test-model: unknown variant `loud`"),
        "{error}"
    );
}

#[test]
fn efforts_can_be_renamed() {
    let mut request = request_for(
        with_compat(json!({"reasoningEffortMap": {"minimal": "low"}})),
        vec![user("a")],
    );
    for (level, effort) in [
        (ThinkingLevel::Minimal, json!("low")),
        (ThinkingLevel::Medium, json!("medium")),
        (ThinkingLevel::Off, Value::Null),
    ] {
        request.options.reasoning = Some(level);
        assert_eq!(body_of(&request)["reasoning_effort"], effort);
    }
}

#[test]
fn a_model_names_its_levels() {
    let names = json!({"off": "none", "low": null, "high": "hard", "max": "hardest"});
    let model = Model {
        thinking_level_map: serde_json::from_value(names).unwrap(),
        ..with_compat(json!({"reasoningEffortMap": {"high": "old"}}))
    };
    let mut request = request_for(model, vec![user("a")]);
    for (level, effort) in [
        (ThinkingLevel::Off, "none"),
        (ThinkingLevel::Low, "medium"),
        (ThinkingLevel::High, "hard"),
        (ThinkingLevel::Xhigh, "hardest"),
    ] {
        request.options.reasoning = Some(level);
        assert_eq!(body_of(&request)["reasoning_effort"], effort);
    }
}

#[test]
fn own_answers_go_back() {
    let model = model(COMPLETIONS_API);
    let mut signed = call("t2", "read", json!({"path": "b"}));
    if let AssistantBlock::ToolCall(call) = &mut signed {
        call.thought_signature = Some("{\"id\":\"t2\"}".into());
    }
    let messages = messages_of(
        &model,
        vec![
            user("go"),
            answer(
                &model,
                vec![
                    thinking("one", Some("reasoning_content")),
                    thinking("two", Some("reasoning_content")),
                    text("a"),
                    text(" "),
                    text("b"),
                    call("t1", "read", json!({"path": "a"})),
                    signed,
                ],
            ),
            result(
                "t1",
                vec![ContentBlock::text("x"), ContentBlock::image(picture())],
            ),
            result("t2", vec![ContentBlock::image(picture())]),
            answer(&model, vec![text("")]),
            user("next"),
        ],
    );
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}});
    assert_eq!(
        messages,
        json!([
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {
                "role": "assistant", "content": "ab", "reasoning_content": "one\ntwo",
                "tool_calls": [call("t1", "{\"path\":\"a\"}"), call("t2", "{\"path\":\"b\"}")],
                "reasoning_details": [{"id": "t2"}],
            },
            {"role": "tool", "content": "x", "tool_call_id": "t1"},
            {"role": "tool", "content": "(see attached image)", "tool_call_id": "t2"},
            {"role": "user", "content": [{"type": "text", "text": "Attached image(s) from tool result:"}, image, image]},
            {"role": "user", "content": [{"type": "text", "text": "next"}]},
        ])
    );
}

#[tokio::test]
async fn details_of_thoughts_are_sent_back_unchanged() {
    let text_detail = |text: &str| json!({"type": "reasoning.text", "text": text, "index": 0});
    let encrypted = json!({"type": "reasoning.encrypted", "data": "xyz", "index": 1});
    let (message, _) = stream_of(&[
        chunk(json!({"reasoning": "I ", "reasoning_details": [text_detail("I ")]})),
        chunk(json!({"reasoning": "think", "reasoning_details": [text_detail("think")]})),
        chunk(json!({"content": "Done"})),
        chunk(json!({"reasoning_details": [encrypted]})),
        finish("stop"),
    ])
    .await;
    let details = json!([text_detail("I think"), encrypted]);
    let content = vec![
        thinking("I think", Some(&details.to_string())),
        text("Done"),
    ];
    assert_eq!(message.content, content);
    let messages = messages_of(
        &model(COMPLETIONS_API),
        vec![user("go"), answer(&model(COMPLETIONS_API), content)],
    );
    let expected = json!({"role": "assistant", "content": "Done", "reasoning_details": details});
    assert_eq!(messages[1], expected);
}

#[tokio::test]
async fn details_without_readable_thoughts_are_stored() {
    let encrypted = json!({"type": "reasoning.encrypted", "data": "xyz"});
    let call_piece =
        json!({"index": 0, "id": "t1", "function": {"name": "bash", "arguments": "{}"}});
    let (message, _) = stream_of(&[
        chunk(json!({"tool_calls": [call_piece], "reasoning_details": [encrypted]})),
        finish("tool_calls"),
    ])
    .await;
    let details = json!([encrypted]);
    let content = vec![
        call("t1", "bash", json!({})),
        thinking("", Some(&details.to_string())),
    ];
    assert_eq!(message.content, content);
    let history = vec![user("go"), answer(&model(COMPLETIONS_API), content)];
    assert_eq!(
        messages_of(&model(COMPLETIONS_API), history)[1]["reasoning_details"],
        details
    );
}

#[tokio::test]
async fn cached_tokens_are_found_wherever_a_server_counts_them() {
    let usages = [
        json!({"prompt_tokens_details": {"cached_tokens": 60}}),
        json!({"prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40}),
        json!({"cached_tokens": 60}),
    ];
    for mut usage in usages {
        usage["prompt_tokens"] = json!(100);
        usage["completion_tokens"] = json!(7);
        let mut in_choice = finish("stop");
        in_choice["choices"][0]["usage"] = usage.clone();
        let of_chunk = json!({"id": "c1", "choices": [], "usage": usage});
        let text_chunk = || chunk(json!({"content": "a"}));
        for chunks in [
            vec![text_chunk(), in_choice],
            vec![text_chunk(), finish("stop"), of_chunk],
        ] {
            let usage = stream_of(&chunks).await.0.usage;
            let counts = (
                usage.input,
                usage.cache_read,
                usage.output,
                usage.total_tokens,
            );
            assert_eq!(counts, (40, 60, 7, 107), "{chunks:?}");
        }
    }
}

#[test]
fn missing_reasoning_content_is_sent_as_empty_text() {
    let model = with_compat(json!({"requiresReasoningContentOnAssistantMessages": true}));
    let own_answer = |content| answer(&model, content);
    let thought = vec![thinking("hm", Some("reasoning_content")), text("a")];
    let messages = messages_of(
        &model,
        vec![user("go"), own_answer(thought), own_answer(vec![text("b")])],
    );
    assert_eq!(messages[1]["reasoning_content"], "hm");
    assert_eq!(messages[2]["reasoning_content"], "");
}

#[test]
fn servers_that_want_names_bridges_and_thoughts_as_text() {
    let model = Model {
        input: vec![Modality::Text],
        ..with_compat(json!({
            "requiresToolResultName": true,
            "requiresAssistantAfterToolResult": true,
            "requiresThinkingAsText": true,
        }))
    };
    let messages = messages_of(
        &model,
        vec![
            user("first"),
            // Thoughts as text beside text crashed the original.
            answer(
                &model,
                vec![
                    thinking("hm", None),
                    text("so"),
                    call("t1", "read", json!({})),
                ],
            ),
            result("t1", vec![ContentBlock::text("x")]),
            user("next"),
            answer(&model, vec![call("t2", "read", json!({}))]),
            user("last"),
        ],
    );
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
    assert_eq!(
        messages,
        json!([
            {"role": "user", "content": [{"type": "text", "text": "first"}]},
            {"role": "assistant", "content": "hm\n\nso", "tool_calls": [call("t1")]},
            {"role": "tool", "content": "x", "tool_call_id": "t1", "name": "read"},
            {"role": "assistant", "content": "I have processed the tool results."},
            {"role": "user", "content": [{"type": "text", "text": "next"}]},
            {"role": "assistant", "content": "", "tool_calls": [call("t2")]},
            {"role": "tool", "content": "No result provided", "tool_call_id": "t2", "name": "read"},
            {"role": "assistant", "content": "I have processed the tool results."},
            {"role": "user", "content": [{"type": "text", "text": "last"}]},
        ])
    );
}

#[test]
fn foreign_thoughts_become_text_and_paired_ids_are_cut() {
    let other = Model {
        api: "openai-responses".into(),
        ..model(COMPLETIONS_API)
    };
    let id = format!("call.1{}|fc_1", "x".repeat(50));
    let fitting = format!("call_1{}", "x".repeat(34));
    let request = request_for(
        model(COMPLETIONS_API),
        vec![
            user("go"),
            answer(
                &other,
                vec![thinking("hm", Some("{}")), call(&id, "read", json!({}))],
            ),
            result(&id, vec![ContentBlock::text("x")]),
        ],
    );
    let body = body_of(&request);
    assert_eq!(body["messages"][2]["content"], "hm");
    assert_eq!(body["messages"][2]["tool_calls"][0]["id"], fitting);
    assert_eq!(body["messages"][3]["tool_call_id"], fitting);
    // The conversation has calls although no tool is active.
    assert_eq!(body["tools"], json!([]));
}

#[test]
fn openrouter_claude_cache_uses_requested_retention() {
    let model = Model {
        provider: "openrouter".into(),
        id: "anthropic/claude".into(),
        ..model(COMPLETIONS_API)
    };
    let mut request = request_for(model, vec![user("go")]);
    let mut mark = |retention| {
        request.options.cache_retention = Some(retention);
        body_of(&request)["messages"][1]["content"][0]["cache_control"].take()
    };
    assert_eq!(mark(Retention::None), json!(null));
    assert_eq!(
        mark(Retention::Long),
        json!({"type": "ephemeral", "ttl": "1h"})
    );
}

#[test]
fn claude_behind_openrouter_is_cached() {
    let model = Model {
        provider: "openrouter".into(),
        id: "anthropic/claude".into(),
        ..model(COMPLETIONS_API)
    };
    let messages = messages_of(
        &model,
        vec![
            user("go"),
            answer(&model, vec![text("hi"), call("t", "read", json!({}))]),
            result("t", vec![ContentBlock::text("x")]),
        ],
    );
    assert_eq!(
        messages[1]["content"],
        json!([{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}])
    );
}

async fn stream_of(events: &[Value]) -> (AssistantMessage, Vec<AssistantEvent>) {
    let mut chunks: Vec<String> = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    chunks.push("data: [DONE]\n\n".into());
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
    let server = Server::start(vec![Reply::events(&chunks)]).await;
    let request = request(COMPLETIONS_API, &server, vec![user("go")]);
    let (message, steps) = collect(wire_api(COMPLETIONS_API).unwrap().stream(request)).await;
    (message, steps.into_iter().map(|(event, _)| event).collect())
}

fn chunk(delta: Value) -> Value {
    json!({"id": "c1", "choices": [{"index": 0, "delta": delta}]})
}

fn finish(reason: &str) -> Value {
    json!({"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

#[tokio::test]
async fn an_answer_with_thinking_text_and_tool_calls() {
    let detail = json!({"type": "reasoning.encrypted", "id": "t2", "data": "xyz"});
    let (message, events) = stream_of(&[
        chunk(json!({"role": "assistant", "content": "", "reasoning_content": null})),
        chunk(json!({"reasoning": "hm", "reasoning_text": "hm", "reasoning_details": [detail]})),
        chunk(json!({"content": "Look"})),
        chunk(json!({"content": "ing"})),
        chunk(json!({"tool_calls": [{"index": 0, "id": "t1", "function": {"name": "read", "arguments": ""}}]})),
        chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"path\":"}}]})),
        chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"a\"}"}}]})),
        chunk(json!({"tool_calls": [{"index": 1, "id": "t2", "function": {"name": "bash", "arguments": "{}"}}]})),
        finish("tool_calls"),
        json!({"id": "c1", "choices": [], "usage": {
            "prompt_tokens": 1000, "completion_tokens": 15, "total_tokens": 1,
            "prompt_tokens_details": {"cached_tokens": 300, "cache_write_tokens": 100},
            "completion_tokens_details": {"reasoning_tokens": 5},
        }}),
    ])
    .await;
    let mut expected = answer_of(
        &model(COMPLETIONS_API),
        vec![
            thinking("hm", Some(&json!([detail]).to_string())),
            text("Looking"),
            call("t1", "read", json!({"path": "a"})),
            call("t2", "bash", json!({})),
        ],
    );
    expected.response_id = Some("c1".into());
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
        (600, 15, 300, 100, 1015)
    );
    assert!(
        (usage.cost.total - 0.00263).abs() < 1e-12,
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
                delta: "hm".into()
            },
            ThinkingEnd {
                content_index: 0,
                content: "hm".into()
            },
            TextStart { content_index: 1 },
            TextDelta {
                content_index: 1,
                delta: "Look".into()
            },
            TextDelta {
                content_index: 1,
                delta: "ing".into()
            },
            TextEnd {
                content_index: 1,
                content: "Looking".into()
            },
            ToolCallStart { content_index: 2 },
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
            ToolCallStart { content_index: 3 },
            ToolCallDelta {
                content_index: 3,
                delta: "{}".into()
            },
            ToolCallEnd {
                content_index: 3,
                tool_call: calls[1].clone()
            },
        ]
    );
}

#[tokio::test]
async fn content_may_be_a_list_of_parts() {
    let (message, _) = stream_of(&[
        chunk(json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})),
        chunk(json!({"content": ["c", {"type": "other"}]})),
        chunk(json!({"content": []})),
        finish("stop"),
    ])
    .await;
    assert_eq!(message.content, [text("abc")]);
}

#[tokio::test]
async fn a_server_without_finish_reasons_is_named_in_compat() {
    let events = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n";
    let server = Server::start(vec![Reply::events(&[events])]).await;
    let mut request = request(COMPLETIONS_API, &server, vec![user("go")]);
    let compat = json!({"supportsFinishReason": false});
    std::sync::Arc::make_mut(&mut request.model).compat = Some(compat);
    let (message, _) = collect(wire_api(COMPLETIONS_API).unwrap().stream(request)).await;
    assert_eq!(
        (message.stop_reason, message.content),
        (StopReason::Stop, vec![text("x")])
    );
}

#[tokio::test]
async fn finish_reasons_and_errors_in_the_stream() {
    let provider = |text: &str| (StopReason::Error, Some(text.to_owned()));
    for (event, expected) in [
        (finish("stop"), (StopReason::Stop, None)),
        (finish("length"), (StopReason::Length, None)),
        (
            finish("content_filter"),
            provider("Provider finish_reason: content_filter"),
        ),
        (
            finish("network_error"),
            provider("Provider finish_reason: network_error"),
        ),
        (
            json!({"error": {"message": "Provider returned error", "metadata": {"raw": "boom"}}}),
            provider("Provider returned error\nboom"),
        ),
        // [DONE] alone does not mark the answer as complete.
        (
            chunk(json!({"content": "x"})),
            provider("Connection lost: the stream ended without a finish_reason"),
        ),
    ] {
        let (message, _) = stream_of(&[event]).await;
        assert_eq!((message.stop_reason, message.error_message), expected);
    }
}

#[tokio::test]
async fn moonshot_reports_usage_in_the_choice() {
    let mut last = finish("stop");
    last["choices"][0]["usage"] = json!({"prompt_tokens": 7, "completion_tokens": 3});
    let (message, _) = stream_of(&[last]).await;
    assert_eq!((message.usage.input, message.usage.output), (7, 3));
}
