// Attributes listeners on `process` to extensions. Listeners of the end run when no extension does.
// Listeners of errors get all errors, as in Node, but do not handle errors of other extensions.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { op_listen_to_exit_signals } from "ext:core/ops";
import { authorOf } from "ext:js_runtime/bridge/registry.ts";
import { isOtherIsolate } from "ext:js_runtime/node/uncaught.ts";

const ERRORS = ["uncaughtException", "unhandledRejection"];

/** Signals that end pi, which emits them itself (`bridge/exit.ts`). */
const EXIT_SIGNALS = ["SIGTERM", "SIGHUP", "SIGINT"];

const authors: WeakMap<object, number> = new primordials.SafeWeakMap();
let capturer: number | undefined;

function isEmittedByProgram(event: unknown): boolean {
  return !isOtherIsolate && (event === EXIT_SIGNALS[0] || event === EXIT_SIGNALS[1] || event === EXIT_SIGNALS[2]);
}

/** Whether `event` needs no listener of the system (`snapshot/corrections`). */
internals.isEmittedByProgram = (event: unknown): boolean => {
  op_listen_to_exit_signals();
  return isEmittedByProgram(event);
};

/** Called when a listener is added to `process` (`snapshot/corrections`). */
internals.listens = (event: unknown, listener: unknown): void => {
  if (event !== "exit" && event !== ERRORS[0] && event !== ERRORS[1] && !isEmittedByProgram(event)) return;
  const author = authorOf(core.getAsyncContext());
  if (author !== undefined && typeof listener === "function") authors.set(listener, author);
};

/** Called by `setUncaughtExceptionCaptureCallback`. */
internals.captures = (): void => {
  capturer = authorOf(core.getAsyncContext());
};

/** The extension that added the listener. */
export function listenerOf(listener: object): number | undefined {
  return authors.get(listener);
}

function hasErrorListener(author: number): boolean {
  const process = core.createLazyLoader("node:process")().default;
  if (process.hasUncaughtExceptionCaptureCallback() && capturer === author) return true;
  for (let event = 0; event < ERRORS.length; event += 1) {
    const listeners = process.rawListeners(ERRORS[event]);
    for (let index = 0; index < listeners.length; index += 1) {
      if (authors.get(listeners[index]) === author) return true;
    }
  }
  return false;
}

/** Whether only listeners of other extensions have handled the error. Runs in the context of the error. */
internals.isOthers = (): boolean => {
  const author = authorOf(core.getAsyncContext());
  if (author === undefined || !internals.__nodeProcessBootstrapped) return false;
  try {
    return !hasErrorListener(author);
  } catch {
    return true; // Somebody has changed `process`.
  }
};
