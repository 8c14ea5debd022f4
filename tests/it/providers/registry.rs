//! Keys, sign-ins and settings for extensions: `ctx.modelRegistry`, the classes `ModelRegistry`,
//! `AuthStorage`, `SettingsManager`, and pi-ai's `oauth`.

use std::fs;

use model_server::{Answer, Api, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, pause, prompt};

/// An extension whose slash command `try` notifies the JSON of what `body` returns.
fn tries(imports: &str, body: &str) -> String {
    format!(
        r#"{imports}
        export default (pi) => pi.registerCommand("try", {{ handler: async (_args, ctx) => {{
            const run = async () => {{ {body} }};
            const told = await run().catch((error) => String(error.stack));
            ctx.ui.notify(JSON.stringify(told));
        }} }});"#
    )
}

async fn try_result(rpc: &mut crate::support::Rpc) -> Value {
    rpc.ok(prompt("/try")).await;
    let notice = rpc.ui("notify").await;
    serde_json::from_str(notice["message"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn ctx_model_registry_looks_up_models_and_keys() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    fs::write(
        home.agent_dir().join("auth.json"),
        r#"{"groq": {"type": "api_key", "key": "gk"}}"#,
    )
    .unwrap();
    home.extension(
        "try.ts",
        &tries(
            r#"import { ModelRegistry, AuthStorage } from "@mariozechner/pi-coding-agent";"#,
            r#"const registry = ctx.modelRegistry;
            const groq = registry.find("groq", "openai/gpt-oss-120b");
            const auth = registry.authStorage;
            const answer = await registry.complete(ctx.model, { messages: [{ role: "user", content: "hi", timestamp: 0 }] });
            auth.set("xai", { type: "api_key", key: "xk" });
            registry.registerProvider("late", { baseUrl: "u", apiKey: "k", api: "openai-completions",
              models: [{ id: "l", name: "l", reasoning: false, input: ["text"], contextWindow: 1, maxTokens: 1,
                cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } }] });
            const late = registry.find("late", "l")?.baseUrl;
            registry.unregisterProvider("late");
            return [registry instanceof ModelRegistry, auth instanceof AuthStorage, groq.baseUrl,
              registry.hasConfiguredAuth(groq), registry.isUsingOAuth(groq),
              await registry.getApiKeyAndHeaders(groq), await registry.getApiKey(groq),
              await registry.getApiKeyForProvider("cerebras") ?? null, registry.getError() ?? null,
              registry.getAvailable().some(({ provider }) => provider === "xai"), auth.list(),
              auth.get("groq"), answer.content[0].text, late, registry.find("late", "l") ?? null,
              await registry.getApiKeyAndHeaders({ ...groq, provider: "cerebras" })];"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("well"));
    assert_eq!(
        try_result(&mut rpc).await,
        json!([
            true, true, "https://api.groq.com/openai/v1", true, false,
            {"ok": true, "apiKey": "gk"}, "gk", null, null, true, ["groq", "xai"],
            {"type": "api_key", "key": "gk"}, "well", "u", null, {"ok": true}
        ])
    );
    let stored = fs::read_to_string(home.agent_dir().join("auth.json")).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored["xai"], json!({"type": "api_key", "key": "xk"}));
}

#[tokio::test]
async fn separate_registries_and_stores_work() {
    let home = Home::bare();
    home.settings(json!({"theme": "dark"}));
    home.file(".pi/settings.json", r#"{"compaction": {"enabled": false}}"#);
    home.file(
        "other/auth.json",
        r#"{"openai": {"type": "api_key", "key": "ok"}}"#,
    );
    home.extension(
        "try.ts",
        &tries(
            r#"import { AuthStorage, ModelRegistry, SettingsManager, InMemoryAuthStorageBackend } from "@mariozechner/pi-coding-agent";
            import { readFileSync } from "node:fs";"#,
            r#"const memory = AuthStorage.inMemory({ anthropic: { type: "api_key", key: "ak" } });
            memory.setRuntimeApiKey("groq", "rk");
            const registry = ModelRegistry.inMemory(memory);
            const file = AuthStorage.create(ctx.cwd + "/other/auth.json");
            file.set("mine", { type: "oauth", access: "a", refresh: "r", expires: 9e15, extra: 1 });
            const backend = new InMemoryAuthStorageBackend();
            const custom = AuthStorage.fromStorage(backend);
            custom.set("x", { type: "api_key", key: "xk" });
            const seen = backend.withLock((current) => ({ result: JSON.parse(current) }));
            memory.setFallbackResolver((provider) => provider === "own" ? "fallback" : undefined);

            const settings = SettingsManager.create(ctx.cwd);
            const before = [settings.getTheme(), settings.getCompactionSettings(), settings.getPackages(),
              settings.getDefaultModel() ?? null, settings.getEditorPaddingX(), settings.getTransport()];
            settings.setTheme("light"); settings.setEditorPaddingX(99); settings.setRetryEnabled(false);
            settings.setProjectPackages(["npm:x"]);
            await settings.flush();
            const project = JSON.parse(readFileSync(ctx.cwd + "/.pi/settings.json", "utf8"));
            const held = SettingsManager.inMemory({ theme: "a" }); held.applyOverrides({ theme: "b" });
            let text = '{"queueMode": "all"}';
            const stored = SettingsManager.fromStorage({ withLock: (scope, fn) => {
              if (scope === "global") text = fn(text) ?? text; else fn(undefined); } });
            stored.setQuietStartup(true);
            return [registry.getAvailable().map(({ provider }) => provider).filter((p, i, all) => all.indexOf(p) === i),
              await memory.getApiKey("anthropic"), await memory.getApiKey("groq"), await memory.getApiKey("own"),
              file.list(), file.get("mine").extra, await file.getApiKey("mine"), seen, before,
              [settings.getTheme(), settings.getEditorPaddingX(), settings.getRetrySettings()], project,
              held.getTheme(), stored.getSteeringMode(), JSON.parse(text), settings.drainErrors()];"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    let reported = try_result(&mut rpc).await;
    assert_eq!(
        reported,
        json!([
            ["anthropic", "groq"], "ak", "rk", "fallback",
            ["openai", "mine"], 1, "a", {"x": {"type": "api_key", "key": "xk"}},
            ["dark", {"enabled": false, "reserveTokens": 16384, "keepRecentTokens": 20000}, [],
             "scripted-1", 0, "sse"],
            ["light", 3, {"enabled": false, "maxRetries": 3, "baseDelayMs": 1, "maxDelayMs": 60000,
              "maxAgentDelayMs": 60000}],
            {"compaction": {"enabled": false}, "packages": ["npm:x"]},
            "b", "all", {"steeringMode": "all", "quietStartup": true}, []
        ])
    );
    let stored = fs::read_to_string(home.agent_dir().join("settings.json")).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored["theme"], "light");
    // Unchanged settings keep their values.
    assert_eq!(
        stored["retry"],
        json!({"enabled": false, "maxRetries": 3, "baseDelayMs": 1})
    );
}

/// A provider that counts how often its token was renewed.
const SIGN_IN: &str = include_str!("fixtures/registry.ts");

#[tokio::test]
async fn a_token_is_renewed_once_by_all_processes() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("club.ts", &SIGN_IN.replace("URL", &server.url()));
    let expired = json!({"club": {"type": "oauth", "refresh": "r1", "access": "old", "expires": 1000, "member": 8}});
    let auth = home.agent_dir().join("auth.json");
    fs::write(&auth, expired.to_string()).unwrap();
    server.repeat(Answer::text("member's answer"));
    let arguments = ["-p", "--model", "club/m8", "hello"];
    let (one, two) = tokio::join!(home.run(&arguments, ""), home.run(&arguments, ""));
    assert_eq!(
        (one.ok(), two.ok()),
        ("member's answer\n".into(), "member's answer\n".into())
    );
    let renewed = fs::read_to_string(home.agent_dir().join("../../renewed")).unwrap();
    assert_eq!(renewed, "r1\n");
    for request in server.requests() {
        assert_eq!(request.headers["x-api-key"], "key-fresh");
    }
    let stored: Value = serde_json::from_str(&fs::read_to_string(&auth).unwrap()).unwrap();
    assert_eq!(
        (&stored["club"]["refresh"], &stored["club"]["type"]),
        (&json!("r2"), &json!("oauth"))
    );
    assert!(!auth.with_extension("json.lock").exists());
}

#[tokio::test]
async fn an_extension_signs_in() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("club.ts", &SIGN_IN.replace("URL", &server.url()));
    let mut rpc = home.rpc(&[]);
    let models = rpc
        .ok(json!({"type": "get_available_models"}))
        .await
        .to_string();
    assert!(!models.contains("club"), "{models}");
    // The response comes when the command has ended.
    rpc.send(&prompt("/enter").to_string()).await;
    rpc.notified("http://club/enter").await;
    let question = rpc.ui("input").await;
    assert_eq!(question["title"], "The word?");
    rpc.reply(&question, json!({"value": "friend"})).await;
    rpc.notified("in \"a-friend\"").await;
    rpc.ok(json!({"type": "set_model", "provider": "club", "modelId": "c1"}))
        .await;
    server.push(Answer::text("welcome"));
    assert_eq!(rpc.answer_to("hello").await, "welcome");
    assert_eq!(server.last_request().headers["x-api-key"], "key-a-friend");
}

/// The models stayed as they were when the extension was loaded.
#[tokio::test]
async fn models_of_a_sign_in_follow_it_when_the_registry_is_refreshed() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let commands = r#"
  pi.registerCommand("sign", { handler: async (member, ctx) => {
    const { modelRegistry } = ctx;
    const { authStorage } = modelRegistry;
    if (member) authStorage.set("club", { type: "oauth", refresh: "r", access: "a", expires: Date.now() + 1e9, member });
    else {
      // Another program changes the file in this way.
      writeFileSync(process.env.HOME + "/.pi/agent/auth.json", "{}");
      authStorage.reload();
    }
    const models = () => modelRegistry.getAll().filter(({ provider }) => provider === "club").map(({ id }) => id);
    const before = models();
    const refreshed = modelRegistry.refresh();
    const after = models();
    await refreshed;
    ctx.ui.notify(JSON.stringify([before, after, models()]));
  } });
};
"#;
    let source = SIGN_IN.replace("URL", &server.url());
    let source = source.trim_end().strip_suffix("};").unwrap().to_owned() + commands;
    home.extension("club.ts", &source);
    let mut rpc = home.rpc(&[]);
    let bare = json!(["c1"]);
    let (one, two) = (json!(["c1", "m1"]), json!(["c1", "m2"]));
    for (member, before, after) in [("1", &bare, &one), ("2", &one, &two), ("", &two, &bare)] {
        rpc.ok(prompt(&format!("/sign {member}"))).await;
        rpc.notified(&json!([before, after, after]).to_string())
            .await;
        if member == "2" {
            rpc.ok(json!({"type": "set_model", "provider": "club", "modelId": "m2"}))
                .await;
            server.push(Answer::text("welcome"));
            assert_eq!(rpc.answer_to("hello").await, "welcome");
            assert_eq!(server.last_request().body["model"], "m2");
        }
    }
}

