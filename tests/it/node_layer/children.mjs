// Run by Node and by pi in its place: both print the same answers. Tests synchronous children, and
// descriptors that other code has opened.
import cp from "node:child_process";
import fs from "node:fs";

const answers = {};
const text = { encoding: "utf8" };
const outcome = ({ status, signal, error, stdout, stderr }) => [
  status,
  signal,
  error && [error.code, error.syscall, error.message],
  stdout == null ? null : stdout.length > 99 ? "much" : `${stdout}`,
  stderr == null ? null : `${stderr}`,
];
const thrown = (action) => {
  try {
    return ["no error", `${action()}`];
  } catch ({ code, status, signal, syscall, message }) {
    return { code, status, signal, syscall, message };
  }
};

// The child answers while it is written to, or does not read.
const much = "x".repeat(3e6);
answers.input = [
  outcome(cp.spawnSync("cat", { input: much, maxBuffer: Infinity })),
  outcome(cp.spawnSync("true", { input: much })),
  outcome(cp.spawnSync("sh", ["-c", "head -c 3"], { input: much })),
  outcome(cp.spawnSync("cat", { input: "" })),
  outcome(cp.spawnSync("cat")),
  thrown(() => cp.execSync("tr a-z A-Z", { input: "text", ...text })),
];

// Output above the limit, also of children of a shell.
answers.most = [
  outcome(cp.spawnSync("yes", { maxBuffer: 1000 })),
  thrown(() => cp.execSync("yes", { maxBuffer: 1000, stdio: "pipe" })),
  thrown(() => cp.execSync("yes >&2", { maxBuffer: 1000, stdio: "pipe" })),
  thrown(() => cp.execSync("printf 12345", { maxBuffer: 5, ...text })),
];

// The child exceeds its timeout. Other processes that hold the output are not waited for then.
answers.late = [
  outcome(cp.spawnSync("sleep", ["9"], { timeout: 50 })),
  outcome(cp.spawnSync("sh", ["-c", "echo a; sleep 9"], { timeout: 300, killSignal: "SIGKILL" })),
  outcome(cp.spawnSync("sh", ["-c", "trap '' TERM; sleep 0.3; echo no"], { timeout: 50 })),
  thrown(() => cp.execSync("sleep 9 & echo hi", { timeout: 300, stdio: "pipe" })),
  // The child stays in the process group of its parent.
  cp.execSync("ps -o pgid= -p $$ || echo none", { timeout: 5000, ...text }).trim() ===
    cp.execSync(`ps -o pgid= -p ${process.pid} || echo none`, text).trim(),
];

// Redirects input and output of a child.
fs.writeFileSync("in", "of a file");
const [input, output] = [fs.openSync("in"), fs.openSync("out", "w")];
answers.streams = [
  outcome(cp.spawnSync("cat", { stdio: [input, "pipe", "pipe"] })),
  outcome(cp.spawnSync("sh", ["-c", "echo told"], { stdio: ["ignore", output, "ignore"] })),
  fs.readFileSync("out", "utf8"),
  outcome(cp.spawnSync("sh", ["-c", "cat <&3; echo more >&4"], { stdio: ["ignore", "pipe", "pipe", fs.openSync("in"), output] })),
  fs.readFileSync("out", "utf8"),
  outcome(cp.spawnSync("sh", ["-c", "cat"], { stdio: ["ignore", "pipe", "pipe"] })),
];

// Starts files that cannot be run, and files that the shell runs.
fs.writeFileSync("script", "echo of the shell: $1", { mode: 0o755 });
fs.mkdirSync("bin");
fs.writeFileSync("bin/own", "#!/bin/sh\necho own", { mode: 0o755 });
answers.found = [
  outcome(cp.spawnSync("./script", ["a"])),
  outcome(cp.spawnSync("own", { env: { PATH: `${process.cwd()}/bin:${process.env.PATH}` } })),
  outcome(cp.spawnSync("./own", { cwd: "bin" })),
  outcome(cp.spawnSync("nothing-such")),
  outcome(cp.spawnSync("ls", { cwd: "in" })),
  outcome(cp.spawnSync("sh", ["-c", "kill -TERM $$"])),
  outcome(cp.spawnSync("sh", ["-c", "exit 7"], { argv0: "another" })),
];

