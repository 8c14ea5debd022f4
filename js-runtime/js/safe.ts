// What the bridge works with, taken before any extension runs: one that patches
// `JSON.parse`, `Map.prototype` or `Array.prototype` breaks its own code and other
// extensions' at most.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, primordials } from "ext:core/mod.js";

export const JSON: Pick<typeof globalThis.JSON, "parse" | "stringify"> = {
  parse: primordials.JSONParse,
  stringify: primordials.JSONStringify,
};

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
