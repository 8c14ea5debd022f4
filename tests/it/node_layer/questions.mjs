// Run by Node and by pi in its place: both print the same answers.
import cp from "node:child_process";
import fs, { R_OK } from "node:fs";
import fsp from "node:fs/promises";
import http from "node:http";
import net from "node:net";
import { join } from "node:path";
import util from "node:util";
import { Worker } from "node:worker_threads";

process.umask(0o022);
const answers = {};
const mode = (path) => (fs.statSync(path).mode & 0o777).toString(8);
/** What programs look at in an error. */
const failure = async (action) => {
  try {
    return ["no error", await action()];
  } catch ({ name, code, errno, syscall, path, dest }) {
    return { name, code, errno, syscall, path, dest };
  }
};

// The mode of a file is that which it was made with.
fs.writeFileSync("secret", "1", { mode: 0o600 });
fs.appendFileSync("secret", "2");
await new Promise((done) => fs.appendFile("secret", "3", done));
fs.writeFileSync("secret", "4", { mode: 0o644 });
answers.kept = [mode("secret"), fs.readFileSync("secret", "utf8")];
fs.appendFileSync("log", "1");
fs.writeFileSync("wide", "1", { mode: 0o666 });
await new Promise((done) => fs.writeFile("narrow", "1", { mode: "0600" }, done));
await fsp.appendFile("promised", "1", { mode: 0o640 });
answers.made = ["log", "wide", "narrow", "promised"].map(mode);

// A text at its place.
fs.writeFileSync("places", "abcdef");
const file = fs.openSync("places", "r+");
fs.writeSync(file, "ZZ", 2);
fs.writeSync(file, Buffer.from("YY"), 0, 2, 4);
fs.writeSync(file, "X");
fs.closeSync(file);
answers.places = fs.readFileSync("places", "utf8");

// Folders are not unlinked, and errors are those of Node.
fs.mkdirSync("folder");
answers.unlink = [
  await failure(() => fs.unlinkSync("folder")),
  await failure(() => fsp.unlink("folder")),
  await failure(() => fs.unlinkSync("nothing")),
  fs.existsSync("folder"),
];
answers.copy = [
  await failure(() => fs.copyFileSync("log", "wide", fs.constants.COPYFILE_EXCL)),
  await failure(() => fs.copyFileSync("nothing", "copy")),
  await failure(() => fsp.copyFile("nothing", "copy")),
  await failure(() => fsp.copyFile("log", "copy")),
  await failure(() => fs.symlinkSync("log", "wide")),
  await failure(() => fs.utimesSync("nothing", 1, 1)),
  await failure(() => fsp.utimes("nothing", 1, 1)),
];

// A child has the environment that it is given, all of it and nothing else.
process.env.SECRET = "told";
const { SECRET, ...others } = process.env;
const said = "echo [$SECRET]";
const text = { encoding: "utf8" };
const outputOf = (child) => new Promise((done) => {
  let output = "";
  child.stdout.on("data", (data) => output += data);
  child.on("close", (code) => done([code, output]));
});
answers.environment = [
  cp.execSync(said, { env: others, ...text }),
  cp.execSync(said, text),
  cp.execFileSync("sh", ["-c", said], { env: { PATH: process.env.PATH }, ...text }),
  cp.spawnSync("env", [], { env: { PATH: process.env.PATH, A: "1" }, ...text }).stdout.includes("HOME="),
  await outputOf(cp.spawn("sh", ["-c", said], { env: others })),
];

// A shell gets what it is to expand.
const words = ["wid*", "&&", "echo", "two", "$SECRET"];
answers.shell = [
  cp.spawnSync("echo", words, { shell: true, ...text }).stdout,
  cp.execFileSync("echo", words, { shell: true, ...text }),
  cp.execFileSync("echo", words, text),
  await outputOf(cp.spawn("echo", words, { shell: true })),
];
const notRun = cp.spawnSync("/etc/passwd").error;
answers.notRun = [notRun.code, notRun.syscall, cp.spawnSync("/nowhere").error.code];

