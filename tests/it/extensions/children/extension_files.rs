//! Extensions from files in child sessions (`createAgentSession`). Without them sub-agents had none
//! of the user's tools and no gates.

use model_server::{Answer, ModelServer};
use serde_json::json;

use crate::support::{Home, prompt};

/// A tool, a gate, and a handler that fails.
const GATE: &str = include_str!("fixtures/extension-files/gate.ts");

/// An extension whose slash command runs `body` with a helper `begin(options, ask)` and shows the
/// result as JSON.
fn begins(body: &str) -> String {
    format!(
        r#"import {{ createAgentSession, DefaultResourceLoader, getAgentDir, SessionManager }} from "@earendil-works/pi-coding-agent";
        import {{ basename }} from "node:path";
        const loaderOf = async (ctx, options) => {{
          const loader = new DefaultResourceLoader({{ cwd: ctx.cwd, agentDir: getAgentDir(), ...options }});
          await loader.reload();
          return loader;
        }};
        const begin = async (ctx, options = {{}}) =>
          (await createAgentSession({{ model: ctx.model, sessionManager: SessionManager.inMemory(), ...options }})).session;
        const results = (session) => session.messages.filter(({{ role }}) => role === "toolResult")
          .map(({{ content, isError }}) => [content[0].text, isError]).sort();
        const named = (extensions) => extensions.map(({{ path }}) => basename(path));
        export default (pi) => pi.registerCommand("try", {{ handler: async (_args, ctx) => {{
          const run = async () => {{ {body} }};
          ctx.ui.notify(JSON.stringify(await run().catch((error) => String(error.stack))));
        }} }});"#
    )
}

#[tokio::test]
async fn a_child_without_a_loader_has_discovered_extensions() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("gate.ts", GATE);
    home.extension(
        "begin.ts",
        &begins(
            r#"const session = await begin(ctx);
            const errors = [];
            const before = [session.hasExtensionHandlers("tool_call"), session.extensionRunner.hasHandlers("context")];
            await session.bindExtensions({ onError: (error) => errors.push([basename(error.extensionPath), error.event, error.error]) });
            await session.prompt("go");
            const tools = session.getAllTools().map(({ name }) => name);
            const active = session.getActiveToolNames();
            await session.extensionRunner.emit({ type: "session_shutdown", reason: "quit" });
            const refused = await session.extensionRunner.emit({ type: "input" }).catch(({ message }) => message.split(" ")[0]);
            session.dispose();
            return [before, results(session), errors, tools.includes("shout"), active.includes("shout"), refused,
              session.hasExtensionHandlers("tool_call")];"#,
        ),
    );
    for answer in [
        Answer::tools([
            ("shout", json!({"text": "hear"})),
            ("write", json!({"path": "x", "content": "y"})),
        ]),
        Answer::text("Fine."),
    ] {
        server.push(answer);
    }
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/try")).await;
    let expected = json!([
        [true, false],
        [["HEAR false print", false], ["no writing", true]],
        [["gate.ts", "agent_end", "a slip at the end"]],
        true,
        true,
        "extensionRunner.emit(\"input\")",
        false,
    ]);
    rpc.notified(&expected.to_string()).await;
    let heard = std::fs::read_to_string(home.cwd().join("heard.txt")).unwrap();
    assert_eq!(heard, "session_start startup\nsession_shutdown quit\n");
    assert!(!home.cwd().join("x").exists());
}

