//! Values that only newer versions export and that have a counterpart here.

use model_server::{Answer, ModelServer};
use serde_json::json;

use crate::support::{Home, Rpc, command_result};

#[tokio::test]
async fn a_composed_provider_can_be_registered() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    let source = r#"
        import { anthropicMessagesApi, createProvider, envApiKeyAuth, getBuiltinModel, getBuiltinProviders, getModel } from "@earendil-works/pi-ai/compat";
        const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
        const model = (id, api) => ({
          id, name: id, api, provider: "made", baseUrl: "URL", reasoning: false, input: ["text"], cost, contextWindow: 200000, maxTokens: 77,
        });
        const anthropic = anthropicMessagesApi();
        const asked = [];
        const provider = createProvider({
          id: "made", name: "Made here", baseUrl: "URL", auth: { apiKey: envApiKeyAuth("The key", ["NO_KEY", "MADE_KEY"]) },
          models: [model("own", "anthropic-messages"), model("wrapped", "wrapping")],
          api: {
            "anthropic-messages": anthropic,
            wrapping: { ...anthropic, streamSimple: (model, context, options) => {
              asked.push(model.api, options.apiKey);
              return anthropic.streamSimple({ ...model, api: "anthropic-messages" }, context, options);
            } },
          },
        });
        export default (pi) => {
          pi.registerProvider(provider);
          pi.registerCommand("look", { handler: async (_args, ctx) => {
            const { modelRegistry: registry } = ctx;
            const [model] = provider.getModels();
            const nobody = await provider.stream({ ...model, api: "strange" }, { messages: [] }).result();
            const signal = new AbortController().signal;
            const env = (name) => name === "MADE_KEY" ? "mine" : undefined;
            ctx.ui.notify(JSON.stringify({
              asked, native: registry.getRegisteredNativeProvider("made") === provider,
              config: registry.getRegisteredProviderConfig("made") ?? null, name: registry.getProviderDisplayName("made"),
              nobody: nobody.errorMessage,
              auth: await provider.auth.apiKey.resolve({ ctx: { env }, signal }),
              builtin: getBuiltinModel("anthropic", "claude-opus-4-1")?.id === getModel("anthropic", "claude-opus-4-1")?.id &&
                getBuiltinProviders().includes("anthropic"),
            }));
          } });
        };"#;
    home.extension("made.ts", &source.replace("URL", &server.url()));
    let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
    command.args(["--mode", "rpc"]).env("MADE_KEY", "secret");
    let mut rpc = Rpc::start(command);
    for id in ["own", "wrapped"] {
        rpc.ok(json!({"type": "set_model", "provider": "made", "modelId": id}))
            .await;
        assert_eq!(rpc.answer_to("hello").await, "Fine.");
        let body = server.last_request().body;
        assert_eq!(
            [&body["model"], &body["max_tokens"]],
            [&json!(id), &json!(77)]
        );
    }
    let expected = json!({
        "asked": ["wrapping", "secret"],
        "native": true,
        "config": null,
        "name": "Made here",
        "nobody": "Provider made has no API implementation for \"strange\"",
        "auth": {"auth": {"apiKey": "mine"}, "source": "MADE_KEY"},
        "builtin": true,
    });
    assert_eq!(command_result(&mut rpc, "look").await, expected);
}

#[tokio::test]
async fn model_scopes_images_and_stacks_are_exported() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "newer.ts",
        include_str!("fixtures/newer-exports/model-scopes-images-and-stacks-are-exported.ts"),
    );
    let mut rpc = home.rpc(&[]);
    let expected = json!({
        "scoped": [["scripted-1", null]],
        "diagnostics": [["no-match", "none*"], ["invalid-thinking-level", "scripted-1:huge"]],
        "png": ["image/png", true],
        "broken": null,
        "idle": true,
        "row": ["          r ", "          ig", "left      ht"],
        "column": ["one", "", "a", "b", "", "x", ""],
        "seen": [6, -14, 0, false, 6, true, 9],
    });
    assert_eq!(command_result(&mut rpc, "look").await, expected);
}

/// The newest pi-subagents starts its children with the models of the command line.
#[tokio::test]
async fn cli_models_image_types_and_entry_messages_are_exported() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.file("a.bin", "GIF89a\u{1}\u{0}");
    home.file("b.bin", "no picture");
    home.extension(
        "newer.ts",
        include_str!(
            "fixtures/newer-exports/cli-models-image-types-and-entry-messages-are-exported.ts"
        ),
    );
    let mut rpc = home.rpc(&[]);
    let here = "of @mariozechner/pi-coding-agent is not available in this version of pi";
    let expected = json!({
        "found": [
            [null, null, null],
            ["scripted-1", "high", null],
            ["own", null, "Model \"own\" not found for provider \"scripted\". Using custom model id."],
            [null, null, "Model \"nope/x\" not found. Use --list-models to see available models."],
        ],
        "types": ["image/gif", null],
        "projected": [["a", 1], ["b", 0], ["c", 1]],
        "told": ["user", "custom"],
        "level": "high",
        "error": [true, "p", "why"],
        "missing": [format!("\"runPrintMode\" {here}"), format!("\"createPowerShellTool\" {here}")],
    });
    assert_eq!(command_result(&mut rpc, "look").await, expected);
}

