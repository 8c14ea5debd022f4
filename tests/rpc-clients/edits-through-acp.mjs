// How many edits an editor shows rightly: pi behind pi-acp, with an ACP client in front, and a
// model that edits the same file 60 times. An edit is shown rightly if the client is told the
// text before it and the text after it.
//
//   npm install pi-acp@0.0.34 @agentclientprotocol/sdk@0.26.0     (in a folder of its own)
//   node edits-through-acp.mjs <that folder> <the program to be called as pi> [edits]
//
// Prints a line of JSON. Ends with code 1 if fewer than 59 of 60 were right, as with the original.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [packages, program, count = "60"] = process.argv.slice(2);
const edits = Number(count);
const require = createRequire(join(resolve(packages), "x.js"));
const acp = await import(pathToFileURL(require.resolve("@agentclientprotocol/sdk")));

const root = realpathSync(mkdtempSync(join(tmpdir(), "pi-acp-")));
const [home, work, bin] = ["home", "work", "bin"].map((name) => join(root, name));
for (const folder of [join(home, ".pi/agent"), work, bin]) mkdirSync(folder, { recursive: true });
symlinkSync(resolve(program), join(bin, "pi"));

// A file of some size, so that a read takes a moment.
const filler = Array.from({ length: 400 }, (_, line) => `line ${line} of a file that is not small\n`).join("");
const content = (edit) => `value = ${edit}\n${filler}`;
const file = join(work, "file.txt");
writeFileSync(file, content(0));

/** Calls `edit`, and ends the run after its result. */
let requests = 0;
const events = (body) => {
  const last = body.messages.at(-1);
  const isResult = Array.isArray(last.content) && last.content.some((block) => block.type === "tool_result");
  const usage = { input_tokens: 1, output_tokens: 1 };
  const start = { type: "message_start", message: { id: "m", type: "message", role: "assistant", content: [], model: body.model, stop_reason: null, usage } };
  const end = (reason) => [
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage },
    { type: "message_stop" },
  ];
  if (isResult) {
    return [
      start,
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Done." } },
      ...end("end_turn"),
    ];
  }
  const input = { path: "file.txt", edits: [{ oldText: `value = ${requests}\n`, newText: `value = ${requests + 1}\n` }] };
  requests += 1;
  return [
    start,
    { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: `call_${requests}`, name: "edit", input: {} } },
    { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: JSON.stringify(input) } },
    ...end("tool_use"),
  ];
};
const server = createServer(async (request, response) => {
  let text = "";
  for await (const piece of request) text += piece;
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events(JSON.parse(text))) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));

const agent = join(home, ".pi/agent");
const model = {
  id: "scripted-1", name: "Scripted 1", reasoning: false, input: ["text"], contextWindow: 200000, maxTokens: 32000,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
};
const provider = { baseUrl: `http://127.0.0.1:${server.address().port}`, apiKey: "scripted-key", api: "anthropic-messages", models: [model] };
writeFileSync(join(agent, "models.json"), JSON.stringify({ providers: { scripted: provider } }));
writeFileSync(
  join(agent, "settings.json"),
  JSON.stringify({ defaultProvider: "scripted", defaultModel: "scripted-1", quietStartup: true, compaction: { enabled: false } }),
);

const adapter = join(resolve(packages), "node_modules/pi-acp/dist/index.js");
const child = spawn(process.execPath, [adapter], {
  cwd: work,
  stdio: ["pipe", "pipe", "inherit"],
  env: { ...process.env, PATH: bin + delimiter + process.env.PATH, HOME: home, PI_OFFLINE: "1" },
});
const shown = new Map();
const client = {
  async sessionUpdate({ update }) {
    for (const block of update.content instanceof Array ? update.content : []) {
      if (block.type === "diff") shown.set(update.toolCallId, [block.oldText, block.newText]);
    }
  },
  async requestPermission() {
    return { outcome: { outcome: "cancelled" } };
  },
};
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const connection = new acp.ClientSideConnection(() => client, stream);
await connection.initialize({ protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
const { sessionId } = await connection.newSession({ cwd: work, mcpServers: [] });
const times = [];
for (let edit = 0; edit < edits; edit++) {
  const begun = performance.now();
  await connection.prompt({ sessionId, prompt: [{ type: "text", text: "edit" }] });
  times.push(performance.now() - begun);
}
let right = 0;
for (let edit = 0; edit < edits; edit++) {
  const [before, after] = shown.get(`call_${edit + 1}`) ?? [];
  if (before === content(edit) && after === content(edit + 1)) right += 1;
}
const done = readFileSync(file, "utf8") === content(edits);
child.kill();
server.close();
rmSync(root, { recursive: true, force: true });
times.sort((one, other) => one - other);
console.log(JSON.stringify({ edits, right, done, medianMs: Math.round(times[edits >> 1] * 10) / 10 }));
process.exit(done && right >= edits - 1 ? 0 : 1);