#[tokio::test]
async fn a_loader_chooses_the_extensions_of_a_child() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("gate.ts", GATE);
    home.file("own/more.ts", &GATE.replace("shout", "more"));
    home.extension(
        "begin.ts",
        &begins(
            r#"const told = async (options) => {
              const loader = await loaderOf(ctx, options);
              const { extensions, errors } = loader.getExtensions();
              const { session, extensionsResult } = await createAgentSession({ model: ctx.model, resourceLoader: loader,
                sessionManager: SessionManager.inMemory() });
              const tools = session.getAllTools().map(({ name }) => name).filter((name) => name === "shout" || name === "more");
              session.dispose();
              return [named(extensions), errors.map(({ error }) => error.split(":")[0]), tools, extensionsResult.extensions === extensions];
            };
            const all = await loaderOf(ctx, {});
            const gate = all.getExtensions().extensions.find(({ path }) => path.endsWith("gate.ts"));
            const change = (() => { try { gate.tools.delete("shout"); } catch ({ message }) { return message.includes("its tools cannot be changed here"); } })();
            return [
              await told({ noExtensions: true }),
              await told({ noExtensions: true, additionalExtensionPaths: [`${ctx.cwd}/own/more.ts`] }),
              await told({ extensionsOverride: (base) => ({ ...base, extensions: base.extensions.filter(({ path }) => path.endsWith("gate.ts")) }) }),
              await told({ extensionsOverride: (base) => ({ ...base, extensions: [] }) }),
              await told({ additionalExtensionPaths: ["none.ts"], noExtensions: true }),
              [[...gate.tools.keys()], [...gate.commands.keys()], gate.handlers.has("tool_call"), gate.tools.get("shout").definition.description, change],
              await begin(ctx, { resourceLoader: { ...{}, getExtensions: () => ({ extensions: [{ path: "made up" }], errors: [] }) } })
                .catch(({ message }) => message.split(" that ")[0]),
            ];"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/try")).await;
    let expected = json!([
        [[], [], [], true],
        [["more.ts"], [], ["more"], true],
        [["gate.ts"], [], ["shout"], true],
        [[], [], [], true],
        [[], ["Extension path does not exist"], [], true],
        [["shout"], ["shout-about"], true, "Shouts", true],
        "createAgentSession: getExtensions() of resourceLoader gave an extension (made up)",
    ]);
    rpc.notified(&expected.to_string()).await;
}

/// The extension stops only its own isolate: neither the session of the user nor the other child
/// session is affected.
#[tokio::test]
async fn an_extension_that_hangs_in_a_child_is_left_out_of_it() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"extensionTimeouts": {"spin": 1000}}));
    home.extension(
        "spins.ts",
        r#"export default (pi) => pi.on("turn_start", (_event, ctx) => {
          if (!ctx.hasUI) for (;;);
        });"#,
    );
    home.extension(
        "begin.ts",
        &begins(
            r#"const errors = [];
            const session = await begin(ctx, { tools: [] });
            await session.bindExtensions({ onError: ({ extensionPath }) => errors.push(basename(extensionPath)) });
            await session.prompt("go");
            const last = session.messages.at(-1).content[0].text;
            session.dispose();
            return [last, [...new Set(errors)]];"#,
        ),
    );
    server.push(Answer::text("Fine."));
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/try")).await;
    let expected = json!(["Fine.", ["spins.ts"]]);
    rpc.notified(&expected.to_string()).await;
    server.push(Answer::text("here as well"));
    assert_eq!(rpc.answer_to("and here?").await, "here as well");
}

/// A provider of an extension exists in the child session that loads the extension, and disappears
/// with it.
#[tokio::test]
async fn a_child_has_the_providers_of_its_extensions() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.file(
        "own/brings.ts",
        include_str!("fixtures/extension-files/a-child-has-the-providers-of-its-extensions.ts"),
    );
    home.extension(
        "begin.ts",
        &begins(
            r#"const { ModelRuntime } = await import("@earendil-works/pi-coding-agent");
            const model = { id: "b", name: "b", provider: "brought", api: "brought-api", baseUrl: "u", reasoning: false, input: ["text"],
              cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 200000, maxTokens: 900 };
            const runtime = await ModelRuntime.create();
            const answers = [];
            for (const more of [{}, { modelRuntime: runtime }]) {
              const resourceLoader = await loaderOf(ctx, { noExtensions: true, additionalExtensionPaths: [`${ctx.cwd}/own/brings.ts`] });
              const session = await begin(ctx, { resourceLoader, model, tools: [], ...more });
              await session.prompt("go");
              answers.push(session.messages.at(-1).content[0]?.text ?? session.messages.at(-1).errorMessage);
              session.dispose();
            }
            return [answers, ctx.modelRegistry.find("brought", "b") ?? null];"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/try")).await;
    let expected = json!([["brought along", "brought along"], null]);
    rpc.notified(&expected.to_string()).await;
}

