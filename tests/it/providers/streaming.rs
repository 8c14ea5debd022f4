//! Providers that extensions register: models, keys, and answers that JavaScript streams to the
//! agent.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, blocks, message_end, prompt, text_of};

/// Answers as the last user message says, in the ways a provider can.
const PROVIDER: &str = include_str!("fixtures/streaming/provider.ts");

fn home() -> Home {
    let home = Home::bare();
    home.settings(json!({}));
    home.extension("mine.ts", PROVIDER);
    home
}

/// The provider's key comes from the environment variable `MINE_KEY`.
fn start(home: &Home, arguments: &[&str]) -> crate::support::Rpc {
    let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
    command.args(["--mode", "rpc"]).args(arguments);
    command.env("MINE_KEY", "secret");
    crate::support::Rpc::start(command)
}

async fn recorded_requests(rpc: &mut crate::support::Rpc) -> Value {
    rpc.ok(prompt("/asked")).await;
    let reported = rpc.ui("notify").await;
    serde_json::from_str(reported["message"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn a_whole_session_runs_on_a_provider_in_javascript() {
    let home = home();
    home.settings(
        json!({"transport": "websocket-cached", "retry": {"provider": {"maxRetryDelayMs": 500}}}),
    );
    let mut rpc = start(&home, &["--model", "mine/m2", "--thinking", "high"]);
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["model"]["baseUrl"], "http://mine");

    // Text, with the provider hooks.
    rpc.ok(prompt("hooked")).await;
    let delta = rpc.event("message_update").await;
    assert_eq!(delta["message"]["provider"], "mine");
    let end = rpc.wait("an answer", message_end("assistant")).await;
    assert_eq!(text_of(&end["message"]), "echo changed");
    assert_eq!(blocks(&end["message"]["content"], "thinking"), "hm");
    assert_eq!(end["message"]["content"][0]["thinkingSignature"], "sig");
    assert_eq!(end["message"]["usage"]["cost"]["input"], json!(0.003));
    rpc.event("agent_end").await;
    let seen = recorded_requests(&mut rpc).await;
    assert_eq!(seen[0]["options"]["apiKey"], "secret");
    assert_eq!(seen[0]["options"]["reasoning"], "high");
    assert_eq!(seen[0]["options"]["transport"], "websocket-cached");
    assert_eq!(seen[0]["options"]["maxRetryDelayMs"], 500);
    assert_eq!(
        seen[0]["options"]["headers"],
        json!({"x-a": "secret", "x-b": "2", "Authorization": "Bearer secret"})
    );
    assert_eq!(seen[0]["system"], true);
    assert_eq!(seen[1], json!({"x-mine": "yes"}));

    // A tool and its result.
    rpc.ok(prompt("use echo hi")).await;
    let call = rpc.event("tool_execution_start").await;
    assert_eq!(call["args"], json!({"command": "echo hi"}));
    rpc.event("agent_end").await;
    let output = rpc.ok(json!({"type": "get_last_assistant_text"})).await;
    assert_eq!(output["text"], "echo tool said hi");

    // A transient failure is retried.
    rpc.ok(prompt("fail")).await;
    rpc.event("auto_retry_start").await;
    assert_eq!(rpc.event("auto_retry_end").await["success"], true);
    rpc.event("agent_end").await;

    // An abort reaches the signal, and the text until then is kept.
    rpc.ok(prompt("hang")).await;
    rpc.wait("a delta", |event| {
        event["assistantMessageEvent"]["delta"] == "so far"
    })
    .await;
    rpc.ok(json!({"type": "abort"})).await;
    let end = rpc.wait("an answer", message_end("assistant")).await;
    assert_eq!(end["message"]["stopReason"], "aborted");
    assert_eq!(text_of(&end["message"]), "so far");

    // The session's model follows changes of its provider.
    recorded_requests(&mut rpc).await;
    rpc.ok(prompt("/move")).await;
    rpc.run("where").await;
    assert_eq!(
        recorded_requests(&mut rpc).await[0]["baseUrl"],
        "http://moved"
    );
    rpc.ok(json!({"type": "reload"})).await;
    rpc.run("where").await;
    assert_eq!(
        recorded_requests(&mut rpc).await[0]["baseUrl"],
        "http://mine"
    );

    let models = rpc.ok(json!({"type": "get_available_models"})).await;
    let models = models["models"].as_array().unwrap().clone();
    let ids: Vec<&str> = models.iter().filter_map(|m| m["id"].as_str()).collect();
    assert_eq!(ids, ["m1", "m2"]);
    rpc.ok(json!({"type": "set_model", "provider": "mine", "modelId": "m1"}))
        .await;
    rpc.ok(prompt("/bad")).await;
    rpc.notified(
        "Provider bad: \"api\" is required when registering streamSimple.|\
         Provider bad: \"baseUrl\" is required when defining models.|\
         Provider bad: \"apiKey\" or \"oauth\" is required when defining models.|\
         Provider bad, model x: no \"api\" specified.",
    )
    .await;
    rpc.ok(prompt("/override")).await;
    rpc.notified("http://proxy https://api.anthropic.com").await;
    rpc.ok(prompt("/drop")).await;
    let models = rpc.ok(json!({"type": "get_available_models"})).await;
    assert_eq!(models["models"], json!([]));
}

#[tokio::test]
async fn providers_are_listed_and_mistakes_are_reported() {
    let home = home();
    home.extension(
        "wrong.ts",
        r#"export default (pi) => { pi.registerProvider("wrong", { models: [{ id: "x" }] });
             pi.registerCommand("still", { handler: async () => {} }); }"#,
    );
    let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
    command.arg("--list-models").env("MINE_KEY", "k");
    let listed = crate::support::finish(command, "").await;
    assert!(
        listed
            .stderr
            .contains("wrong.ts\" error: Provider wrong: \"baseUrl\""),
        "{listed:#?}"
    );
    let table = listed.ok();
    assert!(table.contains("mine      m1     100K     4.1K"), "{table}");

    let mut rpc = start(&home, &[]);
    let reported = rpc.event("extension_error").await;
    assert_eq!(reported["event"], "register_provider");
    let commands = rpc.ok(json!({"type": "get_commands"})).await.to_string();
    assert!(commands.contains("still"), "{commands}");
}

#[tokio::test]
async fn apis_are_shared_between_pi_and_javascript() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "apis.ts",
        include_str!("fixtures/streaming/apis-are-shared-between-pi-and-javascript.ts"),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go faux")).await;
    rpc.ok(prompt("hello")).await;
    let call = rpc.event("tool_execution_start").await;
    assert_eq!(call["args"], json!({"command": "echo 1"}));
    rpc.event("agent_end").await;
    let output = rpc.ok(json!({"type": "get_last_assistant_text"})).await;
    assert_eq!(output["text"], "seen 3");
    rpc.ok(prompt("/look")).await;
    rpc.notified("true true Mismatched api: x expected faux-api direct 3")
        .await;

    server.push(Answer::text("through the program"));
    rpc.ok(json!({"type": "set_model", "provider": "scripted", "modelId": "scripted-1"}))
        .await;
    rpc.ok(prompt("/go wrap")).await;
    assert_eq!(rpc.answer_to("again").await, "through the program");
    let request = server.last_request();
    assert_eq!(request.body["metadata"], json!({"user_id": "me"}));
    assert_eq!(request.body["model"], "wrapped");
}

