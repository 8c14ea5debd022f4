//! Several extensions that use the same names of providers and APIs, and hand-written values for
//! which our wire APIs would be too strict.

use std::fs;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, prompt};

/// A provider `name` with one model, `m`, that answers with `name`.
fn provider(name: &str, api: &str) -> String {
    format!(
        r#"pi.registerProvider("{name}", {{ baseUrl: "http://{name}", apiKey: "k", api: "{api}",
             models: [{{ id: "m", name: "m", reasoning: false, input: ["text"], contextWindow: 1000, maxTokens: 10,
               cost: {{ input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }} }}],
             streamSimple: (model) => {{ const s = createAssistantMessageEventStream();
               s.push({{ type: "done", message: {{ content: [{{ type: "text", text: "{name} at " + model.baseUrl }}] }} }});
               return s; }} }});"#
    )
}

fn extension(body: &str) -> String {
    format!(
        "import {{ createAssistantMessageEventStream, complete, completeSimple }} from \"@mariozechner/pi-ai\";\n\
         export default (pi) => {{ {body} }};"
    )
}

#[tokio::test]
async fn a_failed_load_keeps_providers_of_other_extensions() {
    let home = Home::bare();
    home.extension("1.ts", &extension(&provider("p", "shared")));
    let override_it = r#"pi.registerProvider("p", { baseUrl: "http://elsewhere" });"#;
    let other = provider("q", "shared");
    home.extension(
        "2.ts",
        &extension(&format!(r#"{override_it} {other} throw new Error("no");"#)),
    );
    let mut rpc = home.rpc(&["--model", "p/m"]);
    rpc.event("extension_error").await;
    assert_eq!(rpc.answer_to("hi").await, "p at http://p");
    let models = rpc.ok(json!({"type": "get_available_models"})).await;
    assert_eq!(models["models"].as_array().unwrap().len(), 1, "{models}");
}

#[tokio::test]
async fn a_provider_of_an_extension_can_be_named_alone() {
    let home = Home::bare();
    home.extension("1.ts", &extension(&provider("p", "own")));
    let output = home.run(&["--provider", "p", "-p", "hi"], "").await.ok();
    assert_eq!(output, "p at http://p\n");
    let unknown = home.run(&["--provider", "nobody", "-p", "hi"], "").await;
    assert_eq!(unknown.status.code(), Some(1));
    let text = "Unknown provider \"nobody\"";
    assert!(unknown.stderr.contains(text), "{}", unknown.stderr);
}

#[tokio::test]
async fn an_unregistered_provider_gives_its_api_back() {
    let home = Home::bare();
    let both = [provider("a", "shared"), provider("b", "shared")].concat();
    let drop =
        r#"pi.registerCommand("drop", { handler: async () => pi.unregisterProvider("b") });"#;
    home.extension("1.ts", &extension(&format!("{both}{drop}")));
    let mut rpc = home.rpc(&["--model", "a/m"]);
    // An API belongs to its last registration, as in the original.
    assert_eq!(rpc.answer_to("hi").await, "b at http://a");
    rpc.ok(prompt("/drop")).await;
    assert_eq!(rpc.answer_to("hi").await, "a at http://a");
}

#[tokio::test]
async fn models_of_a_list_may_have_unknown_members() {
    let home = Home::bare();
    home.extension(
        "1.ts",
        r#"export default (pi) => pi.registerProvider("listed", { baseUrl: "u", apiKey: "k", api: "openai-completions",
             headers: { "x-none": null, "x-number": 5 },
             models: [{ id: "one", input: ["text", "audio"], contextWindow: "128000", maxTokens: Infinity, reasoning: "yes",
                        cost: { input: "1", output: 2 } }, { id: 2 }] });"#,
    );
    let mut rpc = home.rpc(&[]);
    let models = rpc.ok(json!({"type": "get_available_models"})).await;
    let seen: Vec<Value> = (models["models"].as_array().unwrap().iter())
        .map(|model| {
            json!([
                model["id"],
                model["input"],
                model["contextWindow"],
                model["maxTokens"],
                model["reasoning"],
                model["cost"]["input"]
            ])
        })
        .collect();
    let expected = json!([
        ["one", ["text"], 128_000, 16_384, true, 1],
        ["2", ["text"], 128_000, 16_384, false, 0]
    ]);
    assert_eq!(json!(seen), expected);
}

