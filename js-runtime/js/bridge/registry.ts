// The functions that extensions registered, by number. The program knows the numbers and decides
// what is called when; it never gets a function.
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { op_enter_extension, op_opened, op_function_position, op_record_timer_extension } from "ext:core/ops";
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
/** Reserved for the terminal, which will draw them. */
export const renderers = new SafeMap<number, unknown>();
export const shortcuts = new SafeMap<number, unknown>();
/** Operations from results of `user_bash` handlers, until the command has run. */
export const operations = new SafeMap<number, { extension: number; by: BashOperations }>();

let last = 0;

/** Adds `value` under a new number. */
export function addNumbered<T>(map: Map<number, T>, value: T): number {
  last += 1;
  map.set(last, value);
  return last;
}

export function find<T>(map: Map<number, T>, id: number, what: string): T {
  const found = map.get(id);
  if (!found) throw new Error(`There is no ${what} ${id} in this runtime`);
  return found;
}

/** Marks by extension, then by purpose of the call. */
const marks = new SafeMap<number, Map<string, object>>();

/** The async context of an extension's code; `ext/src/bridge/attribution.rs` reads it. */
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
const STACK_FRAMES = 10;

/**
 * Restores `Error.stackTraceLimit` if an extension set it to 0: errors of other extensions keep
 * their frames.
 */
function restoreFrames(): void {
  let limit: unknown;
  try {
    limit = NativeError.stackTraceLimit;
  } catch {
    // The value is no number above 0.
  }
  if (typeof limit === "number" && limit > 0) return;
  const value = { __proto__: null, value: STACK_FRAMES, writable: true, enumerable: true, configurable: true };
  ReflectDefineProperty(NativeError, "stackTraceLimit", value);
}

/**
 * Marks the extension whose code runs next, including its promises and timers: a stop names this
 * extension. The mark ends with the call of the program. The deadline of a queued handler counts
 * from here.
 */
export function enter(extension: number, what: string, queued = false): void {
  const own = mark(extension, what);
  if (queued) queuedMark = own;
  restoreFrames();
  setAsyncContext(own);
  op_enter_extension(extension);
  hostSync("enter", { extension, what, queued });
}

/** Like `enter`, for a call that `onUncaught` watches. */
export function enterCall(extension: number, what: string, call: number): void {
  enter(extension, what);
  setAsyncContext({ __proto__: null, ...mark(extension, what), "pi.call": call });
}

/** Callbacks of calls, by number, that get uncaught errors of code started by the call. */
export const onUncaught = new SafeMap<number, (error: unknown) => void>();

// Runs in the context of the code that threw.
internals.uncaught = (error: unknown): void => {
  const call = (getAsyncContext() as Record<string, unknown> | undefined)?.["pi.call"];
  if (typeof call === "number") onUncaught.get(call)?.(error);
};

/** The mark of the queued handler that runs. */
let queuedMark: object | undefined;

/** Called when the queue continues with other code. */
export function leaveQueued(): void {
  queuedMark = undefined;
}

/** Whether the running code is that of a queued handler, for which the agent waits. */
export function isQueued(): boolean {
  return queuedMark !== undefined && getAsyncContext() === queuedMark;
}

/** The purpose of the running code: an event, `command`, `tool:<name>`. */
export function runningPurpose(): string | undefined {
  return (getAsyncContext() as Record<string, string> | undefined)?.["pi.what"];
}

/** The extension whose code runs; a listener counts as its own extension's, not its caller's. */
export function authorOf(context: unknown): number | undefined {
  const extension = (context as Record<string, unknown> | undefined)?.["pi.author"];
  return typeof extension === "number" ? extension : undefined;
}

/** Attributes `fn` to the extension that created it, whichever extension calls it. */
export function attributed<T extends unknown[], U>(what: string, fn: (...args: T) => U) {
  const owner = authorOf(getAsyncContext());
  if (owner === undefined) return fn;
  return (...args: T): U => {
    const before = getAsyncContext();
    const caller = authorOf(before);
    if (caller === owner) return fn(...args);
    // Values of `AsyncLocalStorage` stay in it.
    const context = { __proto__: null, ...(before as object), "pi.author": owner, "pi.what": what };
    setAsyncContext(context);
    op_enter_extension(owner);
    try {
      return fn(...args);
    } finally {
      setAsyncContext(before);
      if (caller !== undefined) op_enter_extension(caller);
    }
  };
}

/** Called when a timer starts. */
internals.timerStarted = (context: unknown): void => {
  const author = authorOf(context);
  if (author !== undefined) restoreFrames();
  op_record_timer_extension(author ?? -1);
};

/** Attributes a descriptor that Node's API has opened. */
internals.opened = (descriptor: number): number => {
  op_opened(descriptor, authorOf(getAsyncContext()) ?? -1);
  return descriptor;
};

/**
 * Called before native code that takes long and cannot be interrupted (`execSync`): if it exceeds
 * its limit, the extension that called it cannot be determined then.
 */
internals.beforeNative = () => {
  const context = getAsyncContext();
  const extension = authorOf(context);
  if (extension === undefined) return;
  op_enter_extension(extension);
  hostSync("enter", { extension, what: context["pi.what"], queued: false });
};

/** The text of the author: the message without the class. */
export function plainText(error: unknown): string {
  try {
    return error instanceof Error ? String(error.message) : textOf(error);
  } catch {
    return describe(error);
  }
}

/** The source position where a function begins, as the frame of a stack; empty if it is in no file. */
export function frameOf(fn: unknown): string {
  if (typeof fn !== "function") return "";
  const position = op_function_position(fn) as string;
  return position && `    at ${position}`;
}

export function report(extension: number, event: string, error: unknown): void {
  hostSync("report", { extension, event, error: describe(error), plain: plainText(error) });
}

/** Warns the author of a likely mistake, although everything works. */
export function warn(extension: number, event: string, warning: unknown): void {
  hostSync("report", { extension, event, error: describe(warning), plain: plainText(warning), warning: true });
}
