// A pi under test: this program in RPC mode, with an extension, a user, a project and
// a model of its own.
import { Connection } from "pi:pi-coding-agent/test/connection.ts";
import type { RpcEvent } from "pi:pi-coding-agent/test/connection.ts";
import { Model } from "pi:pi-coding-agent/test/model.ts";
import type { ModelRequest, Script } from "pi:pi-coding-agent/test/model.ts";
import type { Answer } from "pi:pi-coding-agent/test/model-answers.ts";
import { Workspace } from "pi:pi-coding-agent/test/workspace.ts";
import type { WorkspaceOptions } from "pi:pi-coding-agent/test/workspace.ts";
import {
  checkOptions,
  checkValue,
  NUMBER,
  OBJECT,
  OBJECTS,
  PATTERN,
  PATTERNS,
  SCRIPT,
  TEXTS,
} from "pi:pi-coding-agent/test/validate.ts";
import type { Requirement } from "pi:pi-coding-agent/test/validate.ts";
import { Run } from "pi:pi-coding-agent/test/run.ts";
import { transcript } from "pi:pi-coding-agent/test/transcript.ts";
import { Ui } from "pi:pi-coding-agent/test/ui.ts";

export interface StartOptions extends WorkspaceOptions {
  /** Files or folders, relative to the test; by default the extension next to the test. */
  extensions?: string[];
  /** The model's responses, in order, or a function that returns them. */
  model?: Script;
  /** Additional arguments for pi. */
  args?: string[];
  /** Errors of the extension that the test expects. */
  expectErrors?: (string | RegExp)[];
}

/** Options of `t.start` and of `t.print`. */
export const PLACE_OPTIONS: Record<string, Requirement> = {
  model: SCRIPT,
  files: OBJECT,
  agentFiles: OBJECT,
  settings: OBJECT,
  args: TEXTS,
  env: OBJECT,
  extensions: TEXTS,
  contextWindow: NUMBER,
};
export const START_OPTIONS: Record<string, Requirement> = { ...PLACE_OPTIONS, expectErrors: PATTERNS };

