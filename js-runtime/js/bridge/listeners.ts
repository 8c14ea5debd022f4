// Whose the listeners on `process` are. Those of the end run when no extension does; those of
// errors hear of all of them, as in Node, but for the errors of others they do not speak.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { op_hold_signals } from "ext:core/ops";
import { authorOf } from "ext:js_runtime/bridge/registry.ts";
import { isGuest } from "ext:js_runtime/node/uncaught.ts";

const ERRORS = ["uncaughtException", "unhandledRejection"];

/** The signals that end pi, which tells of them itself (`bridge/exit.ts`). */
const ENDINGS = ["SIGTERM", "SIGHUP", "SIGINT"];

const authors: WeakMap<object, number> = new primordials.SafeWeakMap();
let capturer: number | undefined;

function tellsOf(event: unknown): boolean {
  return !isGuest && (event === ENDINGS[0] || event === ENDINGS[1] || event === ENDINGS[2]);
}

/** Whether the system need not be listened to for `event` (`snapshot/corrections`). */
internals.tellsOf = (event: unknown): boolean => {
  op_hold_signals();
  return tellsOf(event);
};

/** Of a listener that is added to `process` (`snapshot/corrections`). */
internals.listens = (event: unknown, listener: unknown): void => {
  if (event !== "exit" && event !== ERRORS[0] && event !== ERRORS[1] && !tellsOf(event)) return;
  const author = authorOf(core.getAsyncContext());
  if (author !== undefined && typeof listener === "function") authors.set(listener, author);
};

/** Of `setUncaughtExceptionCaptureCallback`. */
internals.captures = (): void => {
  capturer = authorOf(core.getAsyncContext());
};

/** Whose listener it is. */
export function listenerOf(listener: object): number | undefined {
  return authors.get(listener);
}

function speaksFor(author: number): boolean {
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

/** Somebody has dealt with an error, in whose context this is. Whether only others have. */
internals.isOthers = (): boolean => {
  const author = authorOf(core.getAsyncContext());
  if (author === undefined || !internals.__nodeProcessBootstrapped) return false;
  try {
    return !speaksFor(author);
  } catch {
    return true; // Somebody has changed `process`.
  }
};
