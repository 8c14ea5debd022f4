//! Extensions that child sessions get as functions (`extensionFactories`).

use model_server::{Answer, ModelServer};
use serde_json::json;

use crate::support::{Home, prompt, with_extension};

/// Sub-agents pass guards in this way; the loader refused them, and with them their tools.
#[tokio::test]
async fn a_child_takes_extensions_as_functions() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "guarded.ts",
        r#"import { createAgentSession, DefaultResourceLoader, getAgentDir, SessionManager } from "@mariozechner/pi-coding-agent";
        const open = async (ctx, ...extensionFactories) => {
          const resourceLoader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir: getAgentDir(), extensionFactories });
          await resourceLoader.reload();
          const { session } = await createAgentSession({ model: ctx.model, sessionManager: SessionManager.inMemory(), resourceLoader });
          return session;
        };
        export default (pi) => {
          pi.registerCommand("guard", { handler: async (_args, ctx) => {
            const heard = [];
            const session = await open(ctx, (pi) => {
              for (const name of ["session_start", "turn_start", "turn_end", "agent_end", "session_shutdown"])
                pi.on(name, ({ turnIndex }, inner) => { heard.push(turnIndex === undefined ? name : `${name} ${turnIndex}`, inner.mode); });
              pi.on("tool_call", ({ toolName, input }) => {
                if (input.command === "rm x") return { block: true, reason: `no ${toolName}` };
                if (toolName === "bash") input.command = "echo changed";
              });
              pi.on("tool_result", ({ content, isError }) => ({ content: [...content, { type: "text", text: `seen ${isError}` }] }));
              pi.registerTool({ name: "mine", description: "m", parameters: { type: "object", properties: {} },
                execute: async () => ({ content: [{ type: "text", text: "from mine" }], details: {} }) });
            });
            await session.prompt("go");
            const results = session.messages.filter((one) => one.role === "toolResult")
              .map((one) => one.content.map((block) => block.text.trim()).join("|"));
            session.dispose();
            await null;
            ctx.ui.notify(JSON.stringify([results, heard.filter((one) => one !== "print"), heard.includes("print")]));
          } });
          pi.registerCommand("refused", { handler: async (_args, ctx) => {
            const failure = async (factory) => { try { await open(ctx, factory); } catch (error) { return error.message; } };
            ctx.ui.notify(JSON.stringify([
              await failure((pi) => pi.on("input", () => {})),
              await failure((pi) => pi.registerCommand("x", { handler() {} })),
              await failure(() => { throw new Error("broken guard"); }),
            ]));
          } });
        };"#,
    );
    for call in [
        Answer::tool("bash", json!({"command": "rm x"})),
        Answer::tool("bash", json!({"command": "echo given"})),
        Answer::tool("mine", json!({})),
        Answer::text("Fine."),
    ] {
        server.push(call);
    }
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/guard")).await;
    let expected = json!([
        ["no bash", "changed|seen false", "from mine|seen false"],
        [
            "session_start",
            "turn_start 0",
            "turn_end 0",
            "turn_start 1",
            "turn_end 1",
            "turn_start 2",
            "turn_end 2",
            "turn_start 3",
            "turn_end 3",
            "agent_end",
            "session_shutdown"
        ],
        true,
    ]);
    rpc.notified(&expected.to_string()).await;
    rpc.ok(prompt("/refused")).await;
    let here = "is not available to an extension of extensionFactories in this version of pi";
    let expected = json!([
        format!("pi.on(\"input\") {here}"),
        format!("pi.registerCommand {here}"),
        "broken guard",
    ]);
    rpc.notified(&expected.to_string()).await;
}