/** Milliseconds for a pi whose test has failed. */
const FAILED_EXIT_TIMEOUT = 2_000;
const QUIET_EVENTS = ["message_update", "tool_execution_update"];
const quote = (text: string) => JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}...` : text);

export class Pi {
  /** Every event, in order (docs/rpc.md). */
  readonly events: RpcEvent[] = [];
  /** Errors of extensions, expected ones included. */
  readonly errors: string[] = [];
  readonly ui: Ui;
  private _model: Model;
  private _workspace: Workspace;
  private _args: string[];
  private _connection: Connection | undefined;
  private _expected: { pattern: string | RegExp; seen: boolean }[];
  private _problem: Error | undefined;
  /** Callbacks of waits that a problem makes impossible to fulfil. */
  private _waits = new Map<string, Set<(problem: Error) => void>>();
  private _watchers = new Set<() => void>();
  private _stopped = false;

  private constructor(place: Workspace, model: Model, options: StartOptions, extensions: string[]) {
    this._workspace = place;
    this._model = model;
    this._args = [...extensions.flatMap((path) => ["-e", path]), ...(options.args ?? [])];
    this._expected = (options.expectErrors ?? []).map((pattern) => ({ pattern, seen: false }));
    const complain = (message: string) => this.complain(message);
    this.ui = new Ui((answer) => this._connection?.send(answer), complain);
  }

  static async start(
    options: StartOptions,
    extensions: string[],
    prepare?: (pi: Pi) => void,
  ): Promise<Pi> {
    let pi: Pi | undefined;
    const model = new Model(options.model ?? [], (message) => pi?.complain(message));
    const place = new Workspace(options, await model.start());
    pi = new Pi(place, model, options, extensions);
    prepare?.(pi);
    await pi._wait("the start of pi", () => pi._open([]));
    return pi;
  }

  // ---- Actions of a test ----

  /** Sends a prompt to the agent, and waits until no work is left. */
  async prompt(text: string, options: { images?: object[] } = {}): Promise<Run> {
    checkOptions("pi.prompt", options, { images: OBJECTS });
    return await this._run(`the end of the prompt ${quote(text)}`, async () => {
      await this.rpc("prompt", { message: text, ...options });
    });
  }

  /** Runs a command of an extension: `/name args`. */
  async command(text: string): Promise<Run> {
    return await this._run(`the end of the command ${quote(text)}`, async () => {
      const { commands } = await this.rpc<{ commands: { name: string; source: string }[] }>("get_commands");
      const names = commands.filter(({ source }) => source === "extension").map(({ name }) => `/${name}`);
      const [name] = text.split(" ");
      if (!names.includes(name)) {
        throw new Error(`No extension has the command ${name}; there are ${names.join(", ") || "none"}`);
      }
      await this.rpc("prompt", { message: text });
    });
  }

  /** Sends a steering message, which the model gets after this turn. */
  steer = (message: string): Promise<void> => this.rpc("steer", { message });
  /** Sends a follow-up message, which the model gets when it would otherwise be done. */
  followUp = (message: string): Promise<void> => this.rpc("follow_up", { message });
  abort = (): Promise<void> => this.rpc("abort");

  /** Waits until all work is done and the extension has got every event. */
  async settled(): Promise<Run> {
    return await this._run("the end of all work", async () => {});
  }

  /** Waits for an event; one that has already arrived counts. */
  async waitFor(type: string, fits: (event: RpcEvent) => boolean = () => true): Promise<RpcEvent> {
    return await this._wait(`an event ${type}`, () =>
      new Promise((resolve) => {
        const check = () => {
          const found = this.events.find((event) => event.type === type && fits(event));
          if (!found) return;
          this._watchers.delete(check);
          resolve(found);
        };
        this._watchers.add(check);
        check();
      }));
  }

  /** Sends any command of the protocol (docs/rpc.md); returns its data. */
  async rpc<T = void>(type: string, members: object = {}): Promise<T> {
    return await this._wait(`the answer to ${type}`, () => this._running().request<T>(type, members));
  }

  /** Reloads the extensions, as after a change. */
  async reload(): Promise<void> {
    this._mark("reload");
    const { failed } = await this.rpc<{ failed: { path: string; error: string }[] }>("reload");
    if (failed.length > 0) throw new Error(failed.map(({ path, error }) => `${path}: ${error}`).join("\n"));
  }

  /** Ends pi, and starts it again with the same session. */
  async restart(args: string[] = ["--continue"]): Promise<void> {
    await this._wait("the end of pi", () => this._close());
    this._mark("restart");
    await this._wait("the start of pi", () => this._open(args));
  }

  // ---- State that a test inspects ----

  /** The requests to the model, in order. */
  get requests(): ModelRequest[] {
    return this._model.requests;
  }

  /** Adds responses of the model. */
  answer(...answers: (Answer | ((request: ModelRequest) => Answer | Promise<Answer>))[]): void {
    this._model.push(...answers);
  }

  /** The entries of the session, as they are in its file. */
  async entries<T = Record<string, unknown>>(): Promise<T[]> {
    return (await this.rpc<{ entries: T[] }>("get_entries")).entries;
  }

  get project(): string {
    return this._workspace.project;
  }
  get agentDir(): string {
    return this._workspace.agentDir;
  }
  get home(): string {
    return this._workspace.home;
  }
  /** Files of the project. */
  read = (name: string): string => this._workspace.read(name);
  write = (name: string, content: string | object): string => this._workspace.write(name, content);
  exists = (name: string): boolean => this._workspace.exists(name);

  /** The output of pi and of its extensions' console on stderr. */
  get stderr(): string {
    return this._connection?.stderr ?? "";
  }

  /** The events so far as readable text, equal in every run. */
  transcript(): string {
    return this._workspace.tidy(transcript(this.events));
  }

  // ---- Calls of the suite ----

  /** Makes the test fail: at its current wait, or at its end. */
  complain(message: string): void {
    if (this._stopped) return;
    this._problem ??= new Error(this._workspace.tidy(message));
    const waits = [...this._waits.values()].flatMap((rejects) => [...rejects]);
    for (const reject of waits) reject(this._problem);
  }

  /** Expects an error of the extension, which then does not fail the test. */
  expectError(pattern: string | RegExp): void {
    checkValue("pi.expectError: the error", pattern, PATTERN);
    this._expected.push({ pattern, seen: false });
  }

  /** The unfinished work, for the message of a timeout. */
  doing(): string[] {
    const open = new Map<string, string>();
    let working = false;
    for (const event of this.events) {
      if (event.type === "agent_start") working = true;
      if (event.type === "agent_end") working = false;
      if (event.type === "tool_execution_start") open.set(event.toolCallId, event.toolName);
      if (event.type === "tool_execution_end") open.delete(event.toolCallId);
    }
    const last = this.events.findLast(({ type }) => !QUIET_EVENTS.includes(type));
    return [
      ...[...this._waits.keys()].map((what) => `waiting for ${what}`),
      ...[...open.values()].map((tool) => `the tool ${tool} runs`),
      ...(this._model.thinking > 0 ? ["a request to the model has no response yet"] : []),
      ...(working && open.size === 0 && this._model.thinking === 0 ? ["the agent works"] : []),
      ...(last ? [`the last event was ${last.type}${last.method ? ` ${last.method}` : ""}`] : []),
    ];
  }

  /** Ends everything. Returns the problem that was not reported yet. */
  async stop(check: boolean): Promise<Error | undefined> {
    try {
      if (check && !this._problem && this._connection) {
        // Work of handlers that still run belongs to the test.
        await this.rpc("wait_for_idle").catch(() => {});
        await this._close();
      }
      if (!check) return undefined;
      if (this._problem) return this._problem;
      const absent = this._expected.find(({ seen }) => !seen);
      if (absent) return new Error(`An error was expected and did not come: ${absent.pattern}`);
      const { left } = this._model;
      if (left > 0) return new Error(`The model was not asked for ${left === 1 ? "one answer" : `${left} answers`} of its script`);
      const [unasked] = this.ui.left;
      if (unasked) return new Error(`A dialog was expected and did not come: ${unasked}`);
      return undefined;
    } finally {
      this._stopped = true;
      // Killing pi at once would leave processes of its tools behind.
      await this._connection?.close(FAILED_EXIT_TIMEOUT);
      this._model.stop();
      this._workspace.remove();
    }
  }

  // ---- Inside ----

  private _running(): Connection {
    if (!this._connection) throw new Error("pi does not run");
    return this._connection;
  }

  private async _open(args: string[]): Promise<void> {
    const where = { cwd: this._workspace.project, env: this._workspace.env };
    const connection = new Connection([...this._args, ...args], where, (event) => this._onEvent(event));
    this._connection = connection;
    void connection.ended.then(({ code, signal }) => {
      if (this._connection !== connection || this._stopped) return;
      this.complain(`pi has ended (${signal ?? `exit code ${code}`})\n${connection.stderr}`.trimEnd());
    });
    await connection.request("get_state");
  }

  private async _close(): Promise<void> {
    const connection = this._running();
    // From here on the exit is no problem.
    this._connection = undefined;
    const { code, signal } = await connection.close();
    if (code !== 0) {
      throw new Error(`pi did not end well (${signal ?? `exit code ${code}`})\n${connection.stderr}`.trimEnd());
    }
  }

  private _mark(what: string): void {
    this.events.push({ type: "test_mark", what });
  }

  private async _run(what: string, work: () => Promise<void>): Promise<Run> {
    const from = this.events.length;
    await this._wait(what, async () => {
      await work();
      await this._running().request("wait_for_idle");
    });
    return new Run(this.events.slice(from), (text) => this._workspace.tidy(text));
  }

  /**
   * Waits until the work is done or a problem makes that impossible. The error has the stack of the
   * caller.
   */
  private async _wait<T>(what: string, work: () => Promise<T>): Promise<T> {
    const here = new Error();
    const rejects = this._waits.get(what) ?? new Set();
    this._waits.set(what, rejects);
    let fail: ((problem: Error) => void) | undefined;
    const failed = new Promise<never>((_resolve, reject) => rejects.add((fail = reject)));
    try {
      if (this._problem) throw this._problem;
      return await Promise.race([work(), failed]);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      here.message = message;
      // The stack was not read yet, so its first line can be replaced.
      here.stack = `Error: ${message}\n${(here.stack ?? "").split("\n").slice(1).join("\n")}`;
      throw here;
    } finally {
      if (fail) rejects.delete(fail);
      if (rejects.size === 0) this._waits.delete(what);
    }
  }

  private _onEvent(event: RpcEvent): void {
    this.events.push(event);
    if (event.type === "extension_ui_request") this.ui.onEvent(event);
    if (event.type === "extension_error") this._error(event);
    for (const check of [...this._watchers]) check();
  }

  private _error({ event, error, stack }: RpcEvent): void {
    // The text includes the class and the source position.
    const text = String(stack ?? error);
    this.errors.push(text);
    const expected = this._expected.find(({ pattern }) =>
      typeof pattern === "string" ? text.includes(pattern) : new RegExp(pattern).test(text)
    );
    if (expected) expected.seen = true;
    else this.complain(`The extension failed (${event}): ${text}`);
  }
}