/// The model was asked without a system prompt and without tools.
#[tokio::test]
async fn system_messages_work_in_providers_and_contexts() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    let source = r#"
        import { collapseSystemMessages, complete, createAssistantMessageEventStream, getCurrentSystemPrompt, getCurrentTools } from "@earendil-works/pi-ai";
        const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
        const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost };
        export default (pi) => {
          pi.registerProvider("own", {
            baseUrl: "http://127.0.0.1:9", apiKey: "k", api: "own-api",
            models: [{ id: "m", name: "m", reasoning: false, input: ["text"], cost, contextWindow: 9000, maxTokens: 99 }],
            streamSimple: (model, context) => {
              const { messages } = context;
              const [head, ...rest] = collapseSystemMessages(context).messages;
              const text = [getCurrentSystemPrompt(messages) === context.systemPrompt, getCurrentTools(messages).map(({ name }) => name),
                head.role, rest.length === messages.length].join();
              const stream = createAssistantMessageEventStream();
              stream.push({ type: "done", reason: "stop", message: { role: "assistant", content: [{ type: "text", text }],
                api: model.api, provider: model.provider, model: model.id, usage, stopReason: "stop", timestamp: 1 } });
              stream.end();
              return stream;
            },
          });
          pi.registerCommand("ask", { handler: async (_args, ctx) => {
            const { apiKey } = await ctx.modelRegistry.getApiKeyAndHeaders(ctx.model);
            const tool = { name: "dig", description: "digs", parameters: { type: "object", properties: {} } };
            const head = { role: "system", content: "Be kind.", sections: { style: "And brief." }, toolsAdded: [tool], timestamp: 1 };
            await complete(ctx.model, { messages: [head, { role: "user", content: "hello", timestamp: 2 }] }, { apiKey });
            ctx.ui.notify("asked");
          } });
        };"#;
    home.extension("own.ts", source);
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "prompt", "message": "/ask"})).await;
    rpc.notified("asked").await;
    let requested = server.last_request().body;
    assert_eq!(
        requested["system"][0]["text"], "Be kind.\n\nAnd brief.",
        "{requested}"
    );
    assert_eq!(requested["tools"][0]["name"], "dig", "{requested}");
    rpc.ok(json!({"type": "set_model", "provider": "own", "modelId": "m"}))
        .await;
    assert_eq!(
        rpc.answer_to("hello").await,
        "true,read,bash,edit,write,system,true"
    );
}

/// The prompt and the tools of the request disagreed.
#[tokio::test]
async fn tools_selected_by_a_handler_are_those_of_the_request() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "gate.ts",
        r#"export default (pi) => pi.on("before_agent_start", ({ systemPromptOptions }) => {
            systemPromptOptions.selectedTools = ["read"];
        });"#,
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("Fine."));
    rpc.run("hello").await;
    let requested = server.last_request().body;
    let tools = requested["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1, "{requested}");
    assert_eq!(tools[0]["name"], "read");
}

/// The cost of a session includes what its tools have spent on models.
#[tokio::test]
async fn usage_reported_by_a_tool_counts() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "spends.ts",
        include_str!("fixtures/newer-exports/usage-reported-by-a-tool-counts.ts"),
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::tool("spend", json!({})));
    server.push(Answer::text("Done."));
    let events = rpc.run("go").await;
    let ended = events
        .iter()
        .find(|event| event["type"] == "tool_execution_end");
    let usage = &ended.unwrap()["result"]["usage"];
    assert_eq!((&usage["input"], &usage["output"]), (&json!(8), &json!(20)));
    let misfit = (events.iter()).find(|event| event["type"] == "extension_error");
    let misfit = misfit.unwrap()["error"].as_str().unwrap();
    assert!(misfit.contains("`usage` cannot be used"), "{misfit}");
    let stats = rpc.ok(json!({"type": "get_session_stats"})).await;
    assert!(stats["cost"].as_f64().unwrap() > 0.25, "{stats}");
    // The usage is in the file, too.
    rpc.close().await;
    let mut rpc = home.rpc(&["-c"]);
    assert_eq!(rpc.ok(json!({"type": "get_session_stats"})).await, stats);
}
