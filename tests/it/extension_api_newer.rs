//! Values that only newer versions export, and that have a counterpart here.

use model_server::{Answer, ModelServer};
use serde_json::json;

use crate::extension_api_sdk::checked;
use crate::support::{Home, Rpc};

#[tokio::test]
async fn a_provider_that_is_put_together_can_be_registered() {
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
    assert_eq!(checked(&mut rpc, "look").await, expected);
}

#[tokio::test]
async fn scopes_pictures_and_stacks() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "newer.ts",
        r#"
        import { convertToPng, createAgentSession, resolveModelScopeWithDiagnostics } from "@earendil-works/pi-coding-agent";
        import { HStack, ScrollView, stripTerminalSequences, VStack } from "@earendil-works/pi-tui";
        const GIF = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
        class Kept extends ScrollView {}
        export default (pi) => pi.registerCommand("look", { handler: async (_args, ctx) => {
          const patterns = ["scripted-1", "scripted/*:high", "none*", "scripted-1:huge"];
          const { scopedModels, diagnostics } = await resolveModelScopeWithDiagnostics(patterns, ctx.modelRegistry);
          const png = await convertToPng(GIF, "image/gif");
          const { session } = await createAgentSession({ model: ctx.model });
          const text = (words) => ({ render: () => words.split("\n"), invalidate() {} });
          const row = new HStack([{ component: text("left"), grow: 1 }, text("r\nig\nht")], { gap: 1, align: "end" });
          const column = new VStack([text("one"), { component: text("a\nb\nc"), maxSize: 2 }, { component: text("x"), minSize: 2 }], { gap: 1 });
          const view = new Kept(column, { follow: "end", scrollbar: "always" });
          view.updateLayout(10, 4, () => {});
          const seen = [view.scrollTop, view.scrollBy(-20), view.scrollTop, view.isFollowingEnd];
          view.scrollToEnd();
          seen.push(view.scrollTop, view.isFollowingEnd, view.getContentWidth(10));
          ctx.ui.notify(JSON.stringify({
            scoped: scopedModels.map(({ model, thinkingLevel }) => [model.id, thinkingLevel ?? null]),
            diagnostics: diagnostics.map(({ code, pattern }) => [code, pattern]),
            png: [png.mimeType, png.data.startsWith("iVBORw0KGgo")], broken: await convertToPng("abc", "image/gif"),
            idle: session.isIdle,
            row: row.render(12).map(stripTerminalSequences), column: column.render(6).map((line) => line.trimEnd()), seen,
          }));
          session.dispose();
        } });"#,
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
    assert_eq!(checked(&mut rpc, "look").await, expected);
}
