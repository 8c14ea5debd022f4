// The tools of the program, as extensions use them: each check says what came of it.
import * as fs from "node:fs";
import * as path from "node:path";
import {
  bashTool,
  codingTools,
  createBashTool,
  createBashToolDefinition,
  createCodingTools,
  createEditTool,
  createEditToolDefinition,
  createFindTool,
  createGrepTool,
  createLocalBashOperations,
  createLsTool,
  createReadOnlyTools,
  createReadTool,
  createReadToolDefinition,
  createWriteTool,
  getShellConfig,
  readOnlyTools,
  readTool,
} from "@mariozechner/pi-coding-agent";

const names = (tools) => tools.map((tool) => tool.name);
const text = (result) => result.content.map((block) => block.text ?? block.mimeType).join("|");
const failure = (promise) => promise.then((value) => `no error: ${JSON.stringify(value)}`, (error) => error.message);

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const checks = {
  async local(cwd) {
    fs.writeFileSync(path.join(cwd, "a.txt"), "one\ntwo\nthree");
    const read = createReadTool(cwd);
    const updates = [];
    const bash = await createBashTool(cwd).execute("1", { command: "echo hi; echo err >&2" }, undefined, (update) => {
      updates.push(update);
    });
    const aborted = new AbortController();
    aborted.abort();
    return {
      lists: [codingTools, readOnlyTools, createCodingTools(cwd), createReadOnlyTools(cwd)].map(names),
      here: text(await readTool.execute("1", { path: "a.txt" })),
      spread: Object.keys({ ...bashTool }).sort(),
      read: await read.execute("1", { path: "@a.txt", offset: 2, limit: 1 }),
      definition: Object.keys(createReadToolDefinition(cwd)).filter((key) => !key.startsWith("render")).sort(),
      shellOfEdit: createEditToolDefinition(cwd).renderShell,
      prepared: createEditTool(cwd).prepareArguments({ path: "a", oldText: "x", newText: "y" }),
      missing: (await failure(read.execute("1", { path: "none" }))).slice(0, 40),
      bash: text(bash),
      firstUpdate: updates[0],
      failed: await failure(createBashTool(cwd).execute("1", { command: "echo out; exit 3" })),
      aborted: await failure(createBashTool(cwd).execute("1", { command: "sleep 9" }, aborted.signal)),
      written: text(await createWriteTool(cwd).execute("1", { path: "sub/b.txt", content: "new" })),
      edited: text(
        await createEditTool(cwd).execute("1", { path: "a.txt", edits: [{ oldText: "two", newText: "2" }] }),
      ),
      after: fs.readFileSync(path.join(cwd, "a.txt"), "utf8"),
      grep: text(await createGrepTool(cwd).execute("1", { pattern: "three" })),
      find: text(await createFindTool(cwd).execute("1", { pattern: "*.txt" })),
      ls: text(await createLsTool(cwd).execute("1", {})),
      shell: getShellConfig().args,
    };
  },

  async elsewhere(cwd) {
    const asked = [];
    const files = { [path.join(cwd, "far.txt")]: "alpha\nbeta" };
    const note = (what, name) => asked.push(`${what} ${path.relative(cwd, name)}`);
    const operations = {
      access: async (name) => {
        note("access", name);
        if (!(name in files)) throw new Error(`no ${path.basename(name)} there`);
      },
      readFile: async (name) => (note("read", name), Buffer.from(files[name])),
      writeFile: async (name, content) => (note("write", name), void (files[name] = content)),
      mkdir: async (name) => note("mkdir", name),
    };
    const picture = {
      access: async () => {},
      readFile: async () => Buffer.from(PIXEL, "base64"),
      detectImageMimeType: async () => "image/png",
    };
    const list = {
      exists: (name) => !name.endsWith("gone"),
      stat: async (name) => {
        if (name.endsWith("lost")) throw new Error("cannot stat");
        return { isDirectory: () => !name.endsWith(".txt") };
      },
      readdir: () => ["b.txt", "A", "lost"],
    };
    const glob = { exists: () => true, glob: (pattern, root, options) => [`${root}/x/${pattern}`, JSON.stringify(options)] };
    fs.writeFileSync(path.join(cwd, "hay.txt"), "hay\nneedle\nhay");
    const grep = { isDirectory: () => true, readFile: () => "far hay\nneedle\nfar hay" };
    const bound = { operations };
    return {
      read: text(await createReadTool(cwd, bound).execute("1", { path: "far.txt" })),
      missing: await failure(createReadTool(cwd, bound).execute("1", { path: "no.txt" })),
      picture: text(await createReadTool(cwd, { operations: picture }).execute("1", { path: "p" })),
      written: text(await createWriteTool(cwd, bound).execute("1", { path: "d/new.txt", content: "N" })),
      edited: text(
        await createEditTool(cwd, bound).execute("1", {
          path: "far.txt",
          edits: [{ oldText: "beta", newText: "gamma" }],
        }),
      ),
      unedited: await failure(
        createEditTool(cwd, bound).execute("1", { path: "no.txt", edits: [{ oldText: "a", newText: "b" }] }),
      ),
      files: Object.values(files),
      untouched: fs.existsSync(path.join(cwd, "far.txt")),
      asked,
      ls: text(await createLsTool(cwd, { operations: list }).execute("1", {})),
      noFolder: (await failure(createLsTool(cwd, { operations: list }).execute("1", { path: "gone" }))).slice(0, 15),
      find: text(await createFindTool(cwd, { operations: glob }).execute("1", { pattern: "*.rs", limit: 7 })),
      grep: text(await createGrepTool(cwd, { operations: grep }).execute("1", { pattern: "needle", context: 1, path: "hay.txt" })),
    };
  },

  async shells(cwd) {
    const seen = [];
    const remote = {
      exec: async (command, where, options) => {
        seen.push([command, path.relative(cwd, where), options.timeout, typeof options.env.PATH]);
        options.onData(Buffer.from("far "));
        options.onData(Buffer.from("away"));
        return { exitCode: command === "fail" ? 2 : 0 };
      },
    };
    const ends = (error) => ({
      exec: async (_command, _cwd, { onData }) => {
        onData(Buffer.from("half"));
        throw new Error(error);
      },
    });
    const spawnHook = ({ command, cwd: where, env }) => ({
      command: `${command}; echo $MARK; pwd`,
      cwd: path.dirname(where),
      env: { ...env, MARK: "hooked" },
    });
    const bash = (options, args) => createBashTool(cwd, options).execute("1", args);
    const local = createLocalBashOperations();
    const chunks = [];
    const onData = (data) => chunks.push(data.toString());
    const stop = new AbortController();
    const onStart = () => stop.abort();
    const stopped = failure(local.exec("echo on; sleep 30", cwd, { onData: onStart, signal: stop.signal }));
    const updates = [];
    const hanging = createBashTool(cwd, {
      operations: { exec: (_c, _d, { onData: data }) => (data(Buffer.from("begun")), new Promise(() => {})) },
    });
    const abort = new AbortController();
    const hung = failure(hanging.execute("1", { command: "x" }, abort.signal, (update) => {
      updates.push(text(update));
      if (text(update) === "begun") abort.abort();
    }));
    return {
      remote: text(await bash({ operations: remote, commandPrefix: "set -e" }, { command: "run", timeout: 5 })),
      failed: await failure(bash({ operations: remote }, { command: "fail" })),
      seen,
      aborted: await failure(bash({ operations: ends("aborted") }, { command: "x" })),
      timedOut: await failure(bash({ operations: ends("timeout:4") }, { command: "x", timeout: 4 })),
      broken: await failure(bash({ operations: ends("no such host") }, { command: "x" })),
      noCode: text(await bash({ operations: { exec: async () => ({ exitCode: null }) } }, { command: "x" })),
      hooked: text(await bash({ spawnHook }, { command: "printf a" })).split("\n").slice(0, 2),
      folder: text(await bash({ spawnHook }, { command: "true" })).includes(path.dirname(cwd)),
      prefixed: text(await createBashToolDefinition(cwd, { commandPrefix: "X=1" }).execute("1", { command: "echo $X" })),
      local: await local.exec("echo $A; exit 4", cwd, { onData, env: { A: "b" } }),
      output: chunks.join(""),
      localStopped: await stopped,
      localLate: await failure(local.exec("sleep 30", cwd, { onData, timeout: 0.2 })),
      localLost: (await failure(local.exec("true", path.join(cwd, "none"), { onData }))).split("\n")[1],
      hung: await hung,
    };
  },
};

export default (pi) => {
  for (const [name, check] of Object.entries(checks)) {
    pi.registerCommand(name, {
      handler: async (_args, ctx) => {
        const cwd = fs.mkdtempSync(path.join(ctx.cwd, "check-"));
        process.chdir(cwd);
        ctx.ui.notify(JSON.stringify(await check(cwd)));
      },
    });
  }
};
