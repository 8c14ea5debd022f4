// `@mariozechner/pi-coding-agent/test`: for the tests that `pi test` runs.
import type { SessionEntry } from "./sdk/session.js";

// ---- Responses of the model ----

export interface Text {
  type: "text";
  text: string;
}
export interface Thinking {
  type: "thinking";
  thinking: string;
}
export interface Call {
  type: "call";
  name: string;
  arguments: Record<string, unknown>;
}
export interface Failure {
  type: "failure";
  status: number;
  message: string;
}
/** A string stands for a text. */
export type Part = string | Text | Thinking | Call;
export interface Reply {
  content: Part | Part[];
  /** The reported size of the conversation; decides when pi compacts it. */
  inputTokens?: number;
  outputTokens?: number;
  /** By default it follows from the content. */
  stop?: "stop" | "toolUse" | "length";
}
export type Answer = Part | Part[] | Reply | Failure;

export function say(text: string): Text;
export function think(thinking: string): Thinking;
/** The model calls a tool. */
export function call(name: string, args?: Record<string, unknown>): Call;
/** The provider responds with an HTTP error. pi repeats the request after 429 and from 500 on. */
export function fail(status: number, message: string): Failure;

/** A request to the model. */
export interface ModelRequest {
  /** The number of the request, from 1. */
  number: number;
  system: string;
  messages: { role: string; text: string }[];
  /** The text of the newest message: a prompt or results of tools. */
  last: string;
  /** The names of the tools that it may call. */
  tools: string[];
  headers: Record<string, string>;
  /** The request in the format of Anthropic's API. */
  body: Record<string, unknown>;
}
export type ModelAnswering = (request: ModelRequest) => Answer | Promise<Answer>;

// ---- A pi under test ----

/** Content by path: text, or a value to write as JSON. */
export type Files = Record<string, string | object>;

export interface StartOptions {
  /**
   * Paths relative to the test; by default `x.ts` next to `x.test.ts`, or the extension's folder
   * around it.
   */
  extensions?: string[];
  /** Responses in order, or a function that returns each. The run has to use all of them, and no more. */
  model?: (Answer | ModelAnswering)[] | ModelAnswering;
  /** Files of the project. */
  files?: Files;
  /** Files of the agent folder. */
  agentFiles?: Files;
  settings?: Record<string, unknown>;
  /** Variables of the environment; except for a few such as `PATH` no others are set. */
  env?: Record<string, string>;
  /** Command-line arguments. */
  args?: string[];
  /** The context window of the model, in tokens (200000). */
  contextWindow?: number;
  /** Errors of the extension that the test expects, and that have to occur. */
  expectErrors?: (string | RegExp)[];
}

/** An event of the RPC protocol. */
// deno-lint-ignore no-explicit-any
export type RpcEvent = { type: string } & Record<string, any>;

export interface ToolRun {
  name: string;
  args: Record<string, unknown>;
  /** The text that the model gets. */
  text: string;
  content: unknown[];
  details: unknown;
  isError: boolean;
  /** The texts of the partial results. */
  updates: string[];
}

/** The outcome of a prompt or a command. */
export interface Run {
  readonly events: RpcEvent[];
  /** The last text of the model. */
  readonly text: string;
  /** The error of the last response. */
  readonly error: string | undefined;
  readonly stopReason: string | undefined;
  /** Messages of extensions. */
  readonly messages: { customType: string; text: string; details: unknown; display: boolean }[];
  readonly tools: ToolRun[];
  transcript(): string;
}

export type DialogMethod = "select" | "confirm" | "input" | "editor";
export interface Dialog {
  method: DialogMethod;
  title: string;
  message?: string;
  options?: string[];
  placeholder?: string;
  prefill?: string;
  /** Timeout in milliseconds. */
  timeout?: number;
  /** `null`: cancelled; `undefined`: not answered. */
  answer?: string | boolean | null;
}
/** The kind of dialog, or its title or message. */
export type WhichDialog = DialogMethod | RegExp | { method?: DialogMethod; title?: string | RegExp };
export type DialogAnswer = string | boolean | null;
export type DialogAnswering = DialogAnswer | ((dialog: Dialog) => DialogAnswer | Promise<DialogAnswer>);

export interface TestUi {
  readonly dialogs: Dialog[];
  readonly notifications: { message: string; type: string }[];
  /** The current texts, by key. */
  readonly statuses: Record<string, string>;
  readonly widgets: Record<string, string[]>;
  readonly title: string | undefined;
  readonly editorText: string;
  /**
   * Answers the next such dialog, which has to open; `null` cancels it. Dialogs without an answer
   * fail the test.
   */
  answer(which: WhichDialog, answer: DialogAnswering): void;
  /** Answers all such dialogs. */
  always(which: WhichDialog, answer: DialogAnswering): void;
  /** Leaves the next such dialog open: its timeout or signal ends it. */
  ignore(which: WhichDialog): void;
}

export interface TestPi {
  /** Resolves when no work is left. */
  prompt(text: string, options?: { images?: object[] }): Promise<Run>;
  /** Runs a command: `/name args` */
  command(text: string): Promise<Run>;
  steer(message: string): Promise<void>;
  followUp(message: string): Promise<void>;
  abort(): Promise<void>;
  /** Resolves when no work is left and the extension has got every event. */
  settled(): Promise<Run>;
  /** Waits for such an event; one that has already arrived counts. */
  waitFor(type: string, fits?: (event: RpcEvent) => boolean): Promise<RpcEvent>;
  /** Sends a command of the RPC protocol; returns its data. */
  rpc<T = void>(type: string, members?: object): Promise<T>;
  reload(): Promise<void>;
  /** Ends pi and starts it again, with the same session unless other arguments are given. */
  restart(args?: string[]): Promise<void>;
  expectError(pattern: string | RegExp): void;

  readonly ui: TestUi;
  readonly events: RpcEvent[];
  /** Errors of extensions, expected ones included. */
  readonly errors: string[];
  readonly requests: ModelRequest[];
  /** Adds responses of the model. */
  answer(...answers: (Answer | ModelAnswering)[]): void;
  /** The entries of the session file. */
  entries<T = SessionEntry>(): Promise<T[]>;
  readonly project: string;
  readonly agentDir: string;
  readonly home: string;
  /** Files of the project. */
  read(name: string): string;
  write(name: string, content: string | object): string;
  exists(name: string): boolean;
  readonly stderr: string;
  /** The events as text, equal in every run: without ids, times and temporary folders. */
  transcript(): string;
}

export interface PrintResult {
  text: string;
  stderr: string;
  code: number | null;
  requests: ModelRequest[];
}

export interface TestContext {
  readonly name: string;
  /** Starts a pi with a user, a project and a model of its own; it ends with the test. */
  start(options?: StartOptions): Promise<TestPi>;
  /** Runs `pi -p`, without a user for dialogs. */
  print(prompt: string, options?: Omit<StartOptions, "expectErrors"> & { stdin?: string }): Promise<PrintResult>;
  /** Registers a function to call when the test is over. */
  after(work: () => unknown): void;
}

type Body = (t: TestContext) => unknown;
interface Define {
  (name: string, body: Body): void;
  /** `timeout` in milliseconds (30000) */
  (name: string, options: { timeout?: number }, body: Body): void;
}
export const test: Define & { skip: Define; only: Define };

// Without this line every declaration would be exported.
export {};