/// The built-in sign-ins are absent, because an extension could answer for the user through them.
#[tokio::test]
async fn every_name_of_pi_ai_oauth_is_there() {
    let home = Home::bare();
    home.settings(json!({}));
    home.extension(
        "try.ts",
        &tries(
            r#"import * as oauth from "@mariozechner/pi-ai/oauth";"#,
            r#"oauth.registerOAuthProvider({ id: "mine", name: "Mine", login: async () => ({}),
                refreshToken: async (c) => ({ ...c, access: "new", expires: Date.now() + 1e6 }), getApiKey: (c) => "k:" + c.access });
            const renewed = await oauth.getOAuthApiKey("mine", { mine: { access: "old", refresh: "r", expires: 0 } });
            const ids = oauth.getOAuthProviders().map(({ id }) => id);
            oauth.unregisterOAuthProvider("mine");
            return [Object.keys(oauth).length, "answerLogin" in oauth || "signInWith" in oauth, ids, renewed.apiKey, oauth.getOAuthProvider("mine") ?? null,
              oauth.normalizeDomain("https://a.b/c"), oauth.normalizeDomain(" "),
              oauth.getGitHubCopilotBaseUrl("tid=1;proxy-ep=proxy.x.y"), oauth.getGitHubCopilotBaseUrl(undefined, "corp.com"),
              oauth.geminiCliOAuthProvider.getApiKey({ access: "a", projectId: "p" }),
              oauth.getOAuthProviderInfoList().length,
              await oauth.refreshOAuthToken("nobody", {}).catch((error) => error.message)];"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    assert_eq!(
        try_result(&mut rpc).await,
        json!([
            25,
            false,
            [
                "anthropic",
                "github-copilot",
                "google-gemini-cli",
                "google-antigravity",
                "openai-codex",
                "mine"
            ],
            "k:new",
            null,
            "a.b",
            null,
            "https://api.x.y",
            "https://copilot-api.corp.com",
            "{\"token\":\"a\",\"projectId\":\"p\"}",
            5,
            "Unknown OAuth provider: nobody"
        ])
    );
}

