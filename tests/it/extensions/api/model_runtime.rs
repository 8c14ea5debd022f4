//! `ModelRuntime`: packages for newer versions look up models and keys with it and start sessions
//! with it.

use std::fs;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, prompt};

/// An extension whose slash command `try` notifies the JSON of what `body` returns.
fn tries(body: &str) -> String {
    format!(
        r#"import {{ createAgentSession, ModelRegistry, ModelRuntime, SessionManager }} from "@earendil-works/pi-coding-agent";
        import {{ createAssistantMessageEventStream, InMemoryCredentialStore }} from "@earendil-works/pi-ai";
        const said = [{{ role: "user", content: "hi", timestamp: 0 }}];
        const cost = {{ input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }};
        const models = (id) => [{{ id, name: id, reasoning: false, input: ["text"], cost, contextWindow: 200000, maxTokens: 900 }}];
        export default (pi) => pi.registerCommand("try", {{ handler: async (_args, ctx) => {{
            const run = async () => {{ {body} }};
            const told = await run().catch((error) => String(error.stack));
            ctx.ui.notify(JSON.stringify(told));
        }} }});"#
    )
}

async fn try_result(rpc: &mut Rpc) -> Value {
    rpc.ok(prompt("/try")).await;
    let notice = rpc.ui("notify").await;
    serde_json::from_str(notice["message"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn models_and_keys_have_the_names_of_newer_versions() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let auth = r#"{"groq": {"type": "api_key", "key": "gk"}}"#;
    fs::write(home.agent_dir().join("auth.json"), auth).unwrap();
    home.extension(
        "try.ts",
        &tries(
            r#"const runtime = await ModelRuntime.create();
            const groq = runtime.getModel("groq", "openai/gpt-oss-120b");
            const before = [await runtime.getAuth("openai") ?? null, runtime.hasConfiguredAuth("openai")];
            await runtime.setRuntimeApiKey("openai", "rk");
            runtime.registerProvider("own", { baseUrl: "u", apiKey: "k", api: "openai-completions", models: models("o") });
            const answer = await ctx.modelRegistry.runtime.completeSimple(ctx.model, { messages: said });
            const failed = await runtime.completeSimple({ ...groq, provider: "xai" }, { messages: said });
            const asked = [];
            const login = await runtime.login("xai", "api_key", { prompt: async (asks) => (asked.push(asks.type), "typed") });
            return [
              before, await runtime.getAuth(groq), await runtime.checkAuth("groq"),
              (await runtime.getAuth("openai")).auth.apiKey, (await runtime.getAuth("openai", { apiKey: "mine" })).auth.apiKey,
              await runtime.listCredentials(), runtime.getModel("own", "o").baseUrl, runtime.getRegisteredProviderIds(),
              (await runtime.getAvailable("own")).length, runtime.getModels("groq").every(({ provider }) => provider === "groq"),
              answer.content[0].text, failed.stopReason, asked, login, runtime.getModelsOfType("image").length,
              ctx.modelRegistry.runtime === ctx.modelRegistry.runtime, ctx.modelRegistry.runtime instanceof ModelRuntime,
              ctx.modelRegistry.find("own", "o") ?? null, new ModelRegistry(runtime).find("own", "o").id,
              await runtime.getAuth("openai", { env: { A: "b" } }).catch(({ message }) => message.split(":")[0]),
              (() => { try { return runtime.resolveModel(); } catch ({ message }) { return message; } })(),
            ];"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("well"));
    assert_eq!(
        try_result(&mut rpc).await,
        json!([
            [null, false],
            {"auth": {"apiKey": "gk"}, "source": "stored credential"},
            {"type": "api_key", "source": "stored credential"},
            "rk", "mine",
            [{"providerId": "groq", "type": "api_key"}, {"providerId": "xai", "type": "api_key"},
             {"providerId": "openai", "type": "api_key"}],
            "u", ["own"], 1, true, "well", "error", ["secret"], {"type": "api_key", "key": "typed"}, 0,
            true, true, null, "o", "ModelRuntime.getAuth",
            "ModelRuntime.resolveModel() is not available in this version of pi: it has no virtual models",
        ])
    );
    let stored = fs::read_to_string(home.agent_dir().join("auth.json")).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored["xai"], json!({"type": "api_key", "key": "typed"}));
}

#[tokio::test]
async fn credentials_may_come_from_a_custom_store() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let auth = r#"{"groq": {"type": "api_key", "key": "gk"}}"#;
    fs::write(home.agent_dir().join("auth.json"), auth).unwrap();
    home.extension(
        "try.ts",
        &tries(
            r#"const credentials = new InMemoryCredentialStore();
            await credentials.modify("xai", async () => ({ type: "api_key", key: "one" }));
            const runtime = await ModelRuntime.create({ credentials, modelsPath: null });
            const first = (await runtime.getAuth("xai")).auth.apiKey;
            await credentials.modify("xai", async (before) => ({ ...before, key: before.key + "+" }));
            const second = (await runtime.getAuth("xai")).auth.apiKey;
            await runtime.login("groq", "api_key", { prompt: async () => "typed" });
            const typed = await credentials.read("groq");
            await runtime.logout("groq");
            return [first, second, typed, await credentials.list(), await runtime.getAuth("groq") ?? null,
              runtime.getModel(ctx.model.provider, ctx.model.id) ?? null];"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    assert_eq!(
        try_result(&mut rpc).await,
        json!([
            "one", "one+", {"type": "api_key", "key": "typed"},
            [{"providerId": "xai", "type": "api_key"}], null, null
        ])
    );
    let stored = fs::read_to_string(home.agent_dir().join("auth.json")).unwrap();
    assert_eq!(stored, auth, "the user's own were left alone");
}

/// pi-btw and similar packages start sessions so: only the runtime knows the provider.
#[tokio::test]
async fn a_session_uses_the_models_of_its_runtime() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "try.ts",
        &tries(
            r#"const runtime = await ModelRuntime.create();
            const asked = [];
            runtime.registerProvider("own", {
              baseUrl: "u", apiKey: "k", api: "own-api", models: models("o"),
              streamSimple(model, context, options) {
                asked.push([model.id, options.apiKey]);
                const stream = createAssistantMessageEventStream();
                const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: { ...cost, total: 0 } };
                const message = { role: "assistant", content: [{ type: "text", text: "own words" }], api: model.api,
                  provider: model.provider, model: model.id, usage, stopReason: "stop", timestamp: 1 };
                stream.push({ type: "done", reason: "stop", message });
                stream.end();
                return stream;
              },
            });
            // Extensions of this session would not know the provider.
            const resourceLoader = { getExtensions: () => ({ extensions: [], errors: [] }) };
            const begin = async (options) => {
              const made = await createAgentSession({ tools: [], sessionManager: SessionManager.inMemory(), ...options });
              await made.session.prompt("hi").catch(() => {});
              const last = made.session.messages.at(-1);
              made.session.dispose();
              return last?.content?.[0]?.text ?? last?.errorMessage ?? null;
            };
            const model = runtime.getModel("own", "o");
            const answers = [
              await begin({ modelRuntime: runtime, model, resourceLoader }),
              await begin({ modelRegistry: new ModelRegistry(runtime), model, resourceLoader }),
              await begin({ modelRuntime: ctx.modelRegistry.runtime, model: ctx.model }),
            ];
            const refused = await createAgentSession({ modelRuntime: {} }).catch(({ message }) => message);
            return [answers, asked, refused];"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("the user's model"));
    assert_eq!(
        try_result(&mut rpc).await,
        json!([
            ["own words", "own words", "the user's model"],
            [["o", "k"], ["o", "k"]],
            "createAgentSession: modelRuntime must be one of ModelRuntime.create(), ModelRegistry.create() or \
             ctx.modelRegistry",
        ])
    );
}