/// pi-subagents passes such functions to its children, and no child session could start.
#[tokio::test]
async fn extension_functions_change_messages_and_requests() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    home.extension(
        "changes.ts",
        r#"import { createAgentSession, DefaultResourceLoader, getAgentDir, SessionManager } from "@earendil-works/pi-coding-agent";
        export default (pi) => pi.registerCommand("go", { handler: async (_args, ctx) => {
          const seen = [];
          const first = (pi) => {
            pi.on("before_agent_start", ({ prompt, systemPrompt }) => {
              seen.push(prompt, systemPrompt.length > 0);
              return { systemPrompt: "Mine.", message: { customType: "note", content: "noted", display: true } };
            });
            pi.on("context", ({ messages }) => ({ messages: messages.filter(({ content }) => content !== "secret") }));
            pi.on("before_provider_request", ({ payload }) => ({ ...payload, temperature: 0.5 }));
          };
          const second = (pi) => {
            pi.on("before_agent_start", ({ systemPrompt }) => ({ systemPrompt: `${systemPrompt} And mine.` }));
            pi.on("before_provider_request", ({ payload }) => { payload.temperature += 0.25; });
            pi.on("context", () => { throw new Error("a slip in context"); });
          };
          const resourceLoader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir: getAgentDir(), extensionFactories: [first, second] });
          await resourceLoader.reload();
          const { session } = await createAgentSession({ model: ctx.model, sessionManager: SessionManager.inMemory(), resourceLoader });
          await session.sendCustomMessage({ customType: "x", content: "secret", display: true });
          await session.prompt("hello");
          session.dispose();
          ctx.ui.notify(JSON.stringify(seen));
        } });"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    rpc.notified(r#"["hello",true]"#).await;
    let body = server.last_request().body;
    let (told, system) = (body["messages"].to_string(), body["system"].to_string());
    assert!(told.contains("noted") && !told.contains("secret"), "{body}");
    assert!(system.contains("Mine. And mine."), "{system}");
    assert_eq!(body["temperature"], 0.75);
    let slip = |line: &serde_json::Value| line["error"] == "a slip in context";
    rpc.find(0, "the slip", slip).await;
}

/// The usage that the handlers reported was lost.
#[tokio::test]
async fn handlers_of_a_child_report_the_usage_of_a_tool() {
    let server = ModelServer::start().await;
    for tool in ["mine", "other"] {
        server.push(Answer::tool(tool, json!({})));
    }
    server.push(Answer::text("Fine."));
    let home = Home::new(&server);
    home.extension(
        "costs.ts",
        r#"import { createAgentSession, DefaultResourceLoader, getAgentDir, SessionManager } from "@earendil-works/pi-coding-agent";
        const tool = (name, more) => ({ name, label: name, description: name, parameters: { type: "object", properties: {} },
          execute: async () => ({ content: [], details: {}, ...more }) });
        export default (pi) => pi.registerCommand("go", { handler: async (_args, ctx) => {
          const resourceLoader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir: getAgentDir(), extensionFactories: [(pi) =>
            pi.on("tool_result", ({ toolName, usage }) => toolName === "mine" ? { usage: { input: usage.input + 1 } } : undefined)] });
          await resourceLoader.reload();
          const { session } = await createAgentSession({ model: ctx.model, sessionManager: SessionManager.inMemory(), resourceLoader,
            customTools: [tool("mine", { usage: { input: 4 } }), tool("other", { usage: { input: 9 } })] });
          await session.prompt("go");
          const results = session.messages.filter(({ role }) => role === "toolResult");
          session.dispose();
          ctx.ui.notify(JSON.stringify(results.map(({ usage }) => usage)));
        } });"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    rpc.notified(r#"[{"input":5},{"input":9}]"#).await;
}

