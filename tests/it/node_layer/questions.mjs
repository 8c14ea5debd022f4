// Run by Node and by pi in its place: both print the same answers.
import cp from "node:child_process";
import fs, { R_OK } from "node:fs";
import fsp from "node:fs/promises";
import http from "node:http";
import net from "node:net";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { PassThrough, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import util, { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import zlib from "node:zlib";

process.umask(0o022);
const answers = {};
const mode = (path) => (fs.statSync(path).mode & 0o777).toString(8);
/** The members of an error that programs use. */
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

// A child has exactly the environment that it gets.
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
answers.notRun = [notRun.code, notRun.syscall, cp.spawnSync("./nowhere").error.code];

// This program runs in place of Node, with an environment of its own.
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

// Functions that packages use and the newest Node has dropped.
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

// An aborted request is not sent again, and its caller gets an error.
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

// Links that are copied lead where they led.
fs.mkdirSync("tree/inner", { recursive: true });
fs.writeFileSync("tree/file", "A");
fs.symlinkSync("file", "tree/link");
fs.symlinkSync("../file", "tree/inner/up");
const passed = [];
const filter = (...paths) => passed.push(paths.join(" "));
fs.cpSync("tree", "tree1", { recursive: true });
await fsp.cp("./tree", "tree2", { recursive: true, filter });
await new Promise((done) => fs.cp("tree/", "tree3", { recursive: true }, done));
fs.cpSync("tree", "tree4", { recursive: true, verbatimSymlinks: true });
answers.copied = [
  [1, 2, 3, 4].map((n) => [fs.readlinkSync(`tree${n}/link`), fs.realpathSync(`tree${n}/inner/up`)])
    .map((paths) => paths.map((path) => path.replace(process.cwd(), ""))),
  passed.sort(),
  await failure(() => fs.cpSync("nothing", "tree5")),
  await failure(() => fsp.cp("tree", "tree/inner", { recursive: true })),
  await failure(() => fsp.cp("tree/file", "tree1/file", { force: false, errorOnExist: true })),
];

// Brotli data that are broken or cut off.
const packed = zlib.brotliCompressSync("hello ".repeat(1000));
const streamed = async (...chunks) => {
  let size = 0;
  for await (const chunk of Readable.from(chunks).pipe(zlib.createBrotliDecompress())) size += chunk.length;
  return size;
};
const unpacked = async (...chunks) => {
  const data = Buffer.concat(chunks);
  const outcomes = [
    await failure(() => zlib.brotliDecompressSync(data).length),
    await failure(() => promisify(zlib.brotliDecompress)(data).then((all) => all.length)),
    await failure(() => zlib.brotliDecompressSync(data, { chunkSize: 64 }).length),
  ];
  // The decoders do not agree on the kind of error.
  return outcomes.map((outcome) => outcome.code?.replace(/FORMAT_.*/, "FORMAT") ?? outcome);
};
answers.brotli = [
  await unpacked(packed),
  await unpacked(packed, Buffer.from("more")),
  await unpacked(packed.subarray(0, 10)),
  await unpacked(packed.subarray(0, -1)),
  await unpacked(),
  await unpacked(Buffer.from("garbage!")),
  await streamed(packed.subarray(0, 5), packed.subarray(5)),
  await failure(() => pipeline(Readable.from([packed.subarray(0, 5)]), zlib.createBrotliDecompress(), new PassThrough().resume())),
];

// Bodies that are iterated are of bytes or texts.
fs.writeFileSync("body", "t\u00e9xt");
const bodies = {
  texts: () => Readable.from(["a", "b"]),
  file: () => fs.createReadStream("body", "utf8"),
  bytes: () => fs.createReadStream("body"),
  generator: async function* () {
    yield "g\u00e9";
    yield new Uint8Array([65, 66]);
    yield Buffer.from("C");
  },
  list: () => ["a", "b"],
};
const echo = http.createServer((request, response) => request.pipe(response));
await new Promise((done) => echo.listen(0, "127.0.0.1", done));
answers.bodies = [];
for (const make of Object.values(bodies)) {
  const init = () => ({ method: "POST", body: make(), duplex: "half" });
  answers.bodies.push([
    await (await fetch(`http://127.0.0.1:${echo.address().port}/`, init())).text(),
    await new Response(make()).text(),
    await new Request("http://host/", init()).text(),
  ]);
}
echo.close();
echo.closeAllConnections();

// An operation that is aborted before it begins changes nothing.
const aborted = [AbortSignal.abort(), AbortSignal.abort(new TypeError("reason")), AbortSignal.abort("text")];
fs.writeFileSync("precious", "kept");
answers.aborted = [];
for (const signal of aborted) {
  for (const action of [
    () => promisify(fs.writeFile)("precious", "new", { signal }),
    () => fsp.writeFile("precious", "new", { signal }),
    () => promisify(fs.readFile)("precious", { signal }),
    () => fsp.readFile("precious", { signal }),
    () => fsp.readFile("precious", { encoding: "utf8", signal }),
  ]) {
    const { name, code, message, cause } = await action().catch((error) => error);
    answers.aborted.push([name, code, message, cause.name ?? cause, fs.readFileSync("precious", "utf8")]);
  }
}
const later = new AbortController();
const reading = fsp.readFile("precious", { signal: later.signal });
later.abort();
answers.aborted.push(await failure(() => reading));

// A file that cannot be run has no outcome but the error.
const outcome = ({ error, stdout, stderr, output, ...others }) => ({
  ...others,
  error: error && [error.code, error.errno, error.syscall, error.path, error.spawnargs],
  texts: [stdout, stderr, output].map((text) => text && `${text}`),
});
const ended = (child) => new Promise((done) => {
  const events = [[child.connected, child.exitCode]];
  child.on("error", ({ code }) => events.push(["error", code, child.exitCode]));
  child.on("exit", (...outcome) => events.push(["exit", ...outcome]));
  child.on("close", (...outcome) => done([...events, outcome, child.exitCode, child.signalCode]));
});
const { pid, ...killed } = cp.spawnSync("sleep", ["5"], { timeout: 50 });
const thrown = (action) => {
  try {
    return action();
  } catch ({ code, status, signal, pid, stdout, stderr, output }) {
    return { code, status, signal, hasPid: pid > 0, stdout, stderr, output };
  }
};
answers.outcomes = [
  outcome(cp.spawnSync("./nowhere", ["a"])),
  outcome(cp.spawnSync("/etc/passwd")),
  outcome(cp.spawnSync("ls", { cwd: "./nowhere" })),
  outcome(cp.spawnSync("true", ["x".repeat(3e6)])).error.slice(0, 3),
  outcome(killed),
  Object.keys(cp.spawnSync("./nowhere")).sort(),
  thrown(() => cp.execFileSync("./nowhere", text)),
  thrown(() => cp.execFileSync("sh", ["-c", "echo out; kill -9 $$"], text)),
  await ended(cp.spawn("./nowhere")),
  await ended(cp.spawn("/etc/passwd")),
  await ended(cp.spawn("sh", ["-c", "exit 3"])),
];

// Folders that are opened with options.
const found = async (opened) => {
  const names = [];
  for await (const entry of await opened) names.push(`${entry.parentPath}/${entry.name} ${entry.isDirectory()}`);
  return names.sort();
};
const foundAtOnce = (folder) => {
  const names = [];
  for (let entry; (entry = folder.readSync()) !== null;) names.push(join(entry.parentPath, entry.name));
  folder.closeSync();
  return names.sort();
};
answers.opened = [];
for (const options of [undefined, {}, "utf8", { encoding: "utf8" }, { recursive: true }, { bufferSize: 1, recursive: true }]) {
  answers.opened.push([
    await found(fs.opendirSync("tree", options)),
    await found(fsp.opendir("tree", options)),
    await found(promisify(fs.opendir)("./tree/", options)),
    foundAtOnce(fs.opendirSync("tree", options)),
  ]);
}
answers.opened.push(
  await failure(() => fs.opendirSync("tree", { bufferSize: 0 })),
  await failure(() => fsp.opendir("nothing", { recursive: true })),
  await failure(() => promisify(fs.opendir)("tree/file")),
);

// Errors of all three forms.
const inAllForms = async (name, ...args) => [
  await failure(() => fs[`${name}Sync`](...args)),
  await failure(() => promisify(fs[name])(...args)),
  fsp[name] && await failure(() => fsp[name](...args)),
];
const CLOSED = 9999;
answers.errors = [];
for (const question of [
  ["chown", "nothing", 1, 1],
  ["lchown", "nothing", 1, 1],
  ["lutimes", "nothing", 1, 1],
  ["symlink", "file", "log"],
  ["symlink", "file", "nothing/link", "dir"],
  ["copyFile", "folder", "copied"],
  ["copyFile", "log", "folder"],
  ["readdir", "nothing"],
  ["readdir", "log", { withFileTypes: true }],
  ["opendir", "log"],
  ["utimes", "log", NaN, 1],
  ["lutimes", "log", 1, NaN],
  ["readFile", "folder"],
  ["readFile", "nothing"],
  ["readFile", "nothing", { signal: new AbortController().signal }],
  ["close", CLOSED],
  ["write", CLOSED, "text"],
  ["write", CLOSED, Buffer.from("bytes")],
  ["writev", CLOSED, [Buffer.from("bytes")]],
  ["fsync", CLOSED],
  ["fdatasync", CLOSED],
  ["ftruncate", CLOSED, 1],
  ["fchmod", CLOSED, 0o600],
  ["fchown", CLOSED, 1, 1],
  ["futimes", CLOSED, 1, 1],
  ["utimes", "log", 1, 2],
  ["lutimes", "log", 1, 2],
]) answers.errors.push([...question.slice(0, 2), ...await inAllForms(...question)]);
const onlyRead = fs.openSync("log", "r");
answers.errors.push(await inAllForms("write", onlyRead, "text"), await inAllForms("ftruncate", onlyRead));
fs.closeSync(onlyRead);

// The reported types of files and folders.
const { birthtime } = { ...fs.statSync("log") };
answers.said = [
  await failure(() => fs.readFile("log")),
  birthtime instanceof Date,
  Object.keys(await fsp.lstat("log")),
  Object.keys(fs.statSync("log", { bigint: true })),
  fs.mkdirSync("new/a/b", { recursive: true }),
  fs.mkdirSync("new/a/b/", { recursive: true }),
  await fsp.mkdir("./new/c/d/", { recursive: true }),
  await promisify(fs.mkdir)(join(process.cwd(), "new/e/f"), { recursive: true }).then((path) => path.replace(process.cwd(), "")),
];

// The error of a failed connection names the address.
const gone = net.createServer().listen(0, "127.0.0.1");
await new Promise((done) => gone.on("listening", done));
const { port: unheard } = gone.address();
await new Promise((done) => gone.close(done));
const notReached = async (url, options) => {
  try {
    await fetch(url, options);
  } catch ({ name, message, cause }) {
    const { message: why, code, errno, syscall, address, port, hostname } = cause ?? {};
    return JSON.stringify([name, message, why, code, errno, syscall, address, port, hostname]).replaceAll(unheard, "PORT");
  }
};
answers.unreached = [
  await notReached(`http://127.0.0.1:${unheard}/x`),
  await notReached("http://nowhere.invalid/"),
  await notReached("http://127.0.0.1:9/"),
  await notReached(`http://127.0.0.1:${unheard}/x`, { signal: AbortSignal.abort() }),
];
const given = new AbortController();
given.abort();
answers.abortReason = [given.signal.reason.name, given.signal.reason.message];

// A caller that does not wait for a child need not know whether it runs.
const browser = cp.spawn("no-such-browser", [], { detached: true, stdio: "ignore" });
browser.unref();
browser.ref();
answers.browser = [browser.pid ?? null, await new Promise((done) => browser.on("error", ({ code }) => done(code)))];

// Nanoseconds between two ticks of the timer.
const delays = monitorEventLoopDelay({ resolution: 10 });
answers.delays = [delays.enable(), delays.enable()];
while (delays.count < 3) await sleep(10);
answers.delays.push(delays.disable(), delays.disable());
answers.delays.push([delays.min, delays.mean, delays.percentile(50)].map((delay) => delay > 8e6 && delay < 60e9));
delays.reset();
answers.delays.push(delays.count, delays.max);

console.log(JSON.stringify(answers, null, 1));
