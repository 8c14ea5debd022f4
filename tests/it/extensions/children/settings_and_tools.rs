//! Settings, skills and tools that an extension passes to a child session.

use model_server::{Answer, ModelServer};
use serde_json::json;

use crate::support::{Home, command_result, prompt};

const SETTINGS: &str = r#"
import { createAgentSession, DefaultResourceLoader, getAgentDir, SessionManager, SettingsManager } from "@mariozechner/pi-coding-agent";
import { existsSync, readFileSync } from "node:fs";

export default (pi) => pi.registerCommand("own", { handler: async (_args, ctx) => {
  const settingsManager = SettingsManager.inMemory({
    steeringMode: "all", retry: { enabled: false }, compaction: { enabled: true },
  });
  settingsManager.applyOverrides({ compaction: { enabled: false } });
  const sessionManager = SessionManager.inMemory(ctx.cwd);
  // Without a loader the original creates one that reads the settings files, and the settings in
  // memory are lost.
  const resourceLoader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir: getAgentDir() });
  await resourceLoader.reload();
  const { session } = await createAgentSession({ model: ctx.model, sessionManager, settingsManager, resourceLoader });
  session.setScopedModels([{ model: ctx.model, thinkingLevel: "low" }]);
  const given = [session.steeringMode, session.followUpMode, session.autoRetryEnabled, session.autoCompactionEnabled];
  const scoped = session.scopedModels.map(({ model, thinkingLevel }) => [model.id === ctx.model.id, thinkingLevel]);
  const running = session.executeBash("echo ran");
  const bash = [session.isBashRunning];
  await running;
  bash.push(session.isBashRunning, session.hasPendingBashMessages);
  session.recordBashResult("elsewhere", { output: "done", exitCode: 0, cancelled: false, truncated: false });
  const messages = session.messages.map(({ role, command, output }) => [role, command, output]);
  const to = session.exportToJsonl("exported/branch.jsonl");
  const lines = readFileSync(to, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
  const [header, ...entries] = lines;
  ctx.ui.notify(JSON.stringify({
    given, scoped, bash, messages, there: existsSync("exported/branch.jsonl"),
    header: [header.type, header.version, header.id === session.sessionId, header.cwd === ctx.cwd],
    chained: entries.every((entry, index) => entry.parentId === (entries[index - 1]?.id ?? null)),
    exported: entries.filter((entry) => entry.type === "message").length,
    retryAttempt: session.retryAttempt, templates: Array.isArray(session.promptTemplates),
  }));
  session.dispose();
} });
"#;

#[tokio::test]
async fn a_child_has_the_given_settings() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("own.ts", SETTINGS);
    home.settings(json!({"followUpMode": "all", "compaction": {"enabled": true}}));
    let expected = json!({
        "given": ["all", "one-at-a-time", false, false],
        "scoped": [[true, "low"]],
        "bash": [true, false, false],
        "messages": [
            ["bashExecution", "echo ran", "ran\n"],
            ["bashExecution", "elsewhere", "done"],
        ],
        "there": true,
        "header": ["session", 3, true, true],
        "chained": true,
        "exported": 2,
        "retryAttempt": 0,
        "templates": true,
    });
    for (who, mut rpc) in [("ours", home.rpc(&[])), ("theirs", home.original_rpc(&[]))] {
        assert_eq!(command_result(&mut rpc, "own").await, expected, "{who}");
    }
}

/// The documentation of the original shows a skill that is made up so.
const MADE_UP: &str = r#"
import { createAgentSession, DefaultResourceLoader, getAgentDir, SessionManager } from "@mariozechner/pi-coding-agent";

export default (pi) => pi.registerCommand("own", { handler: async (_args, ctx) => {
  const dig = { name: "dig", description: "digs holes", filePath: ctx.cwd + "/violets.txt", baseDir: ctx.cwd, source: "custom" };
  const plant = { name: "plant", description: "Plant", source: "(custom)", content: "Plant a tree", filePath: ctx.cwd + "/violets.txt" };
  const resourceLoader = new DefaultResourceLoader({
    cwd: ctx.cwd,
    agentDir: getAgentDir(),
    skillsOverride: (current) => ({ skills: [...current.skills, dig], diagnostics: current.diagnostics }),
    promptsOverride: (current) => ({ prompts: [...current.prompts, plant], diagnostics: current.diagnostics }),
  });
  await resourceLoader.reload();
  const sessionManager = SessionManager.inMemory(ctx.cwd);
  const { session } = await createAgentSession({ model: ctx.model, sessionManager, resourceLoader });
  await session.prompt("/plant");
  ctx.ui.notify(JSON.stringify([session.systemPrompt.includes("digs holes"), session.getLastAssistantText()]));
  session.dispose();
} });
"#;

#[tokio::test]
async fn made_up_skills_and_prompts_count() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.file("violets.txt", "Violets are blue");
    home.extension("own.ts", MADE_UP);
    for (who, mut rpc) in [("ours", home.rpc(&[])), ("theirs", home.original_rpc(&[]))] {
        server.push(Answer::text("Planted."));
        let told = command_result(&mut rpc, "own").await;
        assert_eq!(told, json!([true, "Planted."]), "{who}");
        let asked = server.last_request().body.to_string();
        assert!(asked.contains("Plant a tree"), "{who}: {asked}");
    }
}

