// `@mariozechner/pi-coding-agent/test`: for the tests that `pi test` runs.
import type { SessionEntry } from "./session.js";

// ---- What the model says ----

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
/** A string is a text. */
export type Part = string | Text | Thinking | Call;
export interface Reply {
  content: Part | Part[];
  /** What the conversation is said to have had; decides when pi compacts it. */
  inputTokens?: number;
  outputTokens?: number;
  /** Follows from the content without it. */
  stop?: "stop" | "toolUse" | "length";
}
export type Answer = Part | Part[] | Reply | Failure;

export function say(text: string): Text;
export function think(thinking: string): Thinking;
/** The model calls a tool. */
export function call(name: string, args?: Record<string, unknown>): Call;
/** The provider answers with an HTTP error. pi asks again after 429 and from 500 on. */
export function fail(status: number, message: string): Failure;

/** What the model was asked. */
export interface ModelRequest {
  /** From 1. */
  number: number;
  system: string;
  messages: { role: string; text: string }[];
  /** The text of the newest message, be it a prompt or the results of tools. */
  last: string;
  /** The names of the tools that it may call. */
  tools: string[];
  headers: Record<string, string>;
  /** As it came, in the words of Anthropic's API. */
  body: Record<string, unknown>;
}
export type ModelAnswering = (request: ModelRequest) => Answer | Promise<Answer>;

// ---- A pi under test ----

/** By path: text, or what is written as JSON. */
export type Files = Record<string, string | object>;

export interface StartOptions {
  /** Relative to the test; without them `x.ts` beside `x.test.ts`, or the folder around it that is an extension. */
  extensions?: string[];
  /** In order, or a function for all. Every answer has to be asked for, and no more than there are. */
  model?: (Answer | ModelAnswering)[] | ModelAnswering;
  /** Of the project. */
  files?: Files;
  /** Of the agent folder. */
  agentFiles?: Files;
  settings?: Record<string, unknown>;
  /** Besides a few such as `PATH` nothing is taken over. */
  env?: Record<string, string>;
  /** Command-line arguments. */
  args?: string[];
  /** Of the model, in tokens (200000). */
  contextWindow?: number;
  /** Errors of the extension that do not fail the test, and have to come. */
  expectErrors?: (string | RegExp)[];
}

/** An event of the RPC protocol. */
// deno-lint-ignore no-explicit-any
export type RpcEvent = { type: string } & Record<string, any>;

export interface ToolRun {
  name: string;
  args: Record<string, unknown>;
  /** What the model reads. */
  text: string;
  content: unknown[];
  details: unknown;
  isError: boolean;
  /** The texts of the partial results. */
  updates: string[];
}

/** What came of a prompt or a command. */
export interface Run {
  readonly events: RpcEvent[];
  /** What the model said last. */
  readonly text: string;
  /** Why the last answer failed. */
  readonly error: string | undefined;
  readonly stopReason: string | undefined;
  /** Of extensions. */
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
  /** Milliseconds. */
  timeout?: number;
  /** `null`: cancelled; `undefined`: nobody answered. */
  answer?: string | boolean | null;
}
/** The kind of dialog, or what its title or message says. */
export type WhichDialog = DialogMethod | RegExp | { method?: DialogMethod; title?: string | RegExp };
export type DialogAnswer = string | boolean | null;
export type DialogAnswering = DialogAnswer | ((dialog: Dialog) => DialogAnswer | Promise<DialogAnswer>);

export interface TestUi {
  readonly dialogs: Dialog[];
  readonly notifications: { message: string; type: string }[];
  /** By key: what stands there now. */
  readonly statuses: Record<string, string>;
  readonly widgets: Record<string, string[]>;
  readonly title: string | undefined;
  readonly editorText: string;
  /** For the next such dialog, which has to come; `null` cancels it. Others fail the test. */
  answer(which: WhichDialog, answer: DialogAnswering): void;
  /** For all such dialogs. */
  always(which: WhichDialog, answer: DialogAnswering): void;
  /** Nobody answers the next such dialog: its timeout or signal ends it. */
  ignore(which: WhichDialog): void;
}

export interface TestPi {
  /** Resolves when nothing is left to do. */
  prompt(text: string, options?: { images?: object[] }): Promise<Run>;
  /** `/name args` */
  command(text: string): Promise<Run>;
  steer(message: string): Promise<void>;
  followUp(message: string): Promise<void>;
  abort(): Promise<void>;
  /** Resolves when nothing is left to do and the extension has heard of everything. */
  settled(): Promise<Run>;
  /** The first such event, also of those that have come already. */
  waitFor(type: string, fits?: (event: RpcEvent) => boolean): Promise<RpcEvent>;
  /** A command of the RPC protocol; gives its data. */
  rpc<T = void>(type: string, members?: object): Promise<T>;
  reload(): Promise<void>;
  /** Ends pi and starts it again, with the same session unless other arguments are given. */
  restart(args?: string[]): Promise<void>;
  expectError(pattern: string | RegExp): void;

  readonly ui: TestUi;
  readonly events: RpcEvent[];
  /** Of extensions, expected ones included. */
  readonly errors: string[];
  readonly requests: ModelRequest[];
  /** More answers of the model. */
  answer(...answers: (Answer | ModelAnswering)[]): void;
  /** The session, as it is in its file. */
  entries<T = SessionEntry>(): Promise<T[]>;
  readonly project: string;
  readonly agentDir: string;
  readonly home: string;
  /** Files of the project. */
  read(name: string): string;
  write(name: string, content: string | object): string;
  exists(name: string): boolean;
  readonly stderr: string;
  /** What happened, the same in every run: without ids, times and temporary folders. */
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
  /** A pi with a user, a project and a model of its own; ends with the test. */
  start(options?: StartOptions): Promise<TestPi>;
  /** `pi -p`, where nobody can be asked. */
  print(prompt: string, options?: Omit<StartOptions, "expectErrors"> & { stdin?: string }): Promise<PrintResult>;
  /** Called when the test is over. */
  after(work: () => unknown): void;
}

type Body = (t: TestContext) => unknown;
interface Define {
  (name: string, body: Body): void;
  /** `timeout` in milliseconds (30000) */
  (name: string, options: { timeout?: number }, body: Body): void;
}
export const test: Define & { skip: Define; only: Define };

// Only what says so is exported.
export {};
