//! Members of newer versions that published extensions use: providers as objects, classes that are
//! only patched, command lines, system messages.

use model_server::ModelServer;
use serde_json::{Value, json};

use crate::support::{Home, prompt, with_extension};

async fn answers(body: &str, answer: &str) {
    let (_server, _home, mut rpc) = with_extension(&format!(
        r#"import * as agent from "@earendil-works/pi-coding-agent";
        import * as tui from "@earendil-works/pi-tui";
        import * as all from "@earendil-works/pi-ai/providers/all";
        export default (pi) => pi.registerCommand("go", {{ handler: async (_args, ctx) => {{
           const answer = await (async () => {{ {body} }})();
           ctx.ui.notify(JSON.stringify(answer));
         }} }});"#
    ))
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified(answer).await;
}

const ASKED: &str = r#"const ctxOf = (env) => ({ env: async (name) => env[name], fileExists: async () => false });
    const asked = (env, credential) => ({ ctx: ctxOf(env), credential, signal: new AbortController().signal });"#;

#[tokio::test]
async fn a_provider_defines_the_auth_of_its_requests() {
    answers(
        &format!(
            r#"{ASKED}
            const {{ auth, headers, refreshModels, filterModels }} = ctx.modelRegistry.getProvider("anthropic");
            const {{ apiKey, oauth }} = auth;
            const codex = ctx.modelRegistry.getProvider("openai-codex").auth;
            return [Object.keys(auth), apiKey.name, typeof apiKey.login,
              await apiKey.resolve(asked({{}}, {{ type: "api_key", key: "k" }})),
              await apiKey.resolve(asked({{ ANTHROPIC_API_KEY: "e" }})), await apiKey.resolve(asked({{}})) ?? null,
              oauth.isSubscription, ["login", "refresh", "toAuth"].map((name) => typeof oauth[name]).join(),
              await oauth.toAuth({{ type: "oauth", access: "a", refresh: "r", expires: 1 }}), Object.keys(codex),
              typeof headers, typeof refreshModels, typeof filterModels];"#
        ),
        r#"[["apiKey","oauth"],"Anthropic API key","function",{"auth":{"apiKey":"k"},"source":"stored credential"},{"auth":{"apiKey":"e"},"source":"ANTHROPIC_API_KEY"},null,true,"function,function,function",{"apiKey":"a"},["oauth"],"undefined","function","undefined"]"#,
    )
    .await;
}

#[tokio::test]
async fn a_subscription_filters_the_models_of_copilot() {
    answers(
        r#"const { filterModels, getModels } = ctx.modelRegistry.getProvider("github-copilot");
        const [first, ...others] = getModels();
        const account = { type: "oauth", availableModelIds: [first.id] };
        return [filterModels(getModels(), account).length, filterModels(getModels(), undefined).length === others.length + 1];"#,
        "[1,true]",
    )
    .await;
}

#[tokio::test]
async fn a_provider_has_keys_of_settings_and_refreshes_models() {
    answers(
        &format!(
            r#"{ASKED}
            pi.registerProvider("mine", {{ baseUrl: "http://localhost:1", apiKey: "K", api: "openai-completions",
              models: [{{ id: "a", name: "a", reasoning: false, input: ["text"], cost: {{}}, contextWindow: 1, maxTokens: 1 }}],
              refreshModels: async () => [{{ id: "b", name: "b", reasoning: false, input: ["text"], cost: {{}}, contextWindow: 1, maxTokens: 1 }}] }});
            const provider = ctx.modelRegistry.getProvider("mine");
            const resolved = await provider.auth.apiKey.resolve(asked({{}}));
            await provider.refreshModels();
            return [resolved.auth.apiKey, resolved.source, provider.getModels().map(({{ id }}) => id)];"#
        ),
        r#"["K","configured API key",["b"]]"#,
    )
    .await;
}

#[tokio::test]
async fn built_in_providers_are_listed_without_demo() {
    answers(
        r#"const providers = all.builtinProviders();
        const ids = providers.map(({ id }) => id);
        const anthropic = providers.find(({ id }) => id === "anthropic");
        return [ids.includes("openai"), ids.includes("demo"), providers.every(({ auth }) => auth.apiKey || auth.oauth),
          anthropic.name, anthropic.baseUrl, anthropic.getModels().length > 0,
          ctx.modelRegistry.getAll().some(({ provider }) => provider === "demo"),
          ctx.modelRegistry.find("demo", "demo")?.provider];"#,
        r#"[true,false,true,"Anthropic","https://api.anthropic.com",true,false,"demo"]"#,
    )
    .await;
}

#[tokio::test]
async fn the_full_screen_terminal_is_reported_as_unavailable() {
    answers(
        r#"const thrown = (make) => { try { make(); } catch (error) { return error.message; } };
        return [tui.isViewportTUI({}), {} instanceof tui.TuiAltScreen, thrown(() => new tui.TuiAltScreen({}))];"#,
        r#"[false,false,"\"TuiAltScreen\" of @mariozechner/pi-tui is not available in this version of pi: there is no full-screen terminal yet; isViewportTUI() says so."]"#,
    )
    .await;
}

