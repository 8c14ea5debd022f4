// Run by Node, and imported by an extension: both get the same answers. All of these descriptors
// belong to the caller.
import { fork, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import tty from "node:tty";
import { fileURLToPath } from "node:url";

const ended = (child) => once(child, "close");

const CHILD = `process.once("message", (_, socket) => socket.end("from the child", () => process.disconnect()));`;

async function connectionSentToAChild() {
  fs.writeFileSync("child.cjs", CHILD);
  const child = fork("./child.cjs");
  const server = net.createServer((socket) => child.send("yours", socket)).listen(0, "127.0.0.1");
  await once(server, "listening");
  let heard = "";
  const connection = net.connect(server.address().port, "127.0.0.1");
  connection.setEncoding("utf8").on("data", (data) => heard += data);
  await Promise.all([ended(connection), ended(child)]);
  server.close();
  return heard;
}

async function fileOfChildren() {
  const file = fs.openSync("out", "w");
  const handle = await fs.promises.open("out", "a");
  spawnSync("echo", ["sync"], { stdio: ["ignore", file, file] });
  await ended(spawn("echo", ["async"], { stdio: ["ignore", file, "ignore"] }));
  await ended(spawn("sh", ["-c", "echo handle; echo third >&3"], { stdio: ["ignore", handle.fd, "ignore", handle.fd] }));
  fs.closeSync(file);
  await handle.close();
  return fs.readFileSync("out", "utf8");
}

async function pipesOfAChild() {
  const child = spawn("sh", ["-c", "cat; echo third >&3; cat <&4 >&3"], { stdio: ["pipe", "pipe", "ignore", "pipe", "pipe"] });
  const heard = { 1: "", 3: "" };
  for (const number of [1, 3]) child.stdio[number].on("data", (data) => heard[number] += data);
  child.stdin.end("first\n");
  child.stdio[4].end("fourth\n");
  await ended(child);
  return heard;
}

async function outputOfAnother() {
  const first = spawn("cat", { stdio: ["pipe", "pipe", "ignore"] });
  const second = spawn("tr", ["a-z", "A-Z"], { stdio: [first.stdout, "pipe", "ignore"] });
  let heard = "";
  second.stdout.on("data", (data) => heard += data);
  first.stdin.end("through two\n");
  await ended(second);
  return heard;
}

function refused(make) {
  try {
    make();
  } catch ({ code }) {
    return code;
  }
}

/** Uses descriptors that are not open. */
const notOpen = () =>
  [
    () => new net.Socket({ fd: 9999 }),
    () => new tty.WriteStream(9999),
    () => spawnSync("echo", { stdio: ["ignore", 9999, "ignore"] }).error,
    () => fs.closeSync(9999),
  ].map(refused);

export async function answers() {
  const nowhere = fs.openSync("/dev/null", "r+");
  return JSON.stringify([
    await fileOfChildren(),
    await pipesOfAChild(),
    await outputOfAnother(),
    await connectionSentToAChild(),
    notOpen(),
    spawnSync("cat", { stdio: [nowhere, "inherit", nowhere] }).status,
    [0, 1, 2].map((number) => tty.isatty(number)),
  ]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(await answers());
  process.exit();
}
