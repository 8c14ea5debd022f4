// Collects the tests of a file, runs them one after the other when the file has been evaluated, and
// reports their outcome to `pi test`.
import type { ChildProcess } from "node:child_process";
import { onEvaluated } from "pi:host.ts";
import { runToEnd } from "pi:pi-coding-agent/test/connection.ts";
import { Model } from "pi:pi-coding-agent/test/model.ts";
import { checkOptions, NUMBER, TEXT } from "pi:pi-coding-agent/test/validate.ts";
import { Pi, PLACE_OPTIONS, START_OPTIONS } from "pi:pi-coding-agent/test/pi.ts";
import type { StartOptions } from "pi:pi-coding-agent/test/pi.ts";
import { Workspace } from "pi:pi-coding-agent/test/workspace.ts";

const { AssertionError } = process.getBuiltinModule("node:assert");
const { AsyncLocalStorage } = process.getBuiltinModule("node:async_hooks");
const { appendFileSync, existsSync, readFileSync } = process.getBuiltinModule("node:fs");
const { basename, dirname, join, resolve } = process.getBuiltinModule("node:path");
const { inspect } = process.getBuiltinModule("node:util");

interface TestOptions {
  /** Timeout in milliseconds. */
  timeout?: number;
}
type Body = (t: TestContext) => unknown;

interface Test {
  name: string;
  body: Body;
  timeout: number;
  skipped: boolean;
  only: boolean;
}

/** The output of `pi -p`, and its exit. */
interface PrintResult {
  text: string;
  stderr: string;
  code: number | null;
  requests: Model["requests"];
}

const tests: Test[] = [];
let collecting = true;

// ---- The extension under test ----

const testFile = (): string => resolve(process.argv[1]);
declare const Deno: { mainModule: string };
const mainModule = (): string => Deno.mainModule;

function hasManifest(folder: string): boolean {
  try {
    return Array.isArray(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).pi?.extensions);
  } catch {
    return false;
  }
}

/** Finds `x.ts` for `x.test.ts`; else the extension's folder around the file. */
function extensionBeside(): string {
  const file = testFile();
  const stem = basename(file).replace(/\.test\.[^.]+$/, "");
  for (const ending of [".ts", ".js", ".mts", ".mjs", ".cjs", "/index.ts", "/index.js"]) {
    const path = join(dirname(file), stem + ending);
    if (existsSync(path)) return path;
  }
  let folder = dirname(file);
  while (dirname(folder) !== folder) {
    if (hasManifest(folder)) return folder;
    const index = ["index.ts", "index.js"].map((name) => join(folder, name)).find(existsSync);
    if (index) return index;
    folder = dirname(folder);
  }
  throw new Error(`There is no extension next to ${basename(file)}: name it, t.start({ extensions: ["./x.ts"] })`);
}

function extensionsOf({ extensions }: StartOptions): string[] {
  if (!extensions) return [extensionBeside()];
  return extensions.map((name) => {
    const path = resolve(dirname(testFile()), name);
    if (!existsSync(path)) throw new Error(`The extension ${path} does not exist`);
    return path;
  });
}

// ---- The argument of a test ----

class TestContext {
  readonly name: string;
  private _pis: Pi[] = [];
  private _printing: ChildProcess[] = [];
  private _after: (() => unknown)[] = [];

  constructor(name: string) {
    this.name = name;
  }

  /** Starts a pi, which ends with the test. */
  async start(options: StartOptions = {}): Promise<Pi> {
    checkOptions("t.start", options, START_OPTIONS);
    return await Pi.start(options, extensionsOf(options), (pi) => this._pis.push(pi));
  }

  /** Runs `pi -p`, without a user for dialogs. Returns the output. */
  async print(prompt: string, options: Omit<StartOptions, "expectErrors"> & { stdin?: string } = {}): Promise<PrintResult> {
    checkOptions("t.print", options, { ...PLACE_OPTIONS, stdin: TEXT });
    let problem: string | undefined;
    const model = new Model(options.model ?? [], (message) => (problem ??= message));
    const place = new Workspace(options, await model.start());
    try {
      const args = extensionsOf(options).flatMap((path) => ["-e", path]);
      const where = { cwd: place.project, env: place.env };
      const words = [...args, ...(options.args ?? []), "-p", prompt];
      const printed = await runToEnd(words, where, options.stdin ?? "", (child) => this._printing.push(child));
      if (problem !== undefined) throw new Error(problem);
      if (model.left > 0) throw new Error(`The model was not asked for ${model.left} of its answers`);
      return {
        text: place.tidy(printed.stdout),
        stderr: place.tidy(printed.stderr),
        code: printed.code,
        requests: model.requests,
      };
    } finally {
      model.stop();
      place.remove();
    }
  }

