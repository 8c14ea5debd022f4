//! Parts of a child session: its loader, tools that can be run, shell commands by operations of the
//! extension. The original gets the same questions.

use model_server::{Answer, ModelServer};
use serde_json::json;

use crate::support::{Home, command_result};

const COMMANDS: &str = r#"
import { createAgentSession, DefaultResourceLoader, getAgentDir, SessionManager } from "@mariozechner/pi-coding-agent";

export default (pi) => pi.registerCommand("commands", { handler: async (_args, ctx) => {
  const resourceLoader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir: getAgentDir() });
  await resourceLoader.reload();
  const { session } = await createAgentSession({
    model: ctx.model, sessionManager: SessionManager.inMemory(ctx.cwd), resourceLoader });
  const remote = { async exec(command, cwd, { onData, signal }) {
    onData(Buffer.from(`\u001b[1m${command}\u001b[0m in ${cwd === ctx.cwd}\r\n`));
    if (signal.aborted) throw new Error("aborted");
    if (command === "hang") await new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
    return { exitCode: 3 };
  } };
  const chunks = [];
  const far = await session.executeBash("touch local", (chunk) => chunks.push(chunk), { operations: remote });
  const quiet = await session.executeBash("again", undefined, { operations: remote });
  const hanging = session.executeBash("hang", () => session.abortBash(), { operations: remote });
  const aborted = await hanging;
  const broken = await session.executeBash("x", undefined, { operations: { exec: async () => { throw new Error("no line") } } })
    .catch((error) => error.message);
  const times = [];
  const near = await session.executeBash("echo a; sleep 0.4; echo b", (chunk) => times.push([chunk, Date.now()]));
  const none = [];
  await session.executeBash("true", (chunk) => none.push(chunk));
  ctx.ui.notify(JSON.stringify({
    far: [far.output, far.exitCode, far.cancelled], chunks, quiet: [quiet.output, quiet.exitCode],
    aborted: aborted.cancelled, broken, near: [near.output, near.exitCode],
    pieces: times.map(([chunk]) => chunk), apart: times.at(-1)[1] - times[0][1] > 200, none,
    recorded: session.messages.map(({ command, output }) => [command, output]).slice(0, 2), running: session.isBashRunning,
  }));
  session.dispose();
} });
"#;

/// The commands ran on this machine despite the given operations.
#[tokio::test]
async fn commands_of_a_child_use_the_given_operations() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("commands.ts", COMMANDS);
    let expected = json!({
        "far": ["touch local in true\n", 3, false],
        "chunks": ["touch local in true\n"],
        "quiet": ["again in true\n", 3],
        "aborted": true,
        "broken": "no line",
        "near": ["a\nb\n", 0],
        "pieces": ["a\n", "b\n"],
        "apart": true,
        "none": [],
        "recorded": [["touch local", "touch local in true\n"], ["again", "again in true\n"]],
        "running": false,
    });
    for (who, mut rpc) in [("ours", home.rpc(&[])), ("theirs", home.original_rpc(&[]))] {
        assert_eq!(
            command_result(&mut rpc, "commands").await,
            expected,
            "{who}"
        );
        assert!(!home.cwd().join("local").exists());
    }
}

const FURNISHED: &str = r#"
import { createAgentSession, DefaultResourceLoader, getAgentDir, loadSkillsFromDir, SessionManager, SettingsManager } from "@mariozechner/pi-coding-agent";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const skill = (dir, name) => {
  mkdirSync(join(dir, name), { recursive: true });
  writeFileSync(join(dir, name, "SKILL.md"), `---\nname: ${name}\ndescription: About ${name}\n---\nDo it.`);
};

