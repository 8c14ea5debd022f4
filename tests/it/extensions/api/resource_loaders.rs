//! Resource loaders and settings that an extension creates itself, with arguments of newer versions
//! and with invented ones.

use model_server::{Answer, ModelServer};
use serde_json::json;

use crate::support::{Home, command_result};

fn looks(imports: &str, body: &str) -> String {
    format!(
        r#"{imports}
        const failure = async (run) => {{ try {{ await run(); }} catch (error) {{ return error.message; }} }};
        export default (pi) => pi.registerCommand("look", {{ handler: async (_args, ctx) => {{
          const look = async () => {{ {body} }};
          ctx.ui.notify(JSON.stringify(await look()));
        }} }});"#
    )
}

/// The error was `second.open: filePath is missing`, without the name of the skill.
#[tokio::test]
async fn an_incomplete_skill_is_named_with_its_source() {
    let home = Home::bare();
    home.extension(
        "look.ts",
        &looks(
            r#"import { createAgentSession, DefaultResourceLoader, getAgentDir, SessionManager } from "@mariozechner/pi-coding-agent";
            import { join } from "node:path";"#,
            r#"const agentDir = getAgentDir();
            const load = async (skill) => {
              const resourceLoader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir,
                skillsOverride: ({ diagnostics }) => ({ skills: [skill], diagnostics }) });
              await resourceLoader.reload();
              return resourceLoader;
            };
            const from = async (more) => {
              const loader = await load({ name: "made", description: "up", ...more });
              const { path, ...sourceInfo } = loader.getSkills().skills[0].sourceInfo;
              const { session } = await createAgentSession({ resourceLoader: loader, sessionManager: SessionManager.inMemory() });
              const listed = session.systemPrompt.includes("made");
              session.dispose();
              return [sourceInfo.source, sourceInfo.scope, listed];
            };
            const skill = { name: "made", description: "up" };
            return {
              docs: await from({ filePath: "/far/away/SKILL.md", baseDir: "/far/away", source: "custom" }),
              user: await from({ filePath: join(agentDir, "skills/made/SKILL.md") }),
              project: await from({ filePath: join(ctx.cwd, ".pi/skills/made/SKILL.md") }),
              half: await from({ filePath: "/x/SKILL.md", sourceInfo: { path: "/x/SKILL.md", source: "custom" } }),
              without: await failure(() => load(skill)),
              nameless: await failure(() => load({})),
              theirs: await failure(() => createAgentSession({ sessionManager: SessionManager.inMemory(),
                resourceLoader: { getSkills: () => ({ skills: [skill], diagnostics: [] }) } })),
            };"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    let expected = json!({
        "docs": ["local", "temporary", true],
        "user": ["local", "user", true],
        "project": ["local", "project", true],
        "half": ["custom", "temporary", true],
        "without": "DefaultResourceLoader: skillsOverride: the skill \"made\" has no filePath",
        "nameless": "DefaultResourceLoader: skillsOverride: skills[0] has no name",
        "theirs": "createAgentSession: getSkills() of resourceLoader: the skill \"made\" has no filePath",
    });
    assert_eq!(command_result(&mut rpc, "look").await, expected);
}

/// The override was not called.
#[tokio::test]
async fn extensions_override_selects_the_given_functions() {
    let home = Home::bare();
    home.extension(
        "look.ts",
        &looks(
            r#"import { createAgentSession, DefaultResourceLoader, getAgentDir, SessionManager } from "@earendil-works/pi-coding-agent";"#,
            r#"const begun = [], told = [];
            const extensionFactories = [() => void begun.push("first"), { name: "second", factory: () => void begun.push("second") }];
            const load = async (extensionsOverride) => {
              const resourceLoader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir: getAgentDir(), noExtensions: true,
                extensionFactories, extensionsOverride });
              await resourceLoader.reload();
              const { session, extensionsResult } = await createAgentSession({ resourceLoader, sessionManager: SessionManager.inMemory() });
              session.dispose();
              return [extensionsResult.extensions.map(({ path }) => path), begun.splice(0)];
            };
            return {
              all: await load(undefined),
              one: await load((base) => {
                told.push(base.extensions.length, base.errors.length, typeof base.runtime);
                return { ...base, extensions: base.extensions.filter(({ path }) => path === "<inline:second>") };
              }),
              told,
              none: await load((base) => ({ ...base, extensions: [] })),
              foreign: await failure(() => load((base) => ({ ...base, extensions: [{ path: "/x.ts" }] }))),
              tools: await failure(() => load((base) => ({ ...base, extensions: base.extensions.filter(({ tools }) => tools.size) }))),
            };"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    let output = command_result(&mut rpc, "look").await;
    assert_eq!(
        output["all"],
        json!([["<inline:1>", "<inline:second>"], ["first", "second"]])
    );
    assert_eq!(output["one"], json!([["<inline:second>"], ["second"]]));
    assert_eq!(output["told"], json!([2, 0, "object"]));
    assert_eq!(output["none"], json!([[], []]));
    for (which, what) in [
        ("foreign", "(/x.ts)"),
        ("tools", "<inline:1>: tools of an extension"),
    ] {
        let error = output[which].as_str().unwrap();
        assert!(error.contains(what), "{error}");
    }
}