#[tokio::test]
async fn a_key_that_cannot_be_stored_holds_and_is_reported() {
    let home = Home::bare();
    home.settings(json!({}));
    home.extension(
        "try.ts",
        &tries(
            "",
            r#"const { authStorage } = ctx.modelRegistry;
            authStorage.set("club", { type: "api_key", key: "k" });
            return [authStorage.get("club"), authStorage.drainErrors().length];"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "get_state"})).await;
    let lock = home.agent_dir().join("auth.json.lock");
    fs::create_dir(&lock).unwrap();
    let set = try_result(&mut rpc).await;
    assert_eq!(set, json!([{"type": "api_key", "key": "k"}, 1]));
    // The report comes before or after the response.
    let error = loop {
        let mut lines = rpc.lines().into_iter();
        match lines.find(|line| line["type"] == "extension_error") {
            Some(error) => break error,
            None => pause(10).await,
        }
    };
    assert_eq!(error["event"], "authStorage");
    let path = error["extensionPath"].as_str().unwrap();
    assert!(path.ends_with("try.ts"), "{path}");
    fs::remove_dir(lock).unwrap();
    // The report has come a second time.
    assert_eq!(try_result(&mut rpc).await[1], 0);
    assert!(home.agent_dir().join("auth.json").exists());
}

#[tokio::test]
async fn the_settings_manager_retries_a_failed_write() {
    let home = Home::bare();
    home.settings(json!({}));
    home.extension(
        "try.ts",
        &tries(
            r#"import { SettingsManager } from "@mariozechner/pi-coding-agent";
            import { mkdirSync, readFileSync, rmdirSync } from "node:fs";"#,
            r#"const file = process.env.HOME + "/.pi/agent/settings.json";
            const settings = SettingsManager.create(ctx.cwd);
            mkdirSync(file + ".lock");
            settings.setTheme("first");
            settings.setTheme("dark");
            const errors = settings.drainErrors().length;
            rmdirSync(file + ".lock");
            settings.setSteeringMode("all");
            await settings.flush();
            const { theme, steeringMode } = JSON.parse(readFileSync(file, "utf8"));
            return [errors, theme, steeringMode, settings.drainErrors().length];"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    assert_eq!(try_result(&mut rpc).await, json!([2, "dark", "all", 0]));
}

/// The level `max` of newer versions fell to `medium`, and the settings lost it.
#[tokio::test]
async fn the_level_max_of_newer_versions_is_sent_and_kept() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::with_api(&server, Api::OpenAiCompletions);
    home.settings(json!({"defaultThinkingLevel": "max"}));
    let source = r#"export default (pi) => pi.registerProvider("deep", {
      baseUrl: "URL/v1", apiKey: "k", api: "openai-completions",
      models: [["both", { xhigh: "hard", max: "hardest" }], ["one", {}]].map(([id, thinkingLevelMap]) => ({
        id, name: id, reasoning: true, input: ["text"], contextWindow: 200000, maxTokens: 900,
        cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, thinkingLevelMap })),
    });"#;
    home.extension("deep.ts", &source.replace("URL", &server.url()));
    let mut rpc = home.rpc(&["--model", "deep/both"]);
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["thinkingLevel"], "max");
    rpc.answer_to("think").await;
    assert_eq!(server.last_request().body["reasoning_effort"], "hardest");
    let set = json!({"type": "set_model", "provider": "deep", "modelId": "one"});
    rpc.ok(set).await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["thinkingLevel"], "high");
    assert_eq!(rpc.stderr(), "");
}