#[tokio::test]
async fn an_invalid_stream_costs_only_the_answer() {
    let home = Home::bare();
    home.settings(json!({}));
    home.extension(
        "odd.ts",
        include_str!("fixtures/streaming/an-invalid-stream-costs-only-the-answer.ts"),
    );
    let mut rpc = home.rpc(&["--model", "odd/o"]);
    for (way, stop, output) in [
        ("throws", "error", "cannot"),
        ("nothing", "error", "must return an event stream"),
        ("ends", "error", "without a done or error event"),
        ("junk", "stop", "fine"),
        ("broken", "stop", "no array"),
        ("rejects", "error", "deep down"),
        ("timer", "error", "in a timer"),
        ("later", "stop", "fine"),
        ("own", "stop", "mine"),
    ] {
        // The failures must not be retried.
        rpc.ok(json!({"type": "set_auto_retry", "enabled": false}))
            .await;
        rpc.ok(prompt(way)).await;
        let end = rpc.wait("an answer", message_end("assistant")).await;
        let message = &end["message"];
        assert_eq!(message["stopReason"], stop, "{way}: {message}");
        assert!(message.to_string().contains(output), "{way}: {message}");
        rpc.event("agent_end").await;
    }
    let is_report = |line: &Value| {
        let error = line["error"].as_str().unwrap_or_default();
        error.contains("no event \"unheard_of\"")
    };
    rpc.find(0, "the report of \"later\"", is_report).await;
}
