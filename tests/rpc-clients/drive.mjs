// Drives pi through every method of an `RpcClient` that the original's npm package exports, in any
// version: `node drive.mjs <the client's module> <the program to start with node>`, in a home whose
// model responds as tests/it/rpc/third_party_clients.rs defines. Ends with "every method: ok".
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [module, cliPath, png] = process.argv.slice(2);
const { RpcClient } = await import(pathToFileURL(module));
const called = new Set();
const seen = [];
// Prints the last steps if the run hangs.
setTimeout(() => {
  console.error(`after ${[...called].join(", ")}:\n${seen.slice(-20).join("\n")}`);
  process.exit(1);
}, 50_000).unref();
const plain = new RpcClient({ cliPath, provider: "scripted", model: "scripted-1", args: ["--thinking", "low"] });
const client = new Proxy(plain, {
  get(target, name) {
    const value = target[name];
    if (typeof value !== "function") return value;
    called.add(name);
    return value.bind(target);
  },
});
// Since 0.80 the client waits for `agent_settled`, and prompts return their outcome.
const settles = "clearQueue" in client;

const send = plain.send.bind(plain);
plain.send = async (command) => {
  seen.push(`> ${JSON.stringify(command)}`);
  const response = await send(command);
  seen.push(`< ${JSON.stringify(response).slice(0, 300)}`);
  return response;
};
client.onEvent((event) => seen.push(`  ${event.type}`));

/** The events from here on; `until` waits for one of them, which may have come already. */
function listen() {
  const events = [];
  let wake = () => {};
  const stop = client.onEvent((event) => {
    events.push(event);
    wake();
  });
  const until = async (what, matches) => {
    const deadline = setTimeout(() => {
      console.error(`did not come: ${what}\n${events.map((event) => event.type).join(" ")}`);
      process.exit(1);
    }, 60_000);
    while (!events.some(matches)) await new Promise((resolve) => (wake = resolve));
    clearTimeout(deadline);
    return events.find(matches);
  };
  return { events, until, stop };
}
const is = (type) => (event) => event.type === type;
const roles = async () => (await client.getMessages()).map((message) => message.role);
const lastText = (messages) => messages.at(-1).content.map((block) => block.text ?? "").join("");

// Life
await assert.rejects(client.getState(), /Client not started/);
await client.start();
await assert.rejects(client.start(), /Client already started/);
const first = await client.getState();
assert.equal(first.model.id, "scripted-1");
assert.equal(first.thinkingLevel, "low");
assert.deepEqual([first.isStreaming, first.isCompacting, first.messageCount], [false, false, 0]);

// ---- Settings ----
assert.deepEqual((await client.getAvailableModels()).map((model) => model.id), ["scripted-1", "scripted-2"]);
assert.equal((await client.setModel("scripted", "scripted-2")).id, "scripted-2");
assert.equal((await client.cycleModel()).model.id, "scripted-1");
await assert.rejects(client.setModel("nobody", "nothing"), /^Error: Model not found: nobody\/nothing$/);
await client.setThinkingLevel("medium");
assert.deepEqual(await client.cycleThinkingLevel(), { level: "high" });
await client.setSteeringMode("all");
await client.setFollowUpMode("all");
await client.setAutoCompaction(false);
await client.setAutoRetry(true);
await client.setSessionName("driven");
const set = await client.getState();
assert.equal(set.thinkingLevel, "high");
assert.deepEqual([set.steeringMode, set.followUpMode], ["all", "all"]);
assert.equal(set.autoCompactionEnabled, false);
assert.equal(set.sessionName, "driven");
assert.deepEqual(
  (await client.getCommands()).map(({ name, source }) => `${source} ${name}`),
  ["extension greet", "prompt review", "skill skill:ironing"],
);

// Prompts
const hello = await client.promptAndWait("say hello");
for (const type of ["agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end", "agent_end"])
  assert(hello.some(is(type)), type);
assert.equal(await client.getLastAssistantText(), "hello");
// Sends the next prompt as soon as the client reports that the agent is done.
for (let number = 0; number < 10; number++) {
  const events = await client.promptAndWait(`say ${number}`);
  assert.equal(lastText(events.find(is("agent_end")).messages), `${number}`);
}
const collected = client.collectEvents();
await client.prompt("say cheese", [{ type: "image", data: png, mimeType: "image/png" }]);
assert.equal((await collected).find(is("agent_end")).messages[0].content[1].type, "image");

