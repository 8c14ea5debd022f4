// The two functions with which JavaScript calls the program. Both carry JSON text, so that the
// program may be in another process.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { op_host_call, op_host_call_sync } from "ext:core/ops";
import { JSON, SafeMap } from "ext:js_runtime/primordials.ts";

// Saved because extensions may replace it.
const { captureStackTrace } = Error;

/** Throws an error that names the method for a value that is not JSON: V8's message does not. */
function toJson(method: string, args: unknown): string {
  try {
    return JSON.stringify(args ?? null);
  } catch (error) {
    const why = error instanceof TypeError ? `${error.message}` : "";
    if (!UNSERIALIZABLE.some((start) => why.startsWith(start))) throw error;
    throw new TypeError(`${method}: the arguments cannot be written as JSON: ${why}`);
  }
}

/** Beginnings of V8's messages. Any other exception comes from a `toJSON` of the extension. */
const UNSERIALIZABLE = ["Converting circular structure", "Do not know how to serialize"];

/** Calls a method of the program that responds at once. */
export function hostSync<T = unknown>(method: string, args?: unknown): T {
  const response: string = op_host_call_sync(method, toJson(method, args));
  return (response === "" ? undefined : JSON.parse(response)) as T;
}

/** The last response, by method. */
const responses = new SafeMap<string, { text: string; value: unknown }>();

/** Returns the same object while the response is unchanged, so that callers can compare it. */
export function hostSyncCached<T = unknown>(method: string): T {
  const text: string = op_host_call_sync(method, "null");
  const known = responses.get(method);
  if (known?.text === text) return known.value as T;
  const value = text === "" ? undefined : JSON.parse(text);
  responses.set(method, { text, value });
  return value as T;
}

/** Calls a method of the program that takes time. The call starts before this returns. */
export async function host<T = unknown>(method: string, args?: unknown): Promise<T> {
  const asking = op_host_call(method, toJson(method, args));
  // When the call fails, the caller may not be on the stack any more.
  const caller: { stack?: string } = {};
  captureStackTrace(caller, host);
  let response: string;
  try {
    response = await asking;
  } catch (error) {
    throw withCallerFrames(error, caller.stack);
  }
  return (response === "" ? undefined : JSON.parse(response)) as T;
}

/** Adds the stack frames of the caller. */
function withCallerFrames(error: unknown, stack = ""): unknown {
  const frames = primordials.StringPrototypeIndexOf(stack, "\n    at ");
  if (!(error instanceof Error) || frames < 0) return error;
  const value = `${error.name}: ${error.message}${primordials.StringPrototypeSlice(stack, frames)}`;
  primordials.ObjectDefineProperty(error, "stack", { __proto__: null, value, configurable: true, writable: true });
  return error;
}

/** An object without a text of its own is shown with its members. */
export function textOf(value: unknown): string {
  const text = String(value);
  if (text !== "[object Object]") return text;
  return core.loadExtScript("ext:deno_web/01_console.js").inspect(value);
}

/** The stack as V8 writes it, even if a library has replaced that format. */
function stackOf(error: Error): unknown {
  const { Error } = primordials;
  const written = Error.prepareStackTrace;
  if (written === undefined) return error.stack;
  Error.prepareStackTrace = undefined;
  try {
    return error.stack;
  } finally {
    Error.prepareStackTrace = written;
  }
}

/** Fixes the stack in V8's format for later readers. */
export function writeStack(error: unknown): void {
  try {
    if (error instanceof Error) stackOf(error);
  } catch {
    // The thrown value may be anything.
  }
}

/** The message for the user about a thrown value, which may be anything. */
export function describe(error: unknown): string {
  try {
    if (error instanceof Error) return `${stackOf(error) ?? `${error.name}: ${error.message}`}`;
    return textOf(error);
  } catch {
    return "something was thrown that does not say what it is";
  }
}
