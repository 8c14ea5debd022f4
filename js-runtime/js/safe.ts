// What the bridge works with, taken before any extension runs: one that patches
// `JSON.parse`, `Map.prototype` or `Array.prototype` breaks its own code and other
// extensions' at most.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, primordials } from "ext:core/mod.js";

/**
 * Text of JavaScript may end in half a character (`slice` cuts an emoji). Only here is
 * that text, so what leaves has the sign for something unreadable in its place.
 */
function whole(json: string | undefined): string | undefined {
  const { StringPrototypeIncludes: includes, StringPrototypeIndexOf: indexOf, StringPrototypeSlice: slice } =
    primordials;
  if (json === undefined || !includes(json, "\\ud")) return json;
  let done = "";
  let from = 0;
  for (let at = indexOf(json, "\\"); at >= 0; at = indexOf(json, "\\", at + 2)) {
    // All else that is escaped so comes before U+D800.
    if (json[at + 1] !== "u" || json[at + 2] !== "d") continue;
    done += slice(json, from, at) + "\ufffd";
    from = at + 6;
  }
  return done + slice(json, from);
}

export const JSON: { parse(json: string): any; stringify(value: unknown): string } = {
  parse: primordials.JSONParse,
  stringify: (value) => whole(primordials.JSONStringify(value)) as string,
};

/** As text is taken everywhere in JavaScript. */
export const text = (value: unknown): string => `${value}`;

export function textOrNone(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : text(value);
}

export function texts(values: readonly unknown[]): string[] {
  const all: string[] = [];
  for (let index = 0; index < values.length; index += 1) all[index] = text(values[index]);
  return all;
}

/** What `throw` should have been given. */
export function asError(thrown: unknown): Error {
  return thrown instanceof primordials.Error ? (thrown as Error) : new primordials.Error(text(thrown));
}

/** Have their methods on themselves. Not for what extensions are given. */
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

/** Milliseconds. */
export function now(): number {
  return performanceNow(web.performance.performance);
}

export const setTimeout: typeof globalThis.setTimeout = web.timers.setTimeout;

/** `Promise.race`, which calls `then`. `await` of a promise does not. */
export function race<T>(one: Promise<T>, other: Promise<void>): Promise<T | void> {
  return new Promise((resolve, reject) => {
    const settle = async (promise: Promise<T | void>) => {
      try {
        resolve(await promise);
      } catch (error) {
        reject(error);
      }
    };
    settle(one);
    settle(other);
  });
}

/** Gives `target` the members of `source`, getters as getters. */
export function extend<T extends object, U extends object>(target: T, source: U): T & U {
  const keys = primordials.ReflectOwnKeys(source);
  for (let index = 0; index < keys.length; index += 1) {
    const member = primordials.ReflectGetOwnPropertyDescriptor(source, keys[index]);
    // Else it has what `Object.prototype` has, too.
    primordials.ObjectSetPrototypeOf(member, null);
    primordials.ObjectDefineProperty(target, keys[index], member);
  }
  return target as T & U;
}
