// Runs callbacks of the system in the async context in which they were registered, as Node does.
// `AsyncLocalStorage` keeps its values in it, and attribution its mark of the extension.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";

const { getAsyncContext, setAsyncContext } = core;
const { ReflectApply } = primordials;

/** Binds `fn` to the current async context. */
internals.inContext = <T extends unknown[], U>(fn: (...args: T) => U) => {
  const context = getAsyncContext();
  return function (this: unknown, ...args: T): U {
    const before = getAsyncContext();
    setAsyncContext(context);
    try {
      return ReflectApply(fn, this, args);
    } finally {
      setAsyncContext(before);
    }
  };
};
