// Functions that the system calls: they run in the context in which they were given, as what
// `AsyncLocalStorage` keeps does in Node, and so with the mark of whose code it is.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";

const { getAsyncContext, setAsyncContext } = core;
const { ReflectApply } = primordials;

/** `fn` in the context that is the current one now. */
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
