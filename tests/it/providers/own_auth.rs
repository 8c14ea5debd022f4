//! Providers with an `auth` of their own (an object with getModels()), as newer versions compose
//! them. Such providers were refused.

use std::fs;

use model_server::{Answer, Api, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, prompt};

/// An extension in which `body` registers providers; `echo(id, auth)` is a provider that answers
/// with the credentials it got.
fn extension(body: &str) -> String {
    format!(
        r#"import {{ createAssistantMessageEventStream, createProvider, openAICompletionsApi }} from "@earendil-works/pi-ai";
        import {{ existsSync, readFileSync }} from "node:fs";
        const cost = {{ input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }};
        const model = (provider) => ({{ id: "m", name: "m", provider, api: `${{provider}}-api`, baseUrl: "http://default", reasoning: false,
          input: ["text"], cost, contextWindow: 200000, maxTokens: 900 }});
        const echo = (id, auth) => {{
          const streamSimple = (model, _context, options) => {{
            const stream = createAssistantMessageEventStream();
            const usage = {{ input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: {{ ...cost, total: 0 }} }};
            const text = JSON.stringify([model.baseUrl, options.apiKey ?? null, options.headers?.["x-who"] ?? null, options.env ?? null]);
            stream.push({{ type: "done", reason: "stop", message: {{ role: "assistant", content: [{{ type: "text", text }}], api: model.api,
              provider: id, model: model.id, usage, stopReason: "stop", timestamp: 1 }} }});
            stream.end();
            return stream;
          }};
          return {{ id, name: id, auth, getModels: () => [model(id)], stream: streamSimple, streamSimple }};
        }};
        export default (pi) => {{
          {body}
          pi.registerCommand("look", {{ handler: async (_args, ctx) => {{
            await ctx.modelRegistry.refresh({{ allowNetwork: false }});
            const found = ctx.modelRegistry.find("own", "m");
            ctx.ui.notify(JSON.stringify([ctx.modelRegistry.hasConfiguredAuth({{ provider: "own" }}),
              found ? await ctx.modelRegistry.getApiKeyAndHeaders(found) : null]));
          }} }});
        }};"#
    )
}

#[tokio::test]
async fn a_provider_resolves_the_credentials_of_its_requests() {
    let home = Home::bare();
    home.extension(
        "own.ts",
        &extension(
            r#"pi.registerProvider(echo("own", { apiKey: { name: "Own", resolve: async ({ ctx, credential, signal }) => {
              signal.throwIfAborted();
              const file = `${process.cwd()}/token`;
              const key = credential?.key ?? (await ctx.fileExists(file) ? readFileSync(file, "utf8") : undefined);
              return key && { auth: { apiKey: key, headers: { "x-who": "me" }, baseUrl: "http://resolved" }, env: { A: "b" }, source: "a file" };
            } } }));"#,
        ),
    );
    let mut rpc = home.rpc(&["--model", "own/m"]);
    rpc.ok(prompt("/look")).await;
    rpc.notified(
        &json!([false, {"ok": false, "error": "Provider is not configured: own"}]).to_string(),
    )
    .await;
    home.file("token", "secret");
    rpc.ok(prompt("/look")).await;
    let found = json!([true, {"ok": true, "apiKey": "secret", "headers": {"x-who": "me"}}]);
    rpc.notified(&found.to_string()).await;
    let reported = json!(["http://resolved", "secret", "me", {"A": "b"}]);
    assert_eq!(rpc.answer_to("hi").await, reported.to_string());
    fs::write(home.cwd().join("token"), "newer").unwrap();
    let reported = json!(["http://resolved", "newer", "me", {"A": "b"}]);
    assert_eq!(rpc.answer_to("again").await, reported.to_string());
}

/// The wire API is pi's, and a function returns the key.
#[tokio::test]
async fn a_composed_provider_gets_its_key_from_a_function() {
    let server = ModelServer::start().await;
    let home = Home::with_api(&server, Api::OpenAiCompletions);
    let url = server.url();
    home.extension(
        "own.ts",
        &extension(&format!(
            r#"pi.registerProvider(createProvider({{ id: "own", name: "Own", baseUrl: "{url}/v1", api: openAICompletionsApi(),
              auth: {{ apiKey: {{ name: "Own", check: async () => ({{ type: "api_key" }}), resolve: async () => ({{ auth: {{ apiKey: "from a function" }} }}) }} }},
              models: [{{ ...model("own"), api: "openai-completions", baseUrl: "{url}/v1" }}] }}));"#
        )),
    );
    server.push(Answer::text("well"));
    let mut rpc = home.rpc(&["--model", "own/m"]);
    assert_eq!(rpc.answer_to("hi").await, "well");
    let sent = server.last_request();
    assert_eq!(sent.headers["authorization"], "Bearer from a function");
}

#[tokio::test]
async fn a_provider_brings_a_sign_in_of_newer_versions() {
    let home = Home::bare();
    home.extension(
        "own.ts",
        &extension(
            r#"pi.registerProvider(echo("own", { oauth: { name: "Own",
              login: async ({ prompt, notify }) => {
                notify({ type: "auth_url", url: "http://sign.in", instructions: "there" });
                const access = await prompt({ type: "text", message: "The code?" });
                return { type: "oauth", access, refresh: "r", expires: Date.now() - 1 };
              },
              refresh: async ({ access, refresh }) => ({ type: "oauth", access: `${access}+${refresh}`, refresh, expires: Date.now() + 3600000 }),
              toAuth: async ({ access }) => ({ apiKey: access, headers: { "x-who": "signed" }, baseUrl: "http://signed" }),
            } }));
            pi.registerCommand("in", { handler: async (_args, ctx) => {
              const asked = [];
              const credential = await ctx.modelRegistry.runtime.login("own", "oauth", {
                prompt: async (question) => (asked.push(question.type), "code"), notify: (event) => asked.push(event.url) });
              ctx.ui.notify(JSON.stringify([asked, credential.access]));
            } });"#,
        ),
    );
    let mut rpc = home.rpc(&["--provider", "demo", "--model", "demo"]);
    rpc.ok(prompt("/in")).await;
    rpc.notified(&json!([["http://sign.in", "text"], "code"]).to_string())
        .await;
    rpc.ok(json!({"type": "set_model", "provider": "own", "modelId": "m"}))
        .await;
    let reported = json!(["http://signed", "code+r", "signed", null]);
    assert_eq!(rpc.answer_to("hi").await, reported.to_string());
    let stored = fs::read_to_string(home.agent_dir().join("auth.json")).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored["own"]["access"], "code+r");
}