// Descriptors that a script has inherited.
fs.writeFileSync(
  "inherits.cjs",
  `const fs = require("fs");
  const failure = (action) => { try { return action(); } catch ({ code, syscall }) { return [code, syscall]; } };
  const buffer = Buffer.alloc(4);
  const told = [
    fs.writeSync(7, "seven"), fs.fstatSync(8).size, fs.readSync(8, buffer), String(buffer), fs.readFileSync(8, "utf8"),
    fs.closeSync(8), failure(() => fs.fstatSync(8)), failure(() => fs.closeSync(8)), fs.fsyncSync(7), fs.ftruncateSync(7, 3),
    fs.closeSync(7), failure(() => fs.writeSync(7, "x")),
  ];
  fs.read(9, buffer, 0, 4, null, (error, count) => {
    told.push(count, String(buffer));
    fs.createReadStream(null, { fd: 9, encoding: "utf8" }).on("data", (data) => told.push(data)).on("close", () => {
      console.log(JSON.stringify([...told, failure(() => fs.fstatSync(9))]));
    });
  });`,
);
answers.inherited = [
  cp.execSync(`exec 7>seven 8<in 9<in; "${process.execPath}" inherits.cjs`, text),
  fs.readFileSync("seven", "utf8"),
];

// Numbers that are no open descriptors.
answers.none = [
  thrown(() => fs.readFileSync(9999)),
  thrown(() => fs.readFileSync(9999, "utf8")),
  thrown(() => fs.readFileSync(output)),
  thrown(() => fs.futimesSync(9999, {}, 1)),
  thrown(() => fs.utimesSync("in", "x", 1)),
];

// Lists the entries of folders in their order, and of files that are no folders.
fs.mkdirSync("all/deep/er/.", { recursive: true });
fs.mkdirSync("all/deep/empty/./", { recursive: true });
for (const name of ["all/b", "all/B", "all/\u00e4", "all/deep/c", "all/deep/er/d"]) fs.writeFileSync(name, "1");
fs.symlinkSync("deep", "all/link");
const entries = (found) => found.map((one) => one?.name === undefined ? `${one}` : [`${one.name}`, one.parentPath, one.isDirectory(), one.isSymbolicLink()]);
answers.folders = [];
for (
  const options of [undefined, "utf8", "buffer", "hex", { withFileTypes: true }, { recursive: true }, { recursive: true, withFileTypes: true }, { encoding: "buffer", withFileTypes: true }]
) {
  // Whether links to folders are followed differs between versions of Node.
  const where = options?.recursive ? "all/deep" : "all";
  const found = [
    fs.readdirSync(where, options),
    await fs.promises.readdir(where, options),
    await new Promise((done) => fs.readdir(where, options, (_error, found) => done(found))),
  ];
  answers.folders.push(found.map(entries));
}
answers.notFolders = [
  thrown(() => fs.readdirSync("gone")),
  thrown(() => fs.readdirSync("in")),
  thrown(() => fs.readdirSync("all", { recursive: 1 })),
  await fs.promises.readdir("gone").catch(({ code, syscall, message }) => [code, syscall, message]),
  await new Promise((done) => fs.readdir("gone", ({ code, syscall, message }) => done([code, syscall, message]))),
];
answers.stats = [
  thrown(() => fs.statSync("gone")),
  thrown(() => fs.lstatSync("in/gone")),
  fs.statSync("gone", { throwIfNoEntry: false }) ?? "none",
  fs.lstatSync("gone", { throwIfNoEntry: false }) ?? "none",
  Object.keys(fs.statSync("in")),
  Object.keys(fs.statSync("in", { bigint: true })),
  typeof fs.statSync("in", { bigint: true }).size,
  fs.statSync("in").isFile(),
];

// Times are set exactly as given.
const times = ({ atimeMs, mtimeMs }) => [atimeMs, mtimeMs].map((time) => time.toFixed(3));
fs.symlinkSync("in", "link");
answers.times = [];
for (const [accessed, modified] of [[1, 2.25], ["3", "4.5"], [new Date(1250), new Date(5500)], [1e9 + 0.125, 1e9 + 0.8125]]) {
  fs.futimesSync(input, accessed, modified);
  fs.lutimesSync("link", accessed, modified);
  answers.times.push(times(fs.fstatSync(input)), times(fs.lstatSync("link")));
  await new Promise((done) => fs.futimes(input, accessed, modified, done));
  await fs.promises.lutimes("link", accessed, modified);
  answers.times.push(times(fs.fstatSync(input)), times(fs.lstatSync("link")));
}

for (const [name, answer] of Object.entries(answers)) console.log(name, JSON.stringify(answer, null, 1));
process.exit();