/// Published sub-agents name and label their child sessions.
#[tokio::test]
async fn the_session_manager_of_a_running_child_is_writable() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "begin.ts",
        &begins(
            r#"const sessionManager = SessionManager.create(ctx.cwd);
            const session = await begin(ctx, { sessionManager, tools: [], resourceLoader: await loaderOf(ctx, { noExtensions: true }) });
            await session.prompt("go");
            const [first] = session.sessionManager.getEntries().filter(({ type }) => type === "message");
            const ids = [
              session.sessionManager.appendSessionInfo("  mine "), sessionManager.appendLabelChange(first.id, "start"),
              sessionManager.appendCustomEntry("state", { a: 1 }), sessionManager.appendCustomMessageEntry("note", "noted", true),
            ];
            const found = ids.map((id) => sessionManager.getEntry(id).type);
            const refused = (() => { try { sessionManager.appendMessage({}); } catch ({ message }) { return message.split(" is ")[0]; } })();
            const told = [session.sessionName, sessionManager.getLabel(first.id), found, refused];
            const file = session.sessionFile;
            session.dispose();
            return [...told, SessionManager.open(file).getEntries().slice(-4).map(({ type }) => type)];"#,
        ),
    );
    server.push(Answer::text("Fine."));
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/try")).await;
    let written = ["session_info", "label", "custom", "custom_message"];
    let expected = json!([
        "mine",
        "start",
        written,
        "sessionManager.appendMessage()",
        written
    ]);
    rpc.notified(&expected.to_string()).await;
}

/// Published sub-agents pass discovered extensions to their loader in this way.
#[tokio::test]
async fn a_custom_loader_passes_discovered_extensions() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("gate.ts", GATE);
    home.file("own/more.ts", &GATE.replace("shout", "more"));
    home.file("empty/x", "");
    home.extension(
        "begin.ts",
        &begins(
            r#"const { createEventBus, discoverAndLoadExtensions } = await import("@earendil-works/pi-coding-agent");
            const empty = `${ctx.cwd}/empty`;
            const found = await discoverAndLoadExtensions([`${ctx.cwd}/own/more.ts`], empty, empty, createEventBus());
            const session = await begin(ctx, { resourceLoader: { getExtensions: () => found } });
            const tools = session.getAllTools().map(({ name }) => name).filter((name) => name === "shout" || name === "more");
            session.dispose();
            return [named(found.extensions), found.errors, typeof found.runtime, tools];"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/try")).await;
    let expected = json!([["more.ts"], [], "object", ["more"]]);
    rpc.notified(&expected.to_string()).await;
}

/// Newer versions pass a folder; all sessions of the user were listed instead.
#[tokio::test]
async fn sessions_of_a_given_folder_are_listed() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "begin.ts",
        &begins(
            r#"const dir = `${ctx.cwd}/mine`;
            for (const cwd of ["/tmp/a", "/tmp/b"]) {
              const session = await begin(ctx, { sessionManager: SessionManager.create(cwd, dir), cwd: ctx.cwd, tools: [] });
              await session.prompt("go");
              session.dispose();
            }
            const progress = [];
            const listed = await SessionManager.listAll(dir, (...told) => progress.push(told));
            return [listed.map(({ cwd }) => cwd).sort(), progress.at(-1), (await SessionManager.listAll("/no/such")).length];"#,
        ),
    );
    server.repeat(Answer::text("Fine."));
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/try")).await;
    let expected = json!([["/tmp/a", "/tmp/b"], [2, 2], 0]);
    rpc.notified(&expected.to_string()).await;
}