/// Newer versions emit the entry to listeners of the session.
#[tokio::test]
async fn an_extension_of_a_child_appends_entries() {
    let server = ModelServer::start().await;
    server.push(Answer::text("Fine."));
    let home = Home::new(&server);
    home.extension(
        "notes.ts",
        r#"import { createAgentSession, DefaultResourceLoader, getAgentDir, SessionManager } from "@earendil-works/pi-coding-agent";
        const early = (pi) => { try { pi.appendEntry("early"); } catch (error) { return error.message.split(":")[0]; } };
        export default (pi) => pi.registerCommand("note", { handler: async (_args, ctx) => {
          let refused;
          const resourceLoader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir: getAgentDir(), extensionFactories: [(pi) => {
            refused = early(pi);
            pi.on("agent_start", () => pi.appendEntry("noted", { turn: 1 }));
          }] });
          await resourceLoader.reload();
          const sessionManager = SessionManager.inMemory(ctx.cwd);
          const { session } = await createAgentSession({ model: ctx.model, sessionManager, resourceLoader });
          const heard = [];
          session.subscribe(({ type, entry }) => type === "entry_appended" && heard.push(entry));
          await session.prompt("go");
          const custom = session.sessionManager.getEntries().filter(({ type }) => type === "custom");
          session.dispose();
          ctx.ui.notify(JSON.stringify([
            refused, heard.map(({ customType, data }) => [customType, data]), custom.map(({ id }) => id === heard[0].id),
          ]));
        } });"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/note")).await;
    let expected = json!(["pi.appendEntry", [["noted", {"turn": 1}]], [true]]);
    rpc.notified(&expected.to_string()).await;
}

/// No event was emitted: the caller of `createAgentSession` sets names and levels, too.
#[tokio::test]
async fn a_child_emits_changes_of_name_and_thinking_level() {
    let (_server, _home, mut rpc) = with_extension(
        r#"import { createAgentSession, DefaultResourceLoader, getAgentDir, SessionManager } from "@earendil-works/pi-coding-agent";
        export default (pi) => pi.registerCommand("go", { handler: async (_args, ctx) => {
          const heard = [], handled = [];
          const resourceLoader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir: getAgentDir(), extensionFactories: [(pi) => {
            for (const name of ["session_info_changed", "thinking_level_select"])
              pi.on(name, ({ name, level, previousLevel }) => handled.push(name ?? `${previousLevel} ${level}`));
          }] });
          await resourceLoader.reload();
          const model = { ...ctx.model, reasoning: true };
          const { session } = await createAgentSession({ model, thinkingLevel: "low", sessionManager: SessionManager.inMemory(), resourceLoader });
          session.subscribe(({ type, name, level }) => heard.push([type, name ?? level]));
          session.setSessionName("mine");
          session.setThinkingLevel("high");
          session.setThinkingLevel("high");
          const atOnce = heard.length;
          session.cycleThinkingLevel();
          await session.setModel(ctx.model);
          session.dispose();
          ctx.ui.notify(JSON.stringify({ atOnce, heard, handled }));
        } });"#,
    )
    .await;
    rpc.ok(prompt("/go")).await;
    let expected = json!({
        "atOnce": 2,
        "heard": [
            ["session_info_changed", "mine"],
            ["thinking_level_changed", "high"],
            ["thinking_level_changed", "off"],
        ],
        "handled": ["mine", "low high", "high off"],
    });
    rpc.notified(&expected.to_string()).await;
}

