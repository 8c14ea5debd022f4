// The functions that extensions registered, by number. The program knows the
// numbers and decides what is called when; it never sees a function.
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { op_begins, op_opened, op_place_of, op_ran } from "ext:core/ops";
import { describe, hostSync, textOf } from "ext:js_runtime/bridge/host.ts";
import { SafeMap } from "ext:js_runtime/primordials.ts";

import type { BashOperations } from "pi:pi-coding-agent/tools/execute.ts";

const { getAsyncContext, setAsyncContext } = core;

export type Handler = (event: Record<string, unknown>, ctx: unknown) => unknown;

export interface ToolDefinition {
  name: string;
  label?: string;
  description: string;
  parameters?: unknown;
  promptSnippet?: string;
  promptGuidelines?: string[];
  executionMode?: "sequential" | "parallel";
  defaultActive?: boolean;
  renderShell?: "default" | "self";
  prepareArguments?(args: unknown): unknown;
  execute(
    toolCallId: string,
    params: unknown,
    signal: AbortSignal | undefined,
    onUpdate: ((partial: unknown) => void) | undefined,
    ctx: unknown,
  ): unknown;
}

export interface Command {
  description?: string;
  handler(args: string, ctx: unknown): unknown;
  getArgumentCompletions?(prefix: string): unknown;
}

export const handlers = new SafeMap<number, Handler>();
export const tools = new SafeMap<number, ToolDefinition>();
export const commands = new SafeMap<number, Command>();
/** Kept for the terminal, which hosts them. */
export const renderers = new SafeMap<number, unknown>();
export const shortcuts = new SafeMap<number, unknown>();
/** What answers to `user_bash` brought, until the command has run. */
export const operations = new SafeMap<number, { extension: number; by: BashOperations }>();

let last = 0;

/** Remembers `value` under a new number. */
export function keep<T>(map: Map<number, T>, value: T): number {
  last += 1;
  map.set(last, value);
  return last;
}

export function find<T>(map: Map<number, T>, id: number, what: string): T {
  const found = map.get(id);
  if (!found) throw new Error(`There is no ${what} ${id} in this runtime`);
  return found;
}

/** By extension, then by what it is called for. */
const marks = new SafeMap<number, Map<string, object>>();

/** The async context of an extension's code; `ext/src/author.rs` reads it. */
function mark(extension: number, what: string): object {
  let own = marks.get(extension);
  if (!own) marks.set(extension, (own = new SafeMap()));
  let found = own.get(what);
  if (!found) {
    found = { __proto__: null, "pi.author": extension, "pi.what": what } as object;
    own.set(what, found);
  }
  return found;
}

const NativeError = Error;
const { ReflectDefineProperty } = primordials;
const FRAMES = 10;

/** Who leaves errors without frames leaves its own so: what others throw says where. */
function restoreFrames(): void {
  let limit: unknown;
  try {
    limit = NativeError.stackTraceLimit;
  } catch {
    // It is none.
  }
  if (typeof limit === "number" && limit > 0) return;
  const value = { __proto__: null, value: FRAMES, writable: true, enumerable: true, configurable: true };
  ReflectDefineProperty(NativeError, "stackTraceLimit", value);
}

/**
 * Marks whose code runs next, and what comes of it in promises and timers: a stop
 * names this extension. The mark ends with the call of the program. The time that a
 * queued handler may take counts from here.
 */
export function enter(extension: number, what: string, queued = false): void {
  const own = mark(extension, what);
  if (queued) queuedMark = own;
  restoreFrames();
  setAsyncContext(own);
  op_begins(extension);
  hostSync("enter", { extension, what, queued });
}

/** The same, for a call that `onUncaught` watches over. */
export function enterCall(extension: number, what: string, call: number): void {
  enter(extension, what);
  setAsyncContext({ __proto__: null, ...mark(extension, what), "pi.call": call });
}

/** Whoever waits for a call hears that something of it was caught by nobody. */
export const onUncaught = new SafeMap<number, (error: unknown) => void>();

// In the context of what threw.
internals.uncaught = (error: unknown): void => {
  const call = (getAsyncContext() as Record<string, unknown> | undefined)?.["pi.call"];
  if (typeof call === "number") onUncaught.get(call)?.(error);
};

/** Of the queued handler that runs. */
let queuedMark: object | undefined;

/** The queue goes on. */
export function leaveQueued(): void {
  queuedMark = undefined;
}

/** Whether the code that runs is the queued handler's, which the agent waits for. */
export function isQueued(): boolean {
  return queuedMark !== undefined && getAsyncContext() === queuedMark;
}

/** What the code that runs was called for: an event, `command`, `tool:<name>`. */
export function running(): string | undefined {
  return (getAsyncContext() as Record<string, string> | undefined)?.["pi.what"];
}

/** Whose code runs; what a listener does is not its caller's. */
export function authorOf(context: unknown): number | undefined {
  const extension = (context as Record<string, unknown> | undefined)?.["pi.author"];
  return typeof extension === "number" ? extension : undefined;
}

/** `fn` as part of whoever makes it, whoever calls it. */
export function owned<T extends unknown[], U>(what: string, fn: (...args: T) => U) {
  const owner = authorOf(getAsyncContext());
  if (owner === undefined) return fn;
  return (...args: T): U => {
    const before = getAsyncContext();
    const caller = authorOf(before);
    if (caller === owner) return fn(...args);
    // What `AsyncLocalStorage` keeps in it stays.
    const context = { __proto__: null, ...(before as object), "pi.author": owner, "pi.what": what };
    setAsyncContext(context);
    op_begins(owner);
    try {
      return fn(...args);
    } finally {
      setAsyncContext(before);
      if (caller !== undefined) op_begins(caller);
    }
  };
}

/** Of a timer that begins. */
internals.ran = (context: unknown): void => {
  const author = authorOf(context);
  if (author !== undefined) restoreFrames();
  op_ran(author ?? -1);
};

/** A file of Node's API. */
internals.opened = (descriptor: number): number => {
  op_opened(descriptor, authorOf(getAsyncContext()) ?? -1);
  return descriptor;
};

/**
 * Before native code that takes its time and cannot be interrupted (`execSync`): if it
 * takes too long, nobody can look whose code called it.
 */
internals.beforeNative = () => {
  const context = getAsyncContext();
  const extension = authorOf(context);
  if (extension === undefined) return;
  op_begins(extension);
  hostSync("enter", { extension, what: context["pi.what"], queued: false });
};

/** What its author wrote: the message without the class. */
export function plainText(error: unknown): string {
  try {
    return error instanceof Error ? String(error.message) : textOf(error);
  } catch {
    return describe(error);
  }
}

/** Where a function begins, as the frame of an error's stack; nothing if it is in no file. */
export function frameOf(fn: unknown): string {
  if (typeof fn !== "function") return "";
  const place = op_place_of(fn) as string;
  return place && `    at ${place}`;
}

export function report(extension: number, event: string, error: unknown): void {
  hostSync("report", { extension, event, error: describe(error), plain: plainText(error) });
}

/** Tells the author of something to look at, although everything works. */
export function warn(extension: number, event: string, warning: unknown): void {
  hostSync("report", { extension, event, error: describe(warning), plain: plainText(warning), warning: true });
}
