// Built-in functions as they were before any extension ran. The bridge uses these, so that an
// extension that patches `JSON.parse`, `Map.prototype` or `Array.prototype` breaks only its own
// code and at most that of other extensions.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, primordials } from "ext:core/mod.js";

/** Matches escapes of surrogates, and escaped backslashes, which may precede a "ud". */
const HALVES = new primordials.SafeRegExp(/\\(?:\\|ud[89a-f][0-9a-f]{2})/g);

/** Replaces lone surrogates, which `slice` may leave, by U+FFFD: only JavaScript accepts them in JSON. */
function stringify(value: unknown): string {
  const text = primordials.JSONStringify(value);
  if (text === undefined || !primordials.StringPrototypeIncludes(text, "\\ud")) return text;
  const replaceSurrogate = (found: string) => (found === "\\\\" ? found : "\\ufffd");
  return primordials.StringPrototypeReplace(text, HALVES, replaceSurrogate);
}

export const JSON: { parse: typeof globalThis.JSON.parse; stringify: typeof stringify } = {
  parse: primordials.JSONParse,
  stringify,
};

/** Converts a value to text with JavaScript's own rules. */
export const text = (value: unknown): string => `${value}`;

export function textOrNone(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : text(value);
}

export function texts(values: readonly unknown[]): string[] {
  const all: string[] = [];
  for (let index = 0; index < values.length; index += 1) all[index] = text(values[index]);
  return all;
}

/** Returns the thrown value as an `Error`. */
export function asError(thrown: unknown): Error {
  return thrown instanceof primordials.Error ? (thrown as Error) : new primordials.Error(text(thrown));
}

/** These collections have their methods as own properties. They must not be passed to extensions. */
export const SafeMap: MapConstructor = primordials.SafeMap;
export const SafeSet: SetConstructor = primordials.SafeSet;

export const Promise: PromiseConstructor = primordials.Promise;
export const Set: SetConstructor = primordials.Set;
export const { isArray }: Pick<ArrayConstructor, "isArray"> = { isArray: primordials.ArrayIsArray };
export const Object: Pick<ObjectConstructor, "assign" | "defineProperty" | "keys"> = {
  assign: primordials.ObjectAssign,
  defineProperty: primordials.ObjectDefineProperty,
  keys: primordials.ObjectKeys,
};

const web = {
  abort: core.loadExtScript("ext:deno_web/03_abort_signal.js"),
  performance: core.loadExtScript("ext:deno_web/15_performance.js"),
  timers: core.loadExtScript("ext:deno_web/02_timers.js"),
};

export const AbortController: typeof globalThis.AbortController = web.abort.AbortController;

export const abort: (controller: AbortController) => void = primordials.uncurryThis(
  web.abort.AbortController.prototype.abort,
);

const performanceNow = primordials.uncurryThis(web.performance.performance.now);

/** Milliseconds of a monotonic clock. */
export function now(): number {
  return performanceNow(web.performance.performance);
}

export const setTimeout: typeof globalThis.setTimeout = web.timers.setTimeout;
export const clearTimeout: typeof globalThis.clearTimeout = web.timers.clearTimeout;

/** Like `Promise.race`, which would call `then` of the promises. `await` of a promise does not. */
export function race<T>(promise: Promise<T>, other: Promise<void>): Promise<T | void> {
  return new Promise((resolve, reject) => {
    const settle = async (promise: Promise<T | void>) => {
      try {
        resolve(await promise);
      } catch (error) {
        reject(error);
      }
    };
    settle(promise);
    settle(other);
  });
}

/** Copies the members of `source` to `target`, getters as getters. */
export function extend<T extends object, U extends object>(target: T, source: U): T & U {
  const keys = primordials.ReflectOwnKeys(source);
  for (let index = 0; index < keys.length; index += 1) {
    const member = primordials.ReflectGetOwnPropertyDescriptor(source, keys[index]);
    // Without this the descriptor would inherit members of `Object.prototype`.
    primordials.ObjectSetPrototypeOf(member, null);
    primordials.ObjectDefineProperty(target, keys[index], member);
  }
  return target as T & U;
}

/** Whether a function can only be called with `new`. */
export function isClass(fn: object): boolean {
  // The `prototype` of a plain function is writable, that of a class is not.
  return primordials.ObjectGetOwnPropertyDescriptor(fn, "prototype")?.writable === false;
}

const FRAME = "\n    at ";

/**
 * Whether JavaScript threw the error for a mistake in the author's code, who then needs to know the
 * position. Functions of the runtime throw such errors, too, for their arguments or for a failed
 * request (`fetch failed`); their callers handle those.
 */
export function isAuthorError(thrown: unknown): boolean {
  if (!(thrown instanceof primordials.TypeError) && !(thrown instanceof primordials.ReferenceError)) return false;
  let stack: string;
  try {
    stack = text((thrown as Error).stack);
  } catch {
    return false;
  }
  const first = primordials.StringPrototypeIndexOf(stack, FRAME);
  if (first < 0) return false;
  const next = primordials.StringPrototypeIndexOf(stack, FRAME, first + FRAME.length);
  const frame = primordials.StringPrototypeSlice(stack, first, next < 0 ? undefined : next);
  return !primordials.StringPrototypeIncludes(frame, "ext:") && !primordials.StringPrototypeIncludes(frame, "node:");
}