/// The project was trusted without a question.
#[tokio::test]
async fn a_reload_asks_whether_the_project_is_trusted() {
    let home = Home::bare();
    home.trust_projects();
    home.file(".pi/prompts/theirs.md", "Theirs");
    home.extension(
        "look.ts",
        &looks(
            r#"import { createAgentSessionServices, DefaultResourceLoader, getAgentDir, SettingsManager } from "@earendil-works/pi-coding-agent";"#,
            r#"const agentDir = getAgentDir();
            const services = async (answer) => {
              const resourceLoaderReloadOptions = { resolveProjectTrust: async () => answer };
              const { resourceLoader, settingsManager } = await createAgentSessionServices({ cwd: ctx.cwd, resourceLoaderReloadOptions });
              return [names(resourceLoader), settingsManager.isProjectTrusted()];
            };
            const names = (loader) => loader.getPrompts().prompts.map(({ name }) => name);
            const reload = async (settingsManager, answer) => {
              const loader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir, settingsManager });
              let asked;
              await loader.reload({ resolveProjectTrust: async ({ extensionsResult }) => {
                asked = [extensionsResult.extensions.length, settingsManager?.isProjectTrusted() ?? null];
                return answer;
              } });
              const first = names(loader);
              await loader.reload();
              return [asked, first, names(loader), settingsManager?.isProjectTrusted() ?? null];
            };
            return [
              await reload(undefined, true), await reload(undefined, false),
              await reload(SettingsManager.create(ctx.cwd, agentDir), true),
              await reload(SettingsManager.create(ctx.cwd, agentDir), false),
              await services(true), await services(false),
            ];"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    let expected = json!([
        [[0, null], ["theirs"], ["theirs"], null],
        [[0, null], [], [], null],
        [[0, false], ["theirs"], ["theirs"], true],
        [[0, false], [], [], false],
        [["theirs"], true],
        [[], false],
    ]);
    assert_eq!(command_result(&mut rpc, "look").await, expected);
}

/// The argument and the setting were ignored.
#[tokio::test]
async fn compaction_settings_may_differ_by_model() {
    let home = Home::bare();
    home.extension(
        "look.ts",
        &looks(
            r#"import { SettingsManager } from "@earendil-works/pi-coding-agent";"#,
            r#"const settings = SettingsManager.inMemory({ compaction: { keepRecentTokens: 7,
              modelOverrides: { "a/b": { reserveTokens: 5 }, "a/c": { keepRecentTokens: 3 } } } });
            const of = (id) => Object.values(settings.getCompactionSettings({ provider: "a", id }));
            return [of("b"), of("c"), of("d"), Object.values(settings.getCompactionSettings()),
              settings.getCompactionReserveTokens({ provider: "a", id: "b" }), settings.getCompactionKeepRecentTokens()];"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    let expected = json!([
        [true, 5, 7],
        [true, 16384, 3],
        [true, 16384, 7],
        [true, 16384, 7],
        5,
        7
    ]);
    assert_eq!(command_result(&mut rpc, "look").await, expected);
}

/// The key was looked up in the program's environment, which differs from that of the extension
/// process.
#[tokio::test]
async fn a_key_that_an_extension_puts_into_process_env_is_found() {
    for place in ["thread", "process"] {
        let server = ModelServer::start().await;
        server.push(Answer::text("Fine."));
        let home = Home::new(&server);
        home.settings(json!({"extensionHost": place}));
        home.extension(
            "look.ts",
            &looks(
                r#"import { complete, findEnvKeys, getEnvApiKey } from "@earendil-works/pi-ai";"#,
                r#"const before = getEnvApiKey("openai") ?? null;
                process.env.OPENAI_API_KEY = "of-mine";
                const model = { ...ctx.model, provider: "openai" };
                const { content } = await complete(model, { messages: [{ role: "user", content: "hello", timestamp: 1 }] });
                return [before, getEnvApiKey("openai"), getEnvApiKey("openai", { OPENAI_API_KEY: "given" }),
                  getEnvApiKey("nobody") ?? null, content[0].text,
                  findEnvKeys("openai"), findEnvKeys("nobody") ?? null, findEnvKeys("groq", { GROQ_API_KEY: "given" }),
                  findEnvKeys("amazon-bedrock", { AWS_PROFILE: "me" }) ?? null];"#,
            ),
        );
        let mut rpc = home.rpc(&[]);
        let output = command_result(&mut rpc, "look").await;
        let expected = json!([
            null,
            "of-mine",
            "given",
            null,
            "Fine.",
            ["OPENAI_API_KEY"],
            null,
            ["GROQ_API_KEY"],
            null,
        ]);
        assert_eq!(output, expected, "{place}");
        let key = &server.last_request().headers["x-api-key"];
        assert_eq!(key, "of-mine", "{place}");
    }
}

