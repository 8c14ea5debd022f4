// Drives pi through `pi-acp`, as an editor with the Agent Client Protocol does: `node acp.mjs
// <pi-acp's program> <the protocol's SDK>`, with `pi` in the path and a model that responds as
// tests/it/rpc/third_party_clients.rs defines. Ends with "every request: ok".
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [program, sdk, png] = process.argv.slice(2);
const { ClientSideConnection, PROTOCOL_VERSION, ndJsonStream } = await import(pathToFileURL(sdk));
const cwd = process.cwd();

const adapter = spawn(process.execPath, [program], { stdio: ["pipe", "pipe", "inherit"] });
const updates = [];
const permissions = [];
let wake = () => {};
const client = {
  async sessionUpdate({ sessionId, update }) {
    updates.push({ sessionId, ...update });
    wake();
  },
  async requestPermission({ toolCall, options }) {
    permissions.push({ title: toolCall.title, options: options.map(({ optionId }) => optionId) });
    return { outcome: { outcome: "selected", optionId: options.at(-1).optionId } };
  },
};
const stream = ndJsonStream(Writable.toWeb(adapter.stdin), Readable.toWeb(adapter.stdout));
const agent = new ClientSideConnection(() => client, stream);
setTimeout(() => {
  console.error(`it hangs after:\n${updates.slice(-20).map((update) => JSON.stringify(update)).join("\n")}`);
  process.exit(1);
}, 50_000).unref();

/** Waits for an update from number `from` on that may have come already. */
async function until(from, matches) {
  while (!updates.slice(from).some(matches)) await new Promise((resolve) => (wake = resolve));
  return updates.slice(from).find(matches);
}
const is = (kind) => (update) => update.sessionUpdate === kind;
const text = (found, kind = "agent_message_chunk") => found.filter(is(kind)).map(({ content }) => content.text).join("");

/** The updates of one prompt, and why it stopped. */
async function ask(sessionId, words, ...more) {
  const from = updates.length;
  const { stopReason } = await agent.prompt({ sessionId, prompt: [{ type: "text", text: words }, ...more] });
  return { stopReason, found: updates.slice(from).filter((update) => update.sessionId === sessionId) };
}

// Life
const initialized = await agent.initialize({ protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
assert.equal(initialized.agentInfo.name, "pi-acp");
assert.equal(initialized.agentCapabilities.loadSession, true);
const first = await agent.newSession({ cwd, mcpServers: [] });
const { sessionId } = first;
assert.match(first._meta.piAcp.startupInfo, /^pi v\d+\.\d+\.\d+\n/);
assert.deepEqual(first.models.availableModels.map(({ modelId }) => modelId), ["scripted/scripted-1", "scripted/scripted-2"]);
assert.equal(first.modes.availableModes.some(({ id }) => id === "high"), true);
const commands = await until(0, is("available_commands_update"));
for (const name of ["review", "skill:ironing", "compact"])
  assert(commands.availableCommands.some((command) => command.name === name), name);

// Prompts
const hello = await ask(sessionId, "say hello");
assert.deepEqual([hello.stopReason, text(hello.found)], ["end_turn", "hello"]);
assert(hello.found.find(is("usage_update")).size > 0);
for (let number = 0; number < 10; number++)
  assert.equal(text((await ask(sessionId, `say ${number}`)).found), `${number}`);
const pictured = await ask(sessionId, "say cheese", { type: "image", data: png, mimeType: "image/png" });
assert.equal(text(pictured.found), "cheese");
const both = await Promise.all([ask(sessionId, "say one"), ask(sessionId, "say two")]);
assert.deepEqual(both.map(({ stopReason }) => stopReason), ["end_turn", "end_turn"]);
assert.match(text(both[1].found), /^Queued message \(position 1\)\.oneStarting queued message\. .*two$/);

// Tools
const run = await ask(sessionId, "run");
const called = run.found.find(is("tool_call"));
assert.deepEqual([called.kind, called.status], ["execute", "pending"]);
const results = run.found.filter(is("tool_call_update"));
assert.equal(results.map(({ _meta }) => _meta?.terminal_output?.data ?? "").join(""), "ran\n");
const last = results.at(-1);
assert.deepEqual([last.status, last._meta.terminal_exit.exit_code], ["completed", 0]);
assert.equal(text(run.found), "done");
// The gate of an extension becomes a question of the editor; the last option is no.
const refused = await ask(sessionId, "remove");
assert.deepEqual(permissions, [{ title: "Dangerous", options: ["yes", "no"] }]);
assert.equal(refused.found.filter(is("tool_call_update")).at(-1).status, "failed");
assert.equal(existsSync("kept.txt"), true);

// ---- Cancelling ----
const from = updates.length;
const stalled = ask(sessionId, "stall");
await until(from, is("agent_message_chunk"));
await agent.cancel({ sessionId });
assert.equal((await stalled).stopReason, "cancelled");
const failed = await ask(sessionId, "refuse");
assert.equal(failed.stopReason, "end_turn");

// ---- Settings ----
await agent.setSessionMode({ sessionId, modeId: "high" });
await until(0, (update) => update.currentModeId === "high");
const set = await agent.setSessionConfigOption({ sessionId, configId: first.configOptions[0].id, value: "scripted/scripted-2" });
assert.equal(set.configOptions[0].currentValue, "scripted/scripted-2");
await assert.rejects(agent.setSessionConfigOption({ sessionId, configId: first.configOptions[0].id, value: "no/such" }));
assert.equal(text((await ask(sessionId, "/name driven")).found), "Session name set: driven");
assert.equal(text((await ask(sessionId, "/steering all")).found), "Steering mode set to: all");
assert.equal(text((await ask(sessionId, "/follow-up all")).found), "Follow-up mode set to: all");
assert.equal(text((await ask(sessionId, "/autocompact off")).found), "Auto-compaction disabled.");
assert.match(text((await ask(sessionId, "/session")).found), new RegExp(`^Session: ${sessionId}\n`));
const exported = (await ask(sessionId, "/export")).found.find(({ content }) => content?.type === "resource_link");
assert.match(readFileSync(exported.content.name, "utf8"), /<html/i);
assert.match(text((await ask(sessionId, "/compact be brief")).found), /^Compaction completed\.[^]*In short/);

// Sessions
const { sessions } = await agent.listSessions({ cwd });
assert(sessions.some((one) => one.sessionId === sessionId && one.title === "driven"), JSON.stringify(sessions));
const opening = updates.length;
const other = await agent.newSession({ cwd, mcpServers: [] });
assert.notEqual(other.sessionId, sessionId);
await until(opening, (update) => update.sessionId === other.sessionId && is("available_commands_update")(update));
assert.equal(text((await ask(other.sessionId, "say other")).found), "other");
const loading = updates.length;
const loaded = await agent.loadSession({ sessionId, cwd, mcpServers: [] });
assert.equal(loaded.models.currentModelId, "scripted/scripted-2");
assert.equal(text((await ask(sessionId, "say again")).found).endsWith("again"), true);
assert(updates.slice(loading).some((update) => update.sessionId === sessionId));
await agent.deleteSession({ sessionId: other.sessionId });
assert(!(await agent.listSessions({ cwd })).sessions.some((one) => one.sessionId === other.sessionId));

adapter.stdin.end();
const code = await new Promise((resolve) => adapter.on("exit", resolve));
assert.equal(code, 0);
console.log("every request: ok");
process.exit(0);