#[tokio::test]
async fn hand_written_values_reach_the_request() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    let body = r#"
      pi.registerCommand("ask", { handler: async (name, ctx) => {
        const { apiKey } = await ctx.modelRegistry.getApiKeyAndHeaders(ctx.model);
        const { id, api, baseUrl } = ctx.model;
        const user = { role: "user", content: "hello" };
        const guard = () => { throw new Error("not this one"); };
        const [messages, options] = {
          plain: [[user], { maxTokens: 10.5, headers: null, reasoning: "max" }],
          said: [[user, { role: "assistant", content: [{ type: "text", text: "yo" }, { type: "toolCall", id: "1", name: "t" }] },
            { role: "toolResult", toolCallId: "1", content: "seen" }, { role: "custom", content: "x" }, user], {}],
          payload: [[user], { onPayload: guard }],
          response: [[user], { onResponse: async () => guard() }],
          level: [[user], { reasoning: "very" }],
          message: [[user, { role: "user", content: [{ type: "text", text: "a" }], timestamp: "then" }], {}],
        }[name];
        const ask = name === "level" ? completeSimple : complete;
        const answer = await ask({ id, api, baseUrl }, { messages, tools: null }, { apiKey, ...options });
        ctx.ui.notify(answer.errorMessage ?? answer.content[0].text);
      } });"#;
    home.extension("1.ts", &extension(body));
    let mut rpc = home.rpc(&[]);
    for (name, answer, requested) in [
        ("plain", "Fine.", 1),
        ("said", "Fine.", 2),
        ("payload", "not this one", 2),
        ("response", "not this one", 3),
        (
            "level",
            "There is no thinking level \"very\". The levels are: off, minimal, low, medium, high, xhigh, max",
            3,
        ),
        ("message", "Fine.", 4),
    ] {
        rpc.ok(prompt(&format!("/ask {name}"))).await;
        let output = rpc.ui("notify").await["message"].clone();
        let output = output.as_str().unwrap();
        assert!(output.ends_with(answer), "{name}: {output}");
        assert_eq!(server.requests().len(), requested, "{name}");
    }
    let output = &server.requests()[1].body["messages"];
    let calls = output[1]["content"].to_string();
    assert!(
        calls.contains("yo") && calls.contains("tool_use"),
        "{output}"
    );
}

#[tokio::test]
async fn observing_requests_does_not_change_a_javascript_provider() {
    let home = Home::bare();
    home.extension(
        "watch.ts",
        r#"export default (pi) => {
             pi.on("before_provider_request", (event) => event.payload.change ? { ...event.payload, changed: true } : undefined);
             pi.on("after_provider_response", (event, ctx) => ctx.ui.notify(JSON.stringify([event.status, event.headers]))); };"#,
    );
    home.extension("mine.ts", include_str!("fixtures/shared-names.ts"));
    let mut rpc = home.rpc(&["--model", "mine/m"]);
    rpc.ok(prompt("hi")).await;
    rpc.notified(r#"[200,{"set-cookie":"a, b"}]"#).await;
    let of_fetch = rpc.ui("notify").await["message"].to_string();
    assert!(
        of_fetch.contains("201") && of_fetch.contains("x-of"),
        "{of_fetch}"
    );
    rpc.event("agent_end").await;
    let output = rpc.ok(json!({"type": "get_last_assistant_text"})).await;
    assert_eq!(output["text"], r#"[true,{"change":true,"changed":true}]"#);
}

#[tokio::test]
async fn an_answer_with_odd_numbers_is_stored() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let file = home.cwd().join("s.jsonl");
    let entry = |id: u32, message: Value| {
        json!({"type": "message", "id": format!("m{id}"), "parentId": (id > 0).then(|| format!("m{}", id - 1)),
            "timestamp": "2025-01-01T00:00:00.000Z", "message": message})
    };
    let answer = |usage: Value, more: Value| {
        let mut message = json!({"role": "assistant", "content": [{"type": "text", "text": "said"}],
            "api": "x", "provider": "y", "model": "z", "usage": usage, "stopReason": "stop", "timestamp": 1});
        for (name, value) in more.as_object().unwrap() {
            message[name] = value.clone();
        }
        message
    };
    let user = json!({"role": "user", "content": "go", "timestamp": 1});
    let cost = json!({"input": 0.5, "output": null, "cacheRead": 0, "cacheWrite": 0, "total": 0.5});
    let lines = [
        json!({"type": "session", "version": 3, "id": "s", "timestamp": "2025-01-01T00:00:00.000Z", "cwd": home.cwd()}),
        entry(0, user),
        entry(
            1,
            answer(
                json!({"input": 10.6, "output": -3, "cacheRead": null, "cost": cost}),
                json!({}),
            ),
        ),
        entry(
            2,
            answer(
                Value::Null,
                json!({"stopReason": "end_turn", "timestamp": "2025-01-01T00:00:00Z"}),
            ),
        ),
    ];
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(&file, text.join("\n") + "\n").unwrap();
    let mut rpc = home.rpc(&["--session", file.to_str().unwrap()]);
    let messages = rpc.ok(json!({"type": "get_messages"})).await;
    assert_eq!(
        messages["messages"].as_array().unwrap().len(),
        3,
        "{messages}"
    );
    assert_eq!(messages["messages"][1]["usage"]["input"], 11);
    assert_eq!(messages["messages"][2]["stopReason"], "stop");
    let stats = rpc.ok(json!({"type": "get_session_stats"})).await;
    assert_eq!(stats["tokens"]["output"], 0, "{stats}");
    assert_eq!(stats["cost"], 0.5, "{stats}");
    server.push(Answer::text("Gone on."));
    rpc.run("on").await;
    assert_eq!(
        server.last_request().body["messages"][1]["role"],
        "assistant"
    );
}
