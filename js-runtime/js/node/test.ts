// `node:test` for scripts and workers: runs their tests and writes TAP, as Node does without a
// terminal. It throws in an extension, because a session has no place for that output. Deno's
// module hands its tests to `Deno.test`; these functions replace it (`snapshot/corrections`).
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals } from "ext:core/mod.js";
import { isOtherIsolate } from "ext:js_runtime/node/uncaught.ts";

interface Entry {
  name: string;
  fn(step: TestStep): unknown;
  ignore?: boolean;
  options?: { skip?: boolean | string; todo?: boolean | string };
}

interface Failure {
  error: any;
  type: string;
}

const PENDING = "Promise resolution is still pending but the event loop has already resolved";

const counts = { tests: 0, suites: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 };
const running: TestStep[] = [];
let root: TestStep | undefined;
let print: (line: string) => void;

/** One running test or suite, as the test's own code and Deno see it. */
class TestStep {
  isSuite = false;
  skip?: boolean | string;
  todo?: boolean | string;
  notes: string[] = [];
  tests = 0;
  failed = 0;
  /** Runs the children of one parent one after the other. */
  tail: Promise<unknown> = Promise.resolve();
  begun = performance.now();

  constructor(readonly name: string, readonly parent?: TestStep, readonly number = 0) {}

  get pad(): string {
    return this.parent?.parent ? this.parent.pad + "    " : "";
  }

  step(entry: Entry): Promise<boolean> {
    const step = new TestStep(entry.name, this, ++this.tests);
    const run = this.tail.then(() => step.run(entry));
    this.tail = run;
    return run;
  }

  async run({ fn, ignore, options }: Entry): Promise<boolean> {
    ({ skip: this.skip, todo: this.todo } = options ?? {});
    if (ignore && !this.todo) this.skip ||= true;
    print(`${this.pad}# Subtest: ${escaped(this.name)}`);
    this.begun = performance.now();
    let failure: Failure | undefined;
    if (!this.skip) {
      running.push(this);
      try {
        await fn(this);
      } catch (error) {
        failure = { error, type: (error as any)?.failureType ?? "testCodeFailure" };
      }
      await this.tail;
      running.splice(running.indexOf(this), 1);
    }
    return this.end(failure);
  }

  end(failure?: Failure): boolean {
    const { pad, skip, todo, failed } = this;
    if (!failure && failed > 0) {
      const error = new Error(`${failed} subtest${failed === 1 ? "" : "s"} failed`);
      error.stack = undefined;
      failure = { error, type: "subtestsFailed" };
    }
    if (this.tests > 0) print(`${pad}    1..${this.tests}`);
    const outcome = failure ? "not ok" : "ok";
    print(`${pad}${outcome} ${this.number} - ${escaped(this.name)}${directive("SKIP", skip) || directive("TODO", todo)}`);
    const duration = performance.now() - this.begun;
    const type = this.isSuite ? "suite" : "test";
    const lines = ["---", `duration_ms: ${duration}`, `type: '${type}'`, ...failureLines(failure), "..."];
    for (const line of lines) print(`${pad}  ${line}`);
    for (const note of this.notes) print(`${pad}# ${escaped(note)}`);
    if (failure && !todo) this.parent!.failed += 1;
    this.count(failure);
    return !failure;
  }

  count(failure?: Failure): void {
    if (this.isSuite) {
      counts.suites += 1;
      return;
    }
    counts.tests += 1;
    if (this.skip) counts.skipped += 1;
    else if (this.todo) counts.todo += 1;
    else if (!failure) counts.pass += 1;
    else if (failure.type === "testTimeoutFailure" || failure.type === "cancelledByParent") counts.cancelled += 1;
    else counts.fail += 1;
  }
}

function escaped(text: string): string {
  return text.replace(/[\\#]/g, "\\$&").replace(/\n/g, "\\n");
}

function directive(name: string, why: boolean | string | undefined): string {
  return why ? ` # ${name}${typeof why === "string" ? ` ${escaped(why)}` : ""}` : "";
}

/** Formats a member of the YAML block. */
function member(name: string, value: unknown): string[] {
  const text = typeof value === "string" ? value : core.createLazyLoader("node:util")().inspect(value);
  if (text.includes("\n")) return [`${name}: |-`, ...text.split("\n").map((line: string) => `  ${line}`)];
  const isPlain = value === null || /^(number|boolean)$/.test(typeof value);
  return [`${name}: ${isPlain ? text : `'${text.replaceAll("'", "''")}'`}`];
}

/** Formats the reason of a failure. */
function failureLines(failure: Failure | undefined): string[] {
  if (!failure) return [];
  const { error, type } = failure;
  const isError = error instanceof Error;
  const lines = [...member("failureType", type), ...member("error", isError ? error.message : error)];
  const { code, name, stack } = (isError ? error : {}) as any;
  lines.push(...member("code", code ?? "ERR_TEST_FAILURE"));
  if (name !== undefined && name !== "Error") lines.push(...member("name", String(name)));
  if (code === "ERR_ASSERTION") {
    for (const name of ["expected", "actual", "operator"]) lines.push(...member(name, error[name]));
  }
  const frames = String(stack ?? "").split("\n").filter((line) => /^\s+at (?!.*\bext:)/.test(line));
  if (frames.length > 0) lines.push("stack: |-", ...frames.map((frame) => frame.replace(/^\s+at /, "  ")));
  return lines;
}

function begin(): TestStep {
  const first = new TestStep("");
  const { log } = globalThis.console;
  print = (line) => log(line);
  // The module registers all of its tests first.
  first.tail = new Promise((done) => core.createLazyLoader("node:timers")().setTimeout(done, 0));
  first.tail.then(() => print("TAP version 13"));
  const process = core.createLazyLoader("node:process")().default;
  process.on("exit", () => {
    for (const step of running.reverse()) {
      step.end({ error: Object.assign(new Error(PENDING), { stack: undefined }), type: "cancelledByParent" });
    }
    print(`1..${first.tests}`);
    for (const [name, count] of Object.entries(counts)) print(`# ${name} ${count}`);
    print(`# duration_ms ${performance.now() - first.begun}`);
    if (first.failed > 0) process.exitCode = 1;
  });
  return first;
}

/** Replaces `Deno.test`. */
internals.nodeTest = (entry: Entry): void => void (root ??= begin()).step(entry);

/** Whether to skip Deno's own path without hooks. Throws in an extension. */
internals.writesTap = (): boolean => {
  if (isOtherIsolate) return false;
  throw new Error(
    'node:test does not run tests in an extension: start them with process.execPath and the path of the script. ' +
      'Tests of the extension itself are x.test.ts beside it, for "pi test"',
  );
};