  /** Registers a function to call when the test is over; the last one is called first. */
  after(work: () => unknown): void {
    this._after.push(work);
  }

  doing(): string[] {
    return this._pis.flatMap((pi) => pi.doing());
  }

  /** Ends everything that the test started. `check`: the test has passed so far. */
  async end(check: boolean): Promise<void> {
    const problems: unknown[] = [];
    // SIGTERM lets the process end its children; a process that has exited does not get it.
    for (const child of this._printing) child.kill("SIGTERM");
    for (const pi of this._pis.reverse()) problems.push(await pi.stop(check).catch((error) => error));
    for (const work of this._after.reverse()) {
      try {
        await work();
      } catch (error) {
        problems.push(error);
      }
    }
    const [problem] = problems.filter((problem) => problem !== undefined);
    if (check && problem !== undefined) throw problem;
  }
}

// ---- Running ----

const report = (record: object): void => {
  appendFileSync(process.env.PI_TEST_REPORT!, `${JSON.stringify(record)}\n`);
};

function collect(name: string, optionsOrBody: TestOptions | Body, bodyAfterOptions: Body | undefined, more: Partial<Test>): void {
  const [options, body] = typeof optionsOrBody === "function" ? [{}, optionsOrBody] : [optionsOrBody, bodyAfterOptions];
  if (typeof body !== "function") throw new TypeError(`The test "${name}" has no function`);
  checkOptions(`test("${name}")`, options, { timeout: NUMBER });
  if (!collecting) throw new Error(`The test "${name}" comes too late: call test() while the file is read`);
  if (process.env.PI_TEST_REPORT === undefined) {
    throw new Error(`${basename(testFile())} is a test: run it with "pi test"`);
  }
  if (tests.some((test) => test.name === name)) throw new Error(`Two tests are called "${name}"`);
  if (tests.length === 0) {
    // Imports the file itself, which is being evaluated. The program calls back when that is done:
    // the first import may resolve earlier if the file waits for something.
    import(mainModule()).catch(giveUp);
    onEvaluated(() => void import(mainModule()).then(runAll, giveUp));
    // A reader of the plan knows that there are tests, even if the file ends the process.
    process.once("exit", () => collecting && plan(tests));
  }
  const timeout = options.timeout ?? Number(process.env.PI_TEST_TIMEOUT ?? 30_000);
  tests.push({ name, body, timeout, skipped: false, only: false, ...more });
}

/**
 * Registers a test. It passes unless its function throws, or a process or model that it started
 * reports a problem.
 */
export function test(name: string, options: TestOptions | Body, body?: Body): void {
  collect(name, options, body, {});
}
/** Registers a test that is skipped and reported as such. */
test.skip = (name: string, options: TestOptions | Body, body?: Body): void => {
  collect(name, options, body, { skipped: true });
};
/** Registers a test that excludes the others of this file. */
test.only = (name: string, options: TestOptions | Body, body?: Body): void => {
  collect(name, options, body, { only: true });
};

async function runAll(): Promise<void> {
  collecting = false;
  endOnSignal();
  const filter = process.env.PI_TEST_FILTER ?? "";
  const alone = tests.some(({ only }) => only);
  const chosen = tests.filter(({ name }) => name.includes(filter));
  // Reported first, so that it is known even if a test ends the process.
  plan(chosen);
  for (const test of chosen) {
    // The process is about to end.
    if (receivedSignals.size > 0) return;
    if (test.skipped || (alone && !test.only)) report({ type: "skipped", name: test.name });
    else await runOne(test);
  }
  await settle();
  report({ type: "done" });
  // Ends whatever the tests left open.
  process.exit(0);
}

/** Reports a file that cannot be evaluated: none of its tests counts. */
function giveUp(error: unknown): void {
  plan(tests);
  report({ type: "broken", error: explain(error) });
  process.exit(1);
}

function plan(chosen: Test[]): void {
  report({ type: "plan", names: chosen.map(({ name }) => name) });
}

/** A test that runs, or that is over and has left work behind. */
interface Running {
  fail(error: unknown): void;
}

/** The test whose code runs. */
const author = new AsyncLocalStorage<Running>();
let current: Running | undefined;