#[tokio::test]
async fn a_command_line_is_parsed_as_in_the_original() {
    let lines = [
        "-p hello --model a/b --tools read,+x @f --flag v --other --k=v=w",
        "--mode rpc --mode tuff --mode -- @a b",
        "-t +a,-b -xt c, -e 1 -e 2 --thinking huge --thinking high -n x",
        "--tui-mode fullscreen --use-theme --list-models sonnet -z -na --provider",
    ];
    let expected = json!([
        {
            "messages": ["hello"], "fileArgs": ["f"], "print": true, "model": "a/b",
            "unknownFlags": [["flag", "v"], ["other", true], ["k", "v=w"]],
            "diagnostics": ["--tools: tool names cannot be mixed with +name or -name entries"],
        },
        {
            "messages": ["b"], "fileArgs": ["a"], "mode": "rpc", "unknownFlags": [],
            "diagnostics": [
                "Invalid mode \"tuff\". Valid values: text, json, rpc",
                "--mode requires text, json, or rpc",
            ],
        },
        {
            "messages": [], "fileArgs": [], "tools": ["+a", "-b"], "excludeTools": ["c"],
            "extensions": ["1", "2"], "thinking": "high", "name": "x", "unknownFlags": [],
            "diagnostics": [
                "Invalid thinking level \"huge\". Valid values: off, minimal, low, medium, high, xhigh, max",
            ],
        },
        {
            "messages": [], "fileArgs": [], "tuiMode": "fullscreen", "listModels": "sonnet",
            "projectTrustOverride": false, "unknownFlags": [["provider", true]],
            "diagnostics": ["--use-theme requires a theme name", "Unknown option: -z"],
        },
    ]);
    let (_server, _home, mut rpc) = with_extension(&format!(
        r#"import {{ parseArgs }} from "@earendil-works/pi-coding-agent";
        export default (pi) => pi.registerCommand("go", {{ handler: async (_args, ctx) => {{
          const parsed = {}.map((line) => parseArgs(line.split(" ")));
          ctx.ui.notify(JSON.stringify(parsed.map((it) => ({{ ...it, unknownFlags: [...it.unknownFlags],
            diagnostics: it.diagnostics.map(({{ message }}) => message) }}))));
        }} }});"#,
        json!(lines)
    ))
    .await;
    rpc.ok(prompt("/go")).await;
    let output = rpc
        .wait("the answer", |line| line["method"] == "notify")
        .await;
    let output: Value = serde_json::from_str(output["message"].as_str().unwrap()).unwrap();
    assert_eq!(output, expected);
}

/// The second warning came before the first one if the session was bound between them.
#[tokio::test]
async fn an_extension_that_patches_a_class_gets_a_warning() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "patches.ts",
        r#"import { ExtensionRunner, InteractiveMode } from "@mariozechner/pi-coding-agent";
        const emit = ExtensionRunner.prototype.emit;
        ExtensionRunner.prototype.emit = async function (event) { return await emit.call(this, event); };
        ExtensionRunner.prototype.other = () => {};
        class Mine extends InteractiveMode {}
        export default (pi) => pi.registerCommand("go", { handler: async (_args, ctx) => {
          let said = "made";
          try { new Mine(); } catch (error) { said = error.message; }
          ctx.ui.notify(said);
        } });"#,
    );
    let mut rpc = home.rpc(&[]);
    for name in ["ExtensionRunner", "InteractiveMode"] {
        let reported = rpc.event("extension_warning").await;
        let text = reported["message"].as_str().unwrap();
        assert!(
            text.starts_with(&format!(
                "\"{name}\" of @mariozechner/pi-coding-agent is not available"
            )),
            "{text}"
        );
        assert!(
            text.contains("Nothing calls the methods of its prototype"),
            "{text}"
        );
        assert_eq!(reported["extension"]["name"], "patches", "{reported}");
    }
    rpc.ok(prompt("/go")).await;
    let output = rpc
        .wait("the answer", |line| line["method"] == "notify")
        .await;
    let text = output["message"].as_str().unwrap();
    assert!(
        text.starts_with("\"InteractiveMode\" of @mariozechner/pi-coding-agent is not available"),
        "{text}"
    );
}

#[tokio::test]
async fn a_message_without_a_type_keeps_none() {
    let (_server, home, mut rpc) = with_extension(
        r#"export default (pi) => pi.registerCommand("go", { handler: async (_args, ctx) => {
          pi.sendMessage({ content: "said", display: true });
          const [entry] = ctx.sessionManager.getEntries().filter(({ type }) => type === "custom_message");
          ctx.ui.notify(JSON.stringify(["customType" in entry, entry.content]));
        } });"#,
    )
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified(r#"[false,"said"]"#).await;
    let lines = rpc.lines();
    let reported = lines
        .iter()
        .find(|line| line["message"]["role"] == "custom")
        .unwrap();
    assert_eq!(reported["message"].get("customType"), None, "{reported}");
    drop(home);
}