export default (pi) => pi.registerCommand("furnished", { handler: async (_args, ctx) => {
  const agentDir = getAgentDir();
  skill(join(ctx.cwd, "far"), "far-away");
  skill(join(agentDir, "skills"), "at-home");
  mkdirSync(join(agentDir, "prompts"), { recursive: true });
  writeFileSync(join(agentDir, "prompts", "greet.md"), "Greet $1");
  writeFileSync(join(ctx.cwd, "later.md"), "Later");
  const settingsManager = SettingsManager.inMemory({});
  const loader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir, settingsManager });
  await loader.reload();
  const names = (list) => list.map(({ name }) => name).sort();
  const found = [names(loader.getSkills().skills), names(loader.getPrompts().prompts)];
  const metadata = { source: "test", scope: "temporary", origin: "top-level" };
  loader.extendResources({ promptPaths: [{ path: join(ctx.cwd, "later.md"), metadata }] });
  found.push(names(loader.getPrompts().prompts));
  const own = loadSkillsFromDir({ dir: join(ctx.cwd, "far"), source: "mine" }).skills[0].sourceInfo.source;

  const custom = { name: "own", label: "Own", description: "d", parameters: { type: "object", properties: {} },
    execute: async (_id, _params, _signal, _update, c) => ({ content: [{ type: "text", text: c.cwd === ctx.cwd ? "here" : "away" }], details: {} }) };
  const { session } = await createAgentSession({ cwd: ctx.cwd, agentDir, model: ctx.model, customTools: [custom],
    sessionManager: SessionManager.inMemory(ctx.cwd), settingsManager, modelRegistry: ctx.modelRegistry });
  const templates = names(session.promptTemplates);
  const skills = names(session.resourceLoader.getSkills().skills);
  const { tools } = session.agent.state;
  writeFileSync("a.txt", "inside");
  const read = await tools.find(({ name }) => name === "read").execute("1", { path: "a.txt" });
  const mine = await tools.find(({ name }) => name === "own").execute("2", {});
  const [one, two, three] = ["one", "two", "three"].map((id) => ({ ...ctx.model, id, name: id }));
  session.setScopedModels([{ model: ctx.model }, { model: two }, { model: three }]);
  const back = (await session.cycleModel("backward"))?.model.id;
  await session.setModel(ctx.model);
  const preflight = [];
  await session.prompt("hello", { preflightResult: (accepted) => preflight.push(accepted) });
  const { session: given } = await createAgentSession({ cwd: ctx.cwd, model: ctx.model, resourceLoader: loader,
    sessionManager: SessionManager.inMemory(ctx.cwd) });
  await given.prompt("/later");
  const [expanded] = given.messages[0].content.map(({ text }) => text);
  given.dispose();
  ctx.ui.notify(JSON.stringify({
    found, own, expanded, templates, skills, labels: tools.map(({ label }) => label).sort(),
    read: read.content[0].text, mine: mine.content[0].text, back, preflight,
    bash: typeof session.getToolDefinition("bash").execute, none: session.getToolDefinition("none") === undefined,
    answer: session.getLastAssistantText(),
  }));
  session.dispose();
} });
"#;

/// The loader was missing, tools could not be run, and options of the loader had no effect.
#[tokio::test]
async fn a_child_has_a_loader_and_runnable_tools() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("furnished.ts", FURNISHED);
    // The loader gets other skills than those of the settings file.
    home.settings(json!({ "skills": [home.cwd().join("far")] }));
    let expected = json!({
        "found": [["at-home"], ["greet"], ["greet", "later"]],
        "own": "mine",
        "expanded": "Later",
        "templates": ["greet"],
        "skills": ["at-home"],
        "labels": ["Own", "bash", "edit", "read", "write"],
        "read": "inside",
        "mine": "here",
        "back": "three",
        "preflight": [true],
        "bash": "function",
        "none": true,
        "answer": "Hello.",
    });
    for (who, mut rpc) in [("ours", home.rpc(&[])), ("theirs", home.original_rpc(&[]))] {
        server.push(Answer::text("Hello."));
        server.push(Answer::text("Bye."));
        assert_eq!(
            command_result(&mut rpc, "furnished").await,
            expected,
            "{who}"
        );
    }
}

/// Newer versions report at the end of a run whether it will be retried.
const ENDS: &str = r#"
import { createAgentSession, SessionManager } from "@earendil-works/pi-coding-agent";

export default (pi) => pi.registerCommand("ends", { handler: async (_args, ctx) => {
  const { session } = await createAgentSession({ model: ctx.model, sessionManager: SessionManager.inMemory(ctx.cwd) });
  const told = [];
  session.subscribe(({ type, willRetry, messages }) => type === "agent_end" && told.push([willRetry, messages.at(-1).role]));
  await session.prompt("recovers");
  await session.prompt("fails for good");
  session.setAutoRetryEnabled(false);
  await session.prompt("is not tried again");
  ctx.ui.notify(JSON.stringify(told));
  session.dispose();
} });
"#;

#[tokio::test]
async fn agent_end_reports_whether_the_run_is_retried() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("ends.ts", ENDS);
    let busy = || Answer::error(529, "Overloaded").with_header("x-should-retry", "false");
    server.push(busy());
    server.push(Answer::text("Fine."));
    // Three retries, then the prompt without retries.
    for _ in 0..5 {
        server.push(busy());
    }
    let mut rpc = home.rpc(&[]);
    let expected = [true, false, true, true, true, false, false];
    let expected = expected.map(|again| json!([again, "assistant"]));
    assert_eq!(command_result(&mut rpc, "ends").await, json!(expected));
}