/** An error for which no test waits fails the test that caused it. */
for (const event of ["uncaughtException", "unhandledRejection"]) {
  process.on(event, (error: unknown) => {
    const running = author.getStore() ?? current;
    if (running) running.fail(error);
    else if (collecting && process.env.PI_TEST_REPORT !== undefined) giveUp(error);
    else throw error;
  });
}

/** Milliseconds for work that no test waits for, if it keeps the process alive. */
const SETTLE_TIME = 100;

function settle(): Promise<void> {
  return new Promise((resolve) => {
    process.once("beforeExit", () => resolve());
    setTimeout(resolve, SETTLE_TIME).unref();
  });
}

/** Signals that end the run: from the user with Ctrl-C, or from `pi test`. */
const ENDINGS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };

/** The running test, which has to be ended with the process. */
let open: TestContext | undefined;

/** Signals that were received. */
const receivedSignals = new Set<string>();

/**
 * Ends everything that the test has started, and then the process. A second signal ends the process
 * at once.
 */
function endOnSignal(): void {
  for (const [signal, code] of Object.entries(ENDINGS)) {
    process.on(signal, () => {
      // After Ctrl-C, which all processes of the terminal get, `pi test` sends a signal as well.
      if (receivedSignals.has(signal) || !open) return process.exit(code);
      receivedSignals.add(signal);
      if (receivedSignals.size === 1) void open.end(false).finally(() => process.exit(code));
    });
  }
}

async function runOne({ name, body, timeout }: Test): Promise<void> {
  report({ type: "start", name, timeout });
  const begun = performance.now();
  const context = new TestContext(name);
  open = context;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running: Running | undefined;
  const timedOut = new Promise<never>((_resolve, reject) => {
    running = { fail: reject };
    timer = setTimeout(() => {
      const doing = context.doing().map((what) => `\n  ${what}`).join("");
      reject(new Error(`It took longer than ${timeout} ms${doing && `:${doing}`}`));
    }, timeout);
  });
  current = running;
  // Both outcomes of the race are handled.
  timedOut.catch(() => {});
  let failure: { error: unknown } | undefined;
  const ended = async () => {
    await body(context);
    // An unhandled rejection is reported in the next turn of the event loop.
    await new Promise((resolve) => setTimeout(resolve, 0));
  };
  try {
    await Promise.race([author.run(running!, ended), timedOut]);
  } catch (error) {
    failure = { error };
  }
  const ending = author.run(running!, () => context.end(failure === undefined));
  try {
    await (failure ? ending : Promise.race([ending, timedOut]));
  } catch (error) {
    failure ??= { error };
  }
  clearTimeout(timer);
  current = undefined;
  open = undefined;
  const ms = Math.round(performance.now() - begun);
  report(failure ? { type: "failed", name, ms, error: explain(failure.error) } : { type: "passed", name, ms });
  running!.fail = (error) => {
    if (!failure) report({ type: "late", name, error: explain(error) });
    failure = { error };
  };
}

// ---- Errors ----

const shape = (value: unknown): string =>
  typeof value === "string" ? value : inspect(value, { depth: 20, sorted: true, compact: false, maxArrayLength: null });

function explain(error: unknown): object {
  if (!(error instanceof Error)) return { message: `It threw ${inspect(error)}` };
  const place = positionOf(error.stack ?? "");
  const message = error.name === "Error" ? error.message : `${error.name}: ${error.message}`;
  if (error instanceof AssertionError && error.operator !== "fail") {
    const compares = /equal/i.test(error.operator) && !/^not/i.test(error.operator);
    // Without a message of the author there are only the two values.
    const own = error.generatedMessage ? `assert.${error.operator} failed` : error.message;
    if (compares) return { message: own, actual: shape(error.actual), expected: shape(error.expected), ...place };
  }
  return { message, ...place };
}

interface Frame {
  file: string;
  line: number;
  column: number;
}

/**
 * The source position in the author's code, and the position in the test that led to it, if it is
 * another.
 */
function positionOf(stack: string): Partial<Frame> & { from?: Frame } {
  const frames = stack.split("\n").flatMap((line): Frame[] => {
    // A file URL in a stack may contain any character of the path.
    const found = /(?:^|[ (])file:\/\/(\/.*):(\d+):(\d+)\)?$/.exec(line);
    return found ? [{ file: found[1], line: Number(found[2]), column: Number(found[3]) }] : [];
  });
  const [first] = frames;
  if (!first) return {};
  const here = testFile();
  return { ...first, from: first.file === here ? undefined : frames.find(({ file }) => file === here) };
}
