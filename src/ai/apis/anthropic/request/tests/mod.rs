mod validity;

use serde_json::{Value, json};

use super::{body, build_request};
use crate::apis::options::Retention;
use crate::http::exchange::HttpRequest;
use crate::message::{
    AssistantBlock, ContentBlock, Message, StopReason, ThinkingContent, UserMessage,
};
use crate::model::{Modality, Model, ThinkingLevel};
use crate::stream::Request;
use crate::testing::{
    answer, answer_of, call, model, picture, request_for, result, text, thinking, tool, user,
};

const ANTHROPIC_API: &str = "anthropic-messages";

fn claude(id: &str) -> Model {
    Model {
        id: id.into(),
        ..model(ANTHROPIC_API)
    }
}

fn call_of(request: &Request) -> HttpRequest {
    build_request(request).unwrap().0
}

fn header<'a>(call: &'a HttpRequest, name: &str) -> Option<&'a str> {
    call.headers.get(name).map(|value| value.to_str().unwrap())
}

#[test]
fn an_empty_list_of_tools_is_another_thing_than_none() {
    let mut request = request_for(claude("claude-old"), vec![user("hello")]);
    let tools = |request: &Request| body(request, false, Retention::Short).get("tools").cloned();
    assert_eq!(tools(&request), None);
    request.tools = Some(vec![]);
    assert_eq!(tools(&request), Some(json!([])));
}

#[test]
fn retention_none_sets_no_cache_marks() {
    let mut request = request_for(claude("claude-old"), vec![user("hello")]);
    request.tools = Some(vec![tool("read")]);
    let marks = |retention| {
        body(&request, false, retention)
            .to_string()
            .matches("cache_control")
            .count()
    };
    assert_eq!((marks(Retention::None), marks(Retention::Short)), (0, 3));
}

#[test]
fn a_request() {
    let mut request = request_for(claude("claude-old"), vec![user("hello")]);
    request.tools = Some(vec![tool("read"), tool("bash")]);
    request.options.temperature = Some(0.5);
    let cache = json!({"type": "ephemeral"});
    let schema = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    });
    assert_eq!(
        body(&request, false, Retention::Short),
        json!({
            "model": "claude-old",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": cache}]},
            ],
            "max_tokens": 32000,
            "stream": true,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": cache}],
            "temperature": 0.5,
            "tools": [
                {"name": "read", "description": "The tool read", "input_schema": schema},
                {"name": "bash", "description": "The tool bash", "input_schema": schema, "cache_control": cache},
            ],
            "thinking": {"type": "disabled"},
        })
    );
}

#[test]
fn headers_of_an_api_key() {
    let call = call_of(&request_for(claude("claude-old"), vec![]));
    assert_eq!(call.url, "http://test/v1/messages");
    assert_eq!(header(&call, "x-api-key"), Some("key"));
    assert_eq!(header(&call, "authorization"), None);
    assert_eq!(header(&call, "anthropic-version"), Some("2023-06-01"));
    assert_eq!(
        header(&call, "anthropic-beta"),
        Some("fine-grained-tool-streaming-2025-05-14,interleaved-thinking-2025-05-14")
    );
    let call = call_of(&request_for(claude("claude-opus-4-6"), vec![]));
    assert_eq!(
        header(&call, "anthropic-beta"),
        Some("fine-grained-tool-streaming-2025-05-14")
    );
}

#[test]
fn subscriptions_speak_as_claude_code() {
    let history = claude("claude-old");
    let mut request = request_for(
        history.clone(),
        vec![
            user("hello"),
            answer(&history, vec![call("t1", "todowrite", json!({}))]),
            result("t1", vec![ContentBlock::text("ok")]),
        ],
    );
    request.options.api_key = Some("sk-ant-oat01-x".into());
    request.tools = Some(vec![tool("read"), tool("mine")]);
    let call = call_of(&request);
    assert_eq!(
        header(&call, "authorization"),
        Some("Bearer sk-ant-oat01-x")
    );
    assert_eq!(header(&call, "x-api-key"), None);
    assert_eq!(header(&call, "user-agent"), Some("claude-cli/2.1.75"));
    assert_eq!(header(&call, "x-app"), Some("cli"));
    assert_eq!(
        header(&call, "anthropic-beta"),
        Some(
            "claude-code-20250219,oauth-2025-04-20,fine-grained-tool-streaming-2025-05-14,\
             interleaved-thinking-2025-05-14"
        )
    );
    let system: Vec<&Value> = call.body["system"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| &block["text"])
        .collect();
    assert_eq!(
        system,
        [
            "You are Claude Code, Anthropic's official CLI for Claude.",
            "Be brief."
        ]
    );
    assert_eq!(call.body["tools"][0]["name"], "Read");
    assert_eq!(call.body["tools"][1]["name"], "mine");
    assert_eq!(call.body["messages"][1]["content"][0]["name"], "TodoWrite");
}