// This program in the place of Node, with an environment of its own.
fs.writeFileSync("script.mjs", "console.log(process.argv.length, process.env.A ?? 'none')");
const script = [join(process.cwd(), "script.mjs"), "argument"];
answers.again = [
  cp.execFileSync(process.execPath, script, { env: { A: "1", PATH: process.env.PATH }, ...text }),
  cp.execFileSync(process.execPath, script, text),
  await outputOf(cp.spawn(process.execPath, script, { env: { PATH: process.env.PATH } })),
];

// Connections that fail.
const server = net.createServer();
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const { port } = server.address();
await new Promise((done) => server.close(done));
const fetched = async (url) => {
  const error = await fetch(url).catch((error) => error);
  return [error.name, error.message, error.cause.code];
};
answers.fetch = [await fetched(`http://127.0.0.1:${port}/`), await fetched("http://nowhere.invalid/")];

// What packages use and the newest Node has no longer.
fs.mkdirSync("deep/er", { recursive: true });
fs.writeFileSync("deep/er/file", "");
fs.chmodSync("narrow", 0o444);
answers.former = [
  [fs.F_OK, fs.R_OK, R_OK, fs.W_OK, fs.X_OK],
  await failure(() => fs.accessSync("narrow", fs.X_OK)),
  fs.readdirSync("deep", { recursive: true, withFileTypes: true }).map((entry) => join(entry.path, entry.name)),
  ["isString", "isFunction", "isObject", "isRegExp", "isError", "isDate", "isBuffer", "isNullOrUndefined"].map((name) =>
    ["", {}, () => {}, /x/, new Error(), new Date(), Buffer.from(""), null, undefined].map((value) => util[name](value))
  ),
  await failure(() => fs.rmdirSync("deep")),
  fs.rmdirSync("deep", { recursive: true }),
  fs.existsSync("deep"),
];

// A request that is given up is not sent again, and its author hears of it.
const seen = [];
const slow = http.createServer((request, response) => {
  seen.push(`${request.method} ${request.url}`);
  if (request.url === "/ok") response.end("ok");
});
await new Promise((done) => slow.listen(0, "127.0.0.1", done));
const agent = new http.Agent({ keepAlive: true });
const ask = (path, options = {}) =>
  http.request({ port: slow.address().port, host: "127.0.0.1", path, agent, ...options });
const whole = (request) => new Promise((done) => request.on("response", (response) => {
  response.resume().on("end", done);
}).end());
answers.requests = [];
for (const giveUp of [
  (request) => request.destroy(),
  (request) => request.destroy(new Error("enough")),
  (request) => request.abort(),
]) {
  await whole(ask("/ok"));
  await new Promise((done) => setTimeout(done, 20));
  const request = ask("/slow", { method: "POST" });
  const heard = [];
  request.on("error", ({ code, message }) => heard.push(code ?? message));
  const closed = new Promise((done) => request.on("close", done));
  request.end("body");
  slow.once("request", () => giveUp(request));
  await closed;
  answers.requests.push([request.reusedSocket, heard]);
}
answers.requests.push(seen);
agent.destroy();
slow.closeAllConnections();
slow.close();

// A worker may close its port, and is over then.
const worker = new Worker(`
  const { parentPort } = require("node:worker_threads");
  parentPort.start();
  parentPort.on("close", () => parentPort.postMessage("never heard"));
  parentPort.on("message", (word) => { parentPort.postMessage(word + "!"); parentPort.close(); });
`, { eval: true });
const heard = [];
worker.on("message", (word) => heard.push(word));
worker.postMessage("one");
answers.worker = [await new Promise((done) => worker.on("exit", done)), heard[0]];

// Scripts are known by more than their names.
fs.mkdirSync("tool/lib", { recursive: true });
fs.writeFileSync("tool/tool", "#!/usr/bin/env node\nconsole.log(typeof require, require('./lib'));");
fs.writeFileSync("tool/lib/index.js", "if (require.main === module) console.log('main'); module.exports = 'lib';");
fs.symlinkSync(join(process.cwd(), "script.mjs"), "tool/link");
answers.scripts = ["tool/tool", "./tool/lib", "tool/link"].map((path) =>
  cp.execFileSync(process.execPath, [path], text)
);

console.log(JSON.stringify(answers, null, 1));
