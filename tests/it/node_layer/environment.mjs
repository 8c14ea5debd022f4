// Run by Node and by pi in its place: both print the same answers. Of variables, children
// and times. `BROKEN` is a variable with a byte that is no UTF-8.
import cp from "node:child_process";
import fs from "node:fs";
import fsp from "node:fs/promises";
import { basename } from "node:path";
import { promisify } from "node:util";

const answers = {};
const text = { encoding: "utf8" };
const failure = (action) => {
  try {
    return ["no error", action()];
  } catch ({ name, code, errno, syscall, path, message }) {
    return { name, code, errno, syscall, path, message };
  }
};
const outcome = (...words) => new Promise((done) => {
  const child = cp.spawn(...words);
  let output = "";
  child.stdout.on("data", (data) => output += data);
  child.on("error", ({ code }) => done([code]));
  child.on("close", () => done([output, child.spawnargs.map((word) => basename(word))]));
});

// Values that are no UTF-8 contain replacement characters.
const names = (object) => Object.keys(object).filter((name) => name.startsWith("BROKEN"));
answers.variables = [
  process.env.BROKEN,
  "BROKEN" in process.env,
  names(process.env),
  { ...process.env }.BROKEN,
  cp.execSync("echo $BROKEN", text),
  cp.execSync("echo $BROKEN", { ...text, env: { ...process.env } }),
  await outcome("sh", ["-c", "echo $BROKEN"]),
  process.env.NOT_THERE,
  process.env["NO=NAME"],
];

// The first argument of a child is the command as given, or `argv0`.
const first = "tr '\\0' '\\n' < /proc/$$/cmdline | head -1";
answers.words = [
  await outcome("sh", ["-c", first]),
  await outcome("sh", ["-c", first], { argv0: "x" }),
  await outcome(first, { shell: true }),
  cp.spawnSync("sh", ["-c", first], text).stdout,
  cp.spawnSync("sh", ["-c", first], { ...text, argv0: "y" }).stdout,
  cp.execFileSync("sh", ["-c", first], text),
];
fs.writeFileSync("told.mjs", "console.log(process.argv0, process.execArgv, process.argv.slice(2))");
const told = (words, options) => cp.execFileSync(process.execPath, words, { ...text, ...options });
answers.told = [
  told(["told.mjs", "a"], { argv0: "another" }),
  told(["--no-warnings", "told.mjs"], { argv0: "another" }),
  process.execArgv,
];

// A path that is no folder, and one that does not exist.
answers.folders = [
  failure(() => cp.spawn("ls", { cwd: "told.mjs" })),
  failure(() => cp.execSync("true", { cwd: "told.mjs", stdio: "pipe" })),
  await outcome("ls", { cwd: "nowhere" }),
  failure(() => cp.spawn("true", ["x".repeat(3e6)])),
];

// Times are more precise than milliseconds.
fs.writeFileSync("file", "x");
fs.symlinkSync("file", "link");
fs.utimesSync("file", 1600000000.25, 1600000001.123456);
const file = fs.openSync("file");
const times = ({ atimeMs, mtimeMs, mtime, size, nlink }) => [
  Number(atimeMs).toFixed(3),
  Number(mtimeMs).toFixed(3),
  mtime.toISOString(),
  Number(size),
  Number(nlink),
];
const all = [
  fs.statSync("file"),
  await promisify(fs.stat)("file"),
  await fsp.stat("link"),
  fs.fstatSync(file),
  await promisify(fs.fstat)(file),
  fs.lstatSync("file"),
  await fsp.lstat("file"),
  fs.statSync("file", { bigint: true }),
];
answers.times = all.map(times);
answers.kinds = [fs.statSync("."), fs.lstatSync("link"), fs.statSync("link"), fs.statSync("/dev/null"), fs.fstatSync(file)]
  .map((found) => [found.isDirectory(), found.isSymbolicLink(), found.isFile(), found.isCharacterDevice(), found.mode & 0o170000]);
answers.nanoseconds = [fs.statSync("file", { bigint: true }).mtimeNs / 1000n].map(String);
answers.missing = [
  failure(() => fs.statSync("nothing")),
  failure(() => fs.lstatSync("nothing")),
  failure(() => fs.fstatSync(9999)),
  fs.statSync("nothing", { throwIfNoEntry: false }),
  fs.lstatSync("nothing", { throwIfNoEntry: false }),
  await fsp.stat("nothing").catch(({ code, syscall, path }) => [code, syscall, path]),
  await fsp.lstat("nothing").catch(({ code, syscall, path }) => [code, syscall, path]),
  failure(() => fs.closeSync(9999)),
];
const whole = fs.statSync("told.mjs");
answers.whole = ["mtimeMs", "ctimeMs", "birthtimeMs"].map((name) => Number.isInteger(whole[name] * 1000) && whole[name] % 1 === 0);
fs.closeSync(file);

for (const [name, answer] of Object.entries(answers)) console.log(name, JSON.stringify(answer, null, 1));