#[test]
fn copilot_gets_the_initiator_and_a_bearer_token() {
    let mut model = claude("claude-old");
    model.provider = "github-copilot".into();
    model.headers = Some([("Editor-Version".to_owned(), "x/1".to_owned())].into());
    let pictures = vec![ContentBlock::image(picture())];
    let mut request = request_for(model.clone(), vec![user("a"), result("t", pictures)]);
    request.options.headers.insert("X-Mine".into(), "1".into());
    let call = call_of(&request);
    assert_eq!(header(&call, "authorization"), Some("Bearer key"));
    assert_eq!(
        header(&call, "anthropic-beta"),
        Some("interleaved-thinking-2025-05-14")
    );
    assert_eq!(header(&call, "x-initiator"), Some("agent"));
    assert_eq!(header(&call, "openai-intent"), Some("conversation-edits"));
    assert_eq!(header(&call, "copilot-vision-request"), Some("true"));
    assert_eq!(header(&call, "editor-version"), Some("x/1"));
    assert_eq!(header(&call, "x-mine"), Some("1"));
    let call = call_of(&request_for(model, vec![user("a")]));
    assert_eq!(header(&call, "x-initiator"), Some("user"));
    assert_eq!(header(&call, "copilot-vision-request"), None);
}

#[test]
fn long_retention_is_for_anthropic_itself() {
    let mut request = request_for(claude("claude-old"), vec![user("a")]);
    let ttl = |request: &Request| {
        body(request, false, Retention::Long)["system"][0]["cache_control"].clone()
    };
    assert_eq!(ttl(&request), json!({"type": "ephemeral"}));
    std::sync::Arc::make_mut(&mut request.model).base_url = "https://api.anthropic.com".into();
    assert_eq!(ttl(&request), json!({"type": "ephemeral", "ttl": "1h"}));
}

#[test]
fn thinking_by_model_and_level() {
    use ThinkingLevel::{High, Low, Medium, Minimal, Off, Xhigh};
    let adaptive = json!({"type": "adaptive", "display": "summarized"});
    let budget =
        |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens, "display": "summarized"});
    let none = Value::Null;
    for (id, max_tokens, level, thinking, effort, expected_max) in [
        (
            "claude-opus-4-6",
            64_000,
            Xhigh,
            &adaptive,
            json!("max"),
            32_000,
        ),
        (
            "claude-opus-4.7",
            64_000,
            Xhigh,
            &adaptive,
            json!("xhigh"),
            32_000,
        ),
        (
            "claude-sonnet-4-6",
            64_000,
            Xhigh,
            &adaptive,
            json!("high"),
            32_000,
        ),
        (
            "claude-sonnet-4-6",
            64_000,
            Minimal,
            &adaptive,
            json!("low"),
            32_000,
        ),
        (
            "claude-sonnet-4-6",
            64_000,
            Medium,
            &adaptive,
            json!("medium"),
            32_000,
        ),
        (
            "claude-sonnet-4-6",
            64_000,
            Off,
            &json!({"type": "disabled"}),
            none.clone(),
            32_000,
        ),
        (
            "claude-old",
            64_000,
            Minimal,
            &budget(1024),
            none.clone(),
            33_024,
        ),
        (
            "claude-old",
            64_000,
            Xhigh,
            &budget(16_384),
            none.clone(),
            48_384,
        ),
        (
            "claude-old",
            8_192,
            High,
            &budget(7_168),
            none.clone(),
            8_192,
        ),
        (
            "claude-old",
            64_000,
            Low,
            &budget(5_000),
            none.clone(),
            37_000,
        ),
    ] {
        let model = Model {
            max_tokens,
            ..claude(id)
        };
        let mut request = request_for(model, vec![user("a")]);
        request.options.reasoning = Some(level);
        request.options.temperature = Some(1.0);
        request.options.thinking_budgets = [(Low, 5_000)].into();
        let body = body(&request, false, Retention::Short);
        let found = (
            &body["thinking"],
            &body["output_config"]["effort"],
            &body["max_tokens"],
        );
        assert_eq!(
            found,
            (thinking, &effort, &json!(expected_max)),
            "{id} {level:?}"
        );
        assert_eq!(
            body.get("temperature").is_some(),
            level == Off,
            "{id} {level:?}"
        );
    }
    let plain = Model {
        reasoning: false,
        ..claude("claude-old")
    };
    let mut request = request_for(plain, vec![user("a")]);
    request.options.reasoning = Some(High);
    assert_eq!(
        body(&request, false, Retention::Short).get("thinking"),
        None
    );
}

fn messages_of(model: &Model, messages: Vec<Message>) -> Value {
    let mut body = body(
        &request_for(model.clone(), messages),
        false,
        Retention::Short,
    );
    body["messages"].take()
}