/// Starts pi online; other tests start it offline.
fn online(home: &Home) -> Rpc {
    let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
    command.args(["--mode", "rpc"]).env_remove("PI_OFFLINE");
    Rpc::start(command)
}

/// Providers of newer versions that list their models later had none.
#[tokio::test]
async fn a_provider_lists_its_models_later() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::with_api(&server, Api::OpenAiCompletions);
    let source = r#"import { createProvider, envApiKeyAuth, openAICompletionsApi } from "@earendil-works/pi-ai";
      const model = (id) => ({ id, name: id, reasoning: false, input: ["text"], contextWindow: 200000, maxTokens: 900,
        cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } });
      export default (pi) => {
        const asked = [];
        const provider = (name, apiKey) => pi.registerProvider(name, {
          baseUrl: "URL/v1", apiKey, api: "openai-completions", models: [],
          async refreshModels({ allowNetwork, credential, stored, publish, signal }) {
            asked.push([name, allowNetwork, credential?.key ?? null, stored?.models.map((one) => one.id) ?? null, signal.aborted]);
            if (!allowNetwork) return stored?.models.map(({ id }) => model(id));
            await publish({ persist: { models: [model("new")] } });
            return [model("new"), model("newer")];
          },
        });
        provider("later", "the-key");
        provider("never", "$NO_SUCH_KEY_HERE");
        pi.registerCommand("asked", { handler: async (_args, ctx) => ctx.ui.notify(JSON.stringify(asked)) });
        pi.registerCommand("forget", { handler: async () => pi.unregisterProvider("later") });
      };"#;
    home.extension("later.ts", &source.replace("URL", &server.url()));
    let ids = async |rpc: &mut Rpc| {
        let models = rpc.ok(json!({"type": "get_available_models"})).await;
        let models = models["models"].as_array().unwrap().clone();
        let own = models.iter().filter(|model| model["provider"] == "later");
        json!(own.map(|model| model["id"].clone()).collect::<Vec<_>>())
    };
    let mut rpc = online(&home);
    for _ in 0..500 {
        if ids(&mut rpc).await == json!(["new", "newer"]) {
            break;
        }
        pause(20).await;
    }
    assert_eq!(ids(&mut rpc).await, json!(["new", "newer"]));
    rpc.ok(prompt("/asked")).await;
    let reported: Value =
        serde_json::from_str(rpc.ui("notify").await["message"].as_str().unwrap()).unwrap();
    assert_eq!(
        reported,
        json!([
            ["later", false, null, null, false],
            ["never", false, null, null, false],
            ["later", true, "the-key", null, false]
        ])
    );
    let set = json!({"type": "set_model", "provider": "later", "modelId": "newer"});
    rpc.ok(set).await;
    assert_eq!(rpc.answer_to("hi").await, "Fine.");
    rpc.ok(prompt("/forget")).await;
    assert_eq!(ids(&mut rpc).await, json!([]));
    rpc.close().await;
    // The stored list is available when the next start looks for its model.
    let answer = home
        .run(&["--model", "later/new", "-p", "hi"], "")
        .await
        .ok();
    assert_eq!(answer.trim(), "Fine.");
    let kept = fs::read_to_string(home.agent_dir().join("models-store.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["later"]["models"][0]["id"], "new");
}

#[tokio::test]
async fn a_failing_model_list_is_reported_and_others_stay() {
    let server = ModelServer::start().await;
    let home = Home::with_api(&server, Api::OpenAiCompletions);
    home.extension(
        "later.ts",
        r#"export default (pi) => pi.registerProvider("later", {
          baseUrl: "u", apiKey: "k", api: "openai-completions",
          models: [{ id: "old", name: "old", reasoning: false, input: ["text"], contextWindow: 200000, maxTokens: 900,
            cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } }],
          async refreshModels({ allowNetwork }) { if (allowNetwork) throw new Error("no such host"); },
        });"#,
    );
    let mut rpc = online(&home);
    let error = rpc.event("extension_error").await;
    assert_eq!(error["event"], "register_provider");
    let text = error["error"].as_str().unwrap();
    assert!(
        text.contains(r#"refreshModels of the provider "later": no such host"#),
        "{text}"
    );
    let set = json!({"type": "set_model", "provider": "later", "modelId": "old"});
    rpc.ok(set).await;
}

/// The headers removed the key that models.json has.
#[tokio::test]
async fn headers_of_an_extension_are_merged_with_models_json() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "ext.ts",
        &format!(
            "export default (pi) => pi.registerProvider({:?}, {{ headers: {{ \"X-Over\": \"o\" }} }});",
            model_server::PROVIDER
        ),
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("Hello."));
    assert_eq!(rpc.answer_to("hi").await, "Hello.");
    let request = &server.requests()[0];
    assert_eq!(request.headers["x-over"], "o");
    let key = ["x-api-key", "authorization"].map(|name| request.headers.contains_key(name));
    assert!(key.contains(&true), "{request:?}");
}
