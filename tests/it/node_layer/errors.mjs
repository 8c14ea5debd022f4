// Run by Node and by pi in its place: both print the same answers.
import cp from "node:child_process";
import crypto from "node:crypto";
import { parseArgs, types } from "node:util";
import { Worker } from "node:worker_threads";

const answers = {};
const answer = async (name, action) => {
  try {
    answers[name] = (await action()) ?? null;
  } catch (error) {
    const { name: kind, code, message } = error;
    answers[name] = [error.constructor.name, kind, code, message];
  }
};
const bytes = (...all) => Buffer.from(all);
const url = "http://127.0.0.1:9/";
const post = (body, more) => ({ method: "POST", body, ...more });

await answer("external", () => types.isExternal({}));
await answer("decoded", () => new TextDecoder("utf-8", { fatal: true }).decode(bytes(195, 164)));
await answer("no text", () => new TextDecoder("utf-8", { fatal: true }).decode(bytes(255)));
await answer("half a text", () => {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  decoder.decode(bytes(0xc3), { stream: true });
  return decoder.decode();
});
await answer("no file", () => new Promise((_, failed) => new Worker("/none.mjs").on("error", failed)));
const worker = new Worker("require('node:worker_threads').parentPort.on('message', () => {})", { eval: true });
await answer("function", () => worker.postMessage(() => {}));
await answer("with a function", () => worker.postMessage({ a: { b: () => {} } }));
await worker.terminate();
const negatives = { allowNegative: true, tokens: true };
await answer("negative", () => parseArgs({ args: ["--no-color"], options: { color: { type: "boolean" } }, ...negatives }));
await answer("stream", () => new Request(url, post(new ReadableStream())));
await answer("chunks", () => fetch(url, post((async function* () {})())));
await answer("half duplex", () => typeof new Request(url, post(new ReadableStream(), { duplex: "half" })));
await answer("blob", () => typeof new Request(url, post(new Blob(["x"]))));
await answer("again", () => typeof new Request(new Request(url, post("x")), { headers: {} }));
await answer("stdio", () => cp.spawn("true", { stdio: "bogus" }));
await answer("stdio of sync", () => cp.spawnSync("true", { stdio: "bogus" }));
await answer("args", () => cp.spawn("true", "x"));
await answer("args of sync", () => cp.spawnSync("true", "x"));
await answer("options", () => cp.spawn("true", [], "x"));
await answer("forged", () => {
  const decipher = crypto.createDecipheriv("aes-256-gcm", Buffer.alloc(32), Buffer.alloc(12));
  decipher.setAuthTag(Buffer.alloc(16));
  decipher.update("00", "hex");
  decipher.final();
});
console.log(JSON.stringify(answers, null, 1));