#[test]
fn own_thoughts_go_back_signed_and_results_are_gathered() {
    let model = claude("claude-old");
    let redacted = AssistantBlock::Thinking(ThinkingContent {
        thinking: "[Reasoning redacted]".into(),
        thinking_signature: Some("data".into()),
        redacted: Some(true),
    });
    let messages = messages_of(
        &model,
        vec![
            user("go"),
            answer(
                &model,
                vec![
                    thinking("hm", Some("sig")),
                    thinking("unsigned", Some("")),
                    thinking(" ", None),
                    redacted,
                    text(" "),
                    text("both"),
                    call("t1", "read", json!({"path": "a"})),
                    call("t2", "read", json!({"path": "b"})),
                    call("t3", "read", json!({})),
                ],
            ),
            result(
                "t1",
                vec![ContentBlock::text("one"), ContentBlock::text("two")],
            ),
            result("t2", vec![ContentBlock::image(picture())]),
            user("next"),
        ],
    );
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
    assert_eq!(
        messages,
        json!([
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "text", "text": "unsigned"},
                {"type": "redacted_thinking", "data": "data"},
                {"type": "text", "text": "both"},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "t2", "name": "read", "input": {"path": "b"}},
                {"type": "tool_use", "id": "t3", "name": "read", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "one\ntwo", "is_error": false},
                {"type": "tool_result", "tool_use_id": "t2", "content": [
                    {"type": "text", "text": "(see attached image)"}, image,
                ], "is_error": false},
                {"type": "tool_result", "tool_use_id": "t3", "content": "No result provided", "is_error": true},
            ]},
            {"role": "user", "content": [
                {"type": "text", "text": "next", "cache_control": {"type": "ephemeral"}},
            ]},
        ])
    );
}

#[test]
fn foreign_answers_lose_their_signatures_and_their_ids_fit() {
    let other = Model {
        provider: "openai".into(),
        api: "openai-responses".into(),
        ..claude("gpt")
    };
    let id = format!("call_1|fc_{}", "+".repeat(90));
    let fitting = format!("call_1_fc_{}", "_".repeat(54));
    let mut failed = answer_of(&other, vec![text("half")]);
    failed.stop_reason = StopReason::Error;
    let messages = messages_of(
        &claude("claude-old"),
        vec![
            user("go"),
            answer(
                &other,
                vec![thinking("hm", Some("{}")), call(&id, "read", json!({}))],
            ),
            result(&id, vec![ContentBlock::text("x")]),
            Message::Assistant(failed),
        ],
    );
    assert_eq!(
        messages,
        json!([
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "hm"},
                {"type": "tool_use", "id": fitting, "name": "read", "input": {}},
            ]},
            {"role": "user", "content": [{
                "type": "tool_result", "tool_use_id": fitting, "content": "x", "is_error": false,
                "cache_control": {"type": "ephemeral"},
            }]},
        ])
    );
}

#[test]
fn models_without_eyes_get_no_pictures() {
    let model = Model {
        input: vec![Modality::Text],
        ..claude("claude-old")
    };
    let messages = messages_of(
        &model,
        vec![
            user("go"),
            Message::User(UserMessage::new("", vec![picture()])),
            answer(&model, vec![call("t", "read", json!({}))]),
            result("t", vec![ContentBlock::image(picture())]),
        ],
    );
    assert_eq!(messages.as_array().unwrap().len(), 3);
    assert_eq!(messages[2]["content"][0]["content"], "(see attached image)");
}

#[test]
fn compat_selects_adaptive_thinking() {
    let model = Model {
        compat: Some(json!({"forceAdaptiveThinking": true, "supportsTemperature": false})),
        thinking_level_map: serde_json::from_value(json!({"off": "none", "max": "max"})).unwrap(),
        ..claude("claude-opus-9")
    };
    let mut request = request_for(model, vec![user("go")]);
    request.options.reasoning = Some(ThinkingLevel::Max);
    let sent = body(&request, false, Retention::Short);
    let adaptive = json!({"type": "adaptive", "display": "summarized"});
    assert_eq!(sent["thinking"], adaptive);
    assert_eq!(sent["output_config"], json!({"effort": "max"}));
    request.options.reasoning = None;
    request.options.temperature = Some(0.5);
    let sent = body(&request, false, Retention::Short);
    assert_eq!(sent.get("temperature"), None);
}

#[test]
fn schemas_keep_definitions_of_their_properties() {
    let mut request = request_for(claude("claude-old"), vec![]);
    let mut spec = tool("x");
    spec.parameters = json!({
        "$schema": "s", "type": "object", "anyOf": [],
        "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}},
        "additionalProperties": false,
    });
    request.tools = Some(vec![spec]);
    assert_eq!(
        body(&request, false, Retention::Short)["tools"][0]["input_schema"],
        json!({
            "type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "required": [],
            "$defs": {"a": {"type": "string"}}, "additionalProperties": false,
        })
    );
}