/// `@howaboua/pi-codex-conversion` could not continue after a failure of its WebSocket.
#[tokio::test]
async fn a_stream_records_failures_that_it_recovered_from() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "look.ts",
        &looks(
            r#"import { appendAssistantMessageDiagnostic as append, createAssistantMessageDiagnostic as create,
                extractDiagnosticError, formatThrownValue } from "@earendil-works/pi-ai";"#,
            r#"const message = {};
                append(message, create("socket", Object.assign(new TypeError("gone"), { code: "EPIPE" }), { tries: 2 }));
                const before = message.diagnostics;
                append(message, create("other", 5));
                const [{ timestamp, error: { stack, ...error }, ...rest }, other] = message.diagnostics;
                return [before.length, typeof timestamp, stack.includes("look.ts"), error, rest, other.error,
                  formatThrownValue(new RangeError()), extractDiagnosticError("words")];"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    let thrown = |message: &str| json!({"name": "ThrownValue", "message": message});
    let expected = json!([
        1,
        "number",
        true,
        {"name": "TypeError", "message": "gone", "code": "EPIPE"},
        {"type": "socket", "details": {"tries": 2}},
        thrown("5"),
        "RangeError",
        thrown("words"),
    ]);
    assert_eq!(command_result(&mut rpc, "look").await, expected);
}

/// `@narumitw/pi-accounts` could not be used.
#[tokio::test]
async fn cleanup_functions_release_session_resources() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "look.ts",
        &looks(
            r#"import { cleanupSessionResources as cleanup, registerSessionResourceCleanup as register } from "@earendil-works/pi-ai";
                import { createBashTool } from "@earendil-works/pi-coding-agent";
                import { createBashTool as createOlder } from "@mariozechner/pi-coding-agent";"#,
            r#"const called = [];
                const takeBack = register((id) => { called.push(["a", id]); });
                register((id) => { called.push(["b", id]); throw new Error("of b"); });
                register((id) => { called.push(["c", id]); });
                takeBack();
                let thrown;
                try { cleanup("s"); } catch ({ name, errors }) { thrown = [name, errors.map(({ message }) => message)]; }
                return [called, thrown, typeof createBashTool(ctx.cwd).promptSnippet, "promptSnippet" in createOlder(ctx.cwd)];"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    let expected = json!([
        [["b", "s"], ["c", "s"]],
        ["AggregateError", ["of b"]],
        "string",
        false,
    ]);
    assert_eq!(command_result(&mut rpc, "look").await, expected);
}

/// All keys were reported as coming from models.json.
#[tokio::test]
async fn the_source_of_a_providers_key_is_reported() {
    let home = Home::bare();
    let of_file = |key: &str| {
        json!({"baseUrl": "http://127.0.0.1:9", "api": "openai-completions", "apiKey": key,
        "models": [{"id": "m"}]})
    };
    let providers =
        json!({"filed": of_file("k"), "run": of_file("!echo k"), "set": of_file("$HOME")});
    let models = json!({ "providers": providers });
    std::fs::write(home.agent_dir().join("models.json"), models.to_string()).unwrap();
    home.extension(
        "look.ts",
        &looks(
            r#"import { createProvider, envApiKeyAuth, openAICompletionsApi } from "@earendil-works/pi-ai";"#,
            r#"const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
            const model = { id: "m", name: "m", api: "openai-completions", provider: "made", baseUrl: "http://127.0.0.1:9",
              reasoning: false, input: ["text"], cost, contextWindow: 9000, maxTokens: 99 };
            pi.registerProvider(createProvider({ id: "made", auth: { apiKey: envApiKeyAuth("Key", ["NOT_SET_HERE", "HOME"]) },
              models: [model], api: openAICompletionsApi() }));
            pi.registerProvider("brought", { baseUrl: "http://127.0.0.1:9", apiKey: "k", api: "openai-completions", models: [model] });
            return Object.fromEntries(["made", "brought", "filed", "run", "set", "nobody"].map((name) =>
              [name, ctx.modelRegistry.getProviderAuthStatus(name)]));"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    let from = |source: &str| json!({"configured": true, "source": source});
    let variable = json!({"configured": true, "source": "environment", "label": "HOME"});
    let expected = json!({
        "made": variable, "brought": from("fallback"), "filed": from("models_json_key"),
        "run": from("models_json_command"), "set": variable, "nobody": {"configured": false},
    });
    assert_eq!(command_result(&mut rpc, "look").await, expected);
}
