// Run by Node, and imported by an extension: both get the same answers. The async context of a
// request is current in all callbacks of its child or its socket.
import { AsyncLocalStorage } from "node:async_hooks";
import cp from "node:child_process";
import http from "node:http";
import net from "node:net";
import readline from "node:readline";
import { fileURLToPath } from "node:url";

const kept = new AsyncLocalStorage();
const store = () => kept.getStore() ?? null;

const ways = {
  output: (done) => cp.spawn("echo", ["x"]).stdout.on("data", done),
  errors: (done) => cp.spawn("sh", ["-c", "echo x >&2"]).stderr.on("data", done),
  answered: (done) => {
    const child = cp.spawn("cat");
    child.stdout.on("data", done);
    // The writer may be in another context.
    setTimeout(() => kept.run("other", () => child.stdin.end("x")), 20);
  },
  end: (done) => cp.spawn("echo", ["x"]).stdout.on("end", done).resume(),
  exit: (done) => cp.spawn("true").on("exit", done),
  close: (done) => {
    const child = cp.spawn("echo", ["x"]).on("close", done);
    child.stdout.resume();
  },
  lines: (done) => readline.createInterface({ input: cp.spawn("echo", ["x"]).stdout }).on("line", done),
  exec: (done) => cp.execFile("echo", ["x"], done),
  socket: (done) => {
    const server = net.createServer((socket) => socket.end("x")).listen(0, "127.0.0.1", () => {
      net.connect(server.address().port, "127.0.0.1").on("data", done).on("close", () => server.close());
    });
  },
  aborted: (done) => {
    AbortSignal.timeout(5).addEventListener("abort", done);
    setTimeout(() => {}, 50); // Node ends if there is nothing else.
  },
  response: (done) => {
    const server = http.createServer((_, response) => response.end("x")).listen(0, "127.0.0.1", () => {
      http.get({ host: "127.0.0.1", port: server.address().port, agent: false }, (response) => {
        response.on("data", done).on("end", () => server.close());
      });
    });
  },
};

export async function answers() {
  const found = {};
  for (const [name, way] of Object.entries(ways)) {
    const heard = await kept.run(`of ${name}`, () => new Promise((resolve) => way(() => resolve([store()]))));
    found[name] = heard[0];
  }
  // Two at once each have their own context.
  const both = ["one", "two"].map((name) =>
    kept.run(name, () => new Promise((resolve) => ways.answered(() => resolve(store()))))
  );
  return JSON.stringify([found, await Promise.all(both), store()]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(await answers());
  process.exit();
}