/// The result was lost, and the session continued without it.
#[tokio::test]
async fn turn_end_results_apply_to_the_child() {
    let server = ModelServer::start().await;
    for text in ["One.", "Two."] {
        server.push(Answer::text(text));
    }
    let home = Home::new(&server);
    home.extension(
        "drafts.ts",
        r#"import { createAgentSession, DefaultResourceLoader, getAgentDir, SessionManager } from "@earendil-works/pi-coding-agent";
        export default (pi) => pi.registerCommand("go", { handler: async (_args, ctx) => {
          const seen = [], heard = [];
          const resourceLoader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir: getAgentDir(), extensionFactories: [
            (pi) => pi.on("turn_end", ({ turnIndex, outcome, messageEntryId, context }, inner) => {
              const last = inner.sessionManager.getEntry(messageEntryId).message.content[0].text;
              seen.push([turnIndex, outcome, last, context.canContinue]);
              if (turnIndex > 0) return;
              const message = { type: "custom_message", customType: "more", content: "And more?", display: true };
              return { entries: [{ type: "custom", customType: "noted", data: 5 }, message], continue: true };
            }),
            (pi) => pi.on("turn_end", ({ entries, continue: goesOn, context, turnIndex }) => {
              seen.push([entries.map(({ type }) => type), goesOn, context.canContinue]);
              if (turnIndex === 0) return { entries: [...entries, { type: "nonsense" }] };
            }),
          ] });
          await resourceLoader.reload();
          const { session } = await createAgentSession({ model: ctx.model, sessionManager: SessionManager.inMemory(), resourceLoader });
          session.subscribe(({ type, entry }) => type === "entry_appended" && heard.push(entry.customType));
          await session.prompt("go");
          const stored = session.sessionManager.getEntries().map(({ type, customType }) => customType ?? type);
          session.dispose();
          ctx.ui.notify(JSON.stringify({ seen, heard, stored: stored.slice(2) }));
        } });"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    let expected = json!({
        "seen": [
            [0, "completed", "One.", false],
            [["custom", "custom_message"], true, true],
            [1, "completed", "Two.", false],
            [[], false, false],
        ],
        "heard": ["noted", "more"],
        "stored": ["message", "message", "noted", "more", "message"],
    });
    rpc.notified(&expected.to_string()).await;
    let request = server.last_request().body["messages"].to_string();
    assert!(request.contains("And more?"), "{request}");
    let lines = rpc.lines();
    let mut errors = lines
        .iter()
        .filter(|line| line["type"] == "extension_error");
    let text = errors.next().unwrap()["error"].as_str().unwrap();
    assert!(
        text.contains("entries[2]") && text.contains("nonsense"),
        "{text}"
    );
}

/// Published sub-agents write their guard as an object, as the original's loaders return
/// extensions.
#[tokio::test]
async fn an_extension_object_guards_a_child() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "written.ts",
        r#"import { createAgentSession, createExtensionRuntime, SessionManager } from "@earendil-works/pi-coding-agent";
        const written = (more) => ({ path: "written:gate", resolvedPath: "written:gate", commands: new Map(), flags: new Map(),
          handlers: new Map([["tool_call", [async ({ toolName }) => toolName === "bash" ? { block: true, reason: "no bash" } : undefined]]]),
          tools: new Map([["mine", { definition: { name: "mine", label: "m", description: "m", parameters: { type: "object", properties: {} },
            execute: async () => ({ content: [{ type: "text", text: "from mine" }], details: {} }) } }]]), ...more });
        const open = async (ctx, extension) => {
          const resourceLoader = { getExtensions: () => ({ extensions: [extension], errors: [], runtime: createExtensionRuntime() }),
            getSkills: () => ({ skills: [], diagnostics: [] }), getPrompts: () => ({ prompts: [], diagnostics: [] }),
            getThemes: () => ({ themes: [], diagnostics: [] }), getAgentsFiles: () => ({ agentsFiles: [] }),
            getSystemPrompt: () => "Be brief.", getAppendSystemPrompt: () => [], extendResources() {}, async reload() {} };
          return (await createAgentSession({ model: ctx.model, sessionManager: SessionManager.inMemory(), resourceLoader })).session;
        };
        export default (pi) => pi.registerCommand("go", { handler: async (_args, ctx) => {
          const session = await open(ctx, written({}));
          await session.prompt("go");
          const results = session.messages.filter(({ role }) => role === "toolResult").map(({ content }) => content[0].text);
          session.dispose();
          const refused = await open(ctx, written({ commands: new Map([["x", {}]]) })).catch(({ message }) => message);
          ctx.ui.notify(JSON.stringify([results, refused]));
        } });"#,
    );
    server.push(Answer::tools([
        ("bash", json!({"command": "ls"})),
        ("mine", json!({})),
    ]));
    server.push(Answer::text("Fine."));
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    let expected = json!([
        ["no bash", "from mine"],
        "written:gate: what its `commands` have is not available to an extension of extensionFactories in this version \
         of pi",
    ]);
    rpc.notified(&expected.to_string()).await;
}
