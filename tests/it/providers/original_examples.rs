//! The original's examples of providers as published on npm, each with a session that uses it.

use std::fs;

use model_server::{Answer, Api, ModelServer};
use serde_json::json;

use crate::support::{Home, Rpc, prompt};

fn start(home: &Home, variables: &[(&str, &str)]) -> Rpc {
    let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
    command
        .args(["--mode", "rpc"])
        .envs(variables.iter().copied());
    Rpc::start(command)
}

async fn use_model(rpc: &mut Rpc, provider: &str, id: &str) {
    rpc.ok(json!({"type": "set_model", "provider": provider, "modelId": id}))
        .await;
}

/// The example uses its own client, Anthropic's SDK, in the extension host.
#[tokio::test]
async fn custom_provider_anthropic() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.example("custom-provider-anthropic");
    // Loaded after the other: the same provider with another address.
    home.extension(
        "there.ts",
        &format!(
            r#"export default (pi) => pi.registerProvider("custom-anthropic", {{ baseUrl: {:?} }});"#,
            server.url()
        ),
    );
    let mut rpc = start(&home, &[("CUSTOM_ANTHROPIC_API_KEY", "sk-custom")]);
    use_model(&mut rpc, "custom-anthropic", "claude-sonnet-4-5").await;
    server.push(Answer::thinking("Look.").then_tool("bash", json!({"command": "echo there"})));
    server.push(Answer::text("It is there."));
    rpc.ok(prompt("look")).await;
    let ran = rpc.event("tool_execution_end").await;
    assert!(ran.to_string().contains("there"), "{ran}");
    let end = rpc.event("agent_end").await;
    let last = end["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"][0]["text"], "It is there.");
    assert_eq!(
        (&last["api"], &last["provider"]),
        (&json!("custom-anthropic-api"), &json!("custom-anthropic"))
    );
    assert_ne!(last["usage"]["totalTokens"], 0);
    let request = server.last_request();
    assert_eq!(request.headers["x-api-key"], "sk-custom");
    assert!(request.body.to_string().contains("there"));
}

/// The sign-in returns the address of the models.
#[tokio::test]
async fn custom_provider_qwen_cli() {
    let server = ModelServer::start().await;
    let home = Home::with_api(&server, Api::OpenAiCompletions);
    home.example("custom-provider-qwen-cli");
    let signed_in = json!({"qwen-cli": {"type": "oauth", "access": "qwen-token", "refresh": "r",
        "expires": 9_999_999_999_999u64, "enterpriseUrl": format!("{}/v1", server.url())}});
    fs::write(home.agent_dir().join("auth.json"), signed_in.to_string()).unwrap();
    let mut rpc = start(&home, &[]);
    use_model(&mut rpc, "qwen-cli", "vision-model").await;
    server.push(Answer::text("Ni hao."));
    assert_eq!(rpc.answer_to("hello").await, "Ni hao.");
    let request = server.last_request();
    assert_eq!(request.headers["authorization"], "Bearer qwen-token");
    assert_eq!(request.body["enable_thinking"], true);
}

/// The example fetches a token first and passes the request on to an API of pi. There is no network
/// here: an extension plays GitLab, and the gateway is missing.
#[tokio::test]
async fn custom_provider_gitlab_duo() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "aa-gitlab.ts",
        r#"export default () => { const real = fetch; globalThis.fetch = (url, init) =>
            String(url).startsWith("https://gitlab.com/") ? Promise.resolve(new Response(
              JSON.stringify({ token: init.headers.Authorization, headers: { "x-gitlab": "1" } })))
            : real(url, init); };"#,
    );
    home.example("custom-provider-gitlab-duo");
    let nowhere = "http://127.0.0.1:9";
    let mut rpc = start(
        &home,
        &[("GITLAB_TOKEN", "glpat"), ("HTTPS_PROXY", nowhere)],
    );
    let models = rpc
        .ok(json!({"type": "get_available_models"}))
        .await
        .to_string();
    assert!(
        models.contains("gpt-5-codex") && models.contains("gitlab-duo-api"),
        "{models}"
    );
    use_model(&mut rpc, "gitlab-duo", "claude-sonnet-4-5-20250929").await;
    rpc.ok(json!({"type": "set_auto_retry", "enabled": false}))
        .await;
    rpc.ok(prompt("hello")).await;
    let end = rpc.event("agent_end").await;
    let last = end["messages"].as_array().unwrap().last().unwrap().clone();
    let error = last["errorMessage"].as_str().unwrap_or_default();
    assert!(error.starts_with("Connection error."), "{last}");
}

#[tokio::test]
async fn provider_payload() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.example("provider-payload.ts");
    home.file(".pi/keep", "");
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("Seen."));
    rpc.run("look at this").await;
    let log = fs::read_to_string(home.cwd().join(".pi/provider-payload.log")).unwrap();
    assert!(log.contains("look at this") && log.contains("200"), "{log}");
}

#[tokio::test]
async fn a_missing_default_model_is_reported() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    for (provider, id, reported) in [
        (
            "nobody",
            "x",
            "defaultProvider: there is no provider \"nobody\". Using scripted/scripted-1",
        ),
        (
            "scripted",
            "x",
            "defaultModel: scripted has no model \"x\". Using scripted/scripted-1",
        ),
    ] {
        let settings = json!({"defaultProvider": provider, "defaultModel": id});
        fs::write(home.agent_dir().join("settings.json"), settings.to_string()).unwrap();
        server.push(Answer::text("well"));
        let done = home.run(&["-p", "hello"], "").await;
        assert!(done.stderr.contains(reported), "{done:#?}");
        done.ok();
    }
}