/// Child sessions without `bash`, or without any tools, had the usual ones.
const RESTRICTED: &str = r#"
import {
  createAgentSession, createEventBus, DefaultResourceLoader, getAgentDir, SessionManager,
} from "@earendil-works/pi-coding-agent";

const own = (name) => ({ name, label: name, description: name, parameters: { type: "object", properties: {} },
  execute: async () => ({ content: [] }) });

export default (pi) => pi.registerCommand("own", { handler: async (_args, ctx) => {
  const tools = async (options) => {
    const sessionManager = SessionManager.inMemory(ctx.cwd);
    const { session } = await createAgentSession({ model: ctx.model, sessionManager, ...options });
    session.setActiveToolsByName([...session.getActiveToolNames(), "bash"]);
    const active = session.getActiveToolNames();
    await session.waitForIdle();
    session.dispose();
    return active;
  };
  const customTools = [own("mine"), own("other")];
  const eventBus = createEventBus();
  const heard = [];
  eventBus.on("said", (data) => heard.push(data));
  const resourceLoader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir: getAgentDir(), eventBus, extensionFactories: [
    (pi) => pi.on("session_start", ({ reason }) => pi.events.emit("said", reason)),
  ] });
  await resourceLoader.reload();
  ctx.ui.notify(JSON.stringify({
    all: await tools({ noTools: "all", customTools }),
    builtin: await tools({ noTools: "builtin", customTools: [own("mine")], excludeTools: ["bash"] }),
    without: await tools({ excludeTools: ["bash", "other"], customTools }),
    named: await tools({ tools: ["read", "mine"], customTools }),
    wrong: await tools({ noTools: "some" }).catch(({ message }) => message),
    heard: await tools({ noTools: "all", resourceLoader, sessionStartEvent: { type: "session_start", reason: "fork" } })
      .then(() => heard),
  }));
} });
"#;

#[tokio::test]
async fn a_child_has_only_the_allowed_tools() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("own.ts", RESTRICTED);
    let mut rpc = home.rpc(&[]);
    let expected = json!({
        "all": [],
        "builtin": ["mine"],
        "without": ["read", "edit", "write", "mine"],
        "named": ["read", "mine"],
        "wrong": "createAgentSession: noTools must be \"all\" or \"builtin\", not \"some\"",
        "heard": ["fork"],
    });
    rpc.ok(prompt("/own")).await;
    rpc.notified(&expected.to_string()).await;
}

const SOURCES: &str = r#"
import { createAgentSession, DefaultResourceLoader, getAgentDir, SessionManager } from "@earendil-works/pi-coding-agent";

export default (pi) => pi.registerCommand("own", { handler: async (_args, ctx) => {
  const loaded = async (options) => {
    const loader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir: getAgentDir(), ...options });
    await loader.reload();
    return loader;
  };
  const sources = async (options) => {
    const loader = await loaded(options);
    const all = [loader.getSystemPromptSource(), ...loader.getAppendSystemPromptSources()];
    return all.map((source) => source?.path.replace(ctx.cwd, "CWD").replace(getAgentDir(), "AGENT") ?? null);
  };
  const { runtime, extensions } = (await loaded({})).getExtensions();
  runtime.flagValues.set("flag", true);
  const { session, extensionsResult } = await createAgentSession({ model: ctx.model, sessionManager: SessionManager.inMemory(ctx.cwd) });
  session.dispose();
  let refused;
  try { runtime.sendMessage({}); } catch (error) { refused = error.message.split(".")[0]; }
  ctx.ui.notify(JSON.stringify({
    found: await sources({}),
    named: await sources({ systemPrompt: "mine.md", appendSystemPrompt: ["Be kind.", ctx.cwd + "/mine.md"] }),
    texts: await sources({ systemPrompt: "Be brief.", appendSystemPrompt: [] }),
    runtime: [extensions.map(({ path }) => path.replace(getAgentDir(), "AGENT")), [...runtime.flagValues.keys()], refused, typeof extensionsResult.runtime.registerProvider],
  }));
} });
"#;

/// Newer versions ask for the source of the system prompt and for shared extensions.
#[tokio::test]
async fn a_loader_reports_the_source_of_the_prompt() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.file(".pi/SYSTEM.md", "You are theirs.");
    home.file("mine.md", "You are mine.");
    std::fs::write(home.agent_dir().join("APPEND_SYSTEM.md"), "And quick.").unwrap();
    home.extension("own.ts", SOURCES);
    let mut rpc = home.rpc(&[]);
    let expected = json!({
        "found": ["CWD/.pi/SYSTEM.md", "AGENT/APPEND_SYSTEM.md"],
        "named": ["CWD/mine.md", "CWD/mine.md"],
        "texts": [null],
        "runtime": [["AGENT/extensions/own.ts"], ["flag"], "Extension runtime not initialized", "function"],
    });
    assert_eq!(command_result(&mut rpc, "own").await, expected);
}