// While it works
const steered = listen();
const idle = client.waitForIdle();
const disposition = await client.prompt("wait");
if (settles) assert.equal(disposition, "started");
await steered.until("the tool", is("tool_execution_start"));
await client.steer("say left");
await client.followUp("say right");
assert.equal((await client.getState()).pendingMessageCount, 2);
if (settles) {
  assert.deepEqual(await client.clearQueue(), { steering: ["say left"], followUp: ["say right"] });
  assert.equal(await client.steer("say left"), "queued");
  assert.equal(await client.followUp("say right"), "queued");
}
writeFileSync("go", "");
await idle;
steered.stop();
const userMessages = (await client.getMessages()).filter((message) => message.role === "user").slice(-3);
assert.deepEqual(userMessages.map((message) => message.content[0].text), ["wait", "say left", "say right"]);
assert.equal(await client.getLastAssistantText(), "right");

// ---- Cancelling ----
const aborted = listen();
await client.prompt("stall");
await aborted.until("the beginning of the answer", is("message_update"));
await client.abort();
await aborted.until("the end", is("agent_end"));
assert.equal((await client.getMessages()).at(-1).stopReason, "aborted");
assert.equal((await client.getState()).isStreaming, false);
aborted.stop();

const retried = listen();
await client.prompt("overload");
assert.equal((await retried.until("a retry", is("auto_retry_start"))).maxAttempts, 3);
await client.abortRetry();
assert.equal((await retried.until("its end", is("auto_retry_end"))).success, false);
if (settles) await retried.until("the end of all", is("agent_settled"));
retried.stop();

// Shell
assert.deepEqual(await client.bash("echo hi; exit 3"), { output: "hi\n", exitCode: 3, cancelled: false, truncated: false });
const running = client.bash("touch running; sleep 600");
while (!existsSync("running")) await new Promise((resolve) => setTimeout(resolve, 20));
await client.abortBash();
assert.equal((await running).cancelled, true);
assert.deepEqual((await roles()).slice(-2), ["bashExecution", "bashExecution"]);

// Sessions
const stats = await client.getSessionStats();
assert.equal(stats.sessionFile, first.sessionFile);
assert(stats.userMessages >= 15 && stats.toolCalls === 1 && stats.tokens.input > 0, JSON.stringify(stats));
assert.equal((await client.exportHtml("page.html")).path, "page.html");
assert.match(readFileSync("page.html", "utf8"), /<html/i);
const forkable = await client.getForkMessages();
assert.deepEqual(forkable[1].text, "say 0");
if (settles) {
  const { entries, leafId } = await client.getEntries();
  assert.equal(entries.at(-1).id, leafId);
  assert.deepEqual((await client.getEntries(entries.at(-2).id)).entries, entries.slice(-1));
  assert.equal((await client.getTree()).tree[0].entry.id, entries[0].id);
  assert((await client.getAvailableThinkingLevels()).levels?.includes("high") ?? true);
}
const compaction = await client.compact("be brief");
assert.match(compaction.summary, /^In short/);
assert.equal((await roles())[0], "compactionSummary");
assert.deepEqual(await client.fork(forkable[1].entryId), { text: "say 0", cancelled: false });
assert.deepEqual(await roles(), ["user", "assistant"]);
await assert.rejects(client.fork("nothing"), /Invalid entry ID for forking/);
if (settles) assert.deepEqual(await client.clone(), { cancelled: false });
assert.deepEqual(await client.newSession(first.sessionFile), { cancelled: false });
assert.equal((await client.getState()).messageCount, 0);
assert.deepEqual(await client.switchSession(first.sessionFile), { cancelled: false });
assert.equal((await client.getState()).sessionName, "driven");

// The end: at once and in order, and a client can start it again.
const child = plain.process;
await client.stop();
assert.deepEqual([child.exitCode, child.signalCode], [143, null]);
await assert.rejects(client.getState(), /Client not started/);
await client.start();
assert.equal((await client.getState()).messageCount, 0);
await client.stop();
assert.equal(client.getStderr(), "");

const internal = ["constructor", "handleLine", "send", "getData", "createProcessExitError", "rejectPendingRequests"];
const methods = Object.getOwnPropertyNames(RpcClient.prototype).filter((name) => !internal.includes(name));
assert.deepEqual(methods.filter((name) => !called.has(name)), []);
rmSync("go");
console.log("every method: ok");
