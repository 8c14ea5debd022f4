// Emits the end of a generation on `process`: the signal that ends pi, and `exit`, where code
// written for Node cleans up without waiting for anything.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
import { listenerOf } from "ext:js_runtime/bridge/listeners.ts";
import { enter, plainText } from "ext:js_runtime/bridge/registry.ts";
import { describe } from "ext:js_runtime/bridge/host.ts";
import { JSON } from "ext:js_runtime/primordials.ts";

/** Thrown by `process.exit()` to end the running code, as in Node. */
const EXITS = new Error("process.exit() was called while pi ends");
EXITS.stack = `Error: ${EXITS.message}`;

/** The signal that ends pi; the first `process.exit()` after it sets the exit code. */
let signalled: string | undefined;
let exitCode: number | undefined;

/** Undoes what the emission of `exit` changed on `process`. */
let undo: (() => void) | undefined;

// A later exception of this kind, in an async listener, is no error either.
internals.isExit = (error: unknown): boolean => error === EXITS;

type Guard = (run: () => void, extension?: number) => void;

/** Calls listeners, all of them even if one throws. Returns the exceptions and the exit code. */
function callListeners(listen: (process: any, guard: Guard) => void): string | undefined {
  // Without `process` there are no listeners.
  if (!internals.__nodeProcessBootstrapped) return undefined;
  const thrown: { extension?: number; error: string; plain: string }[] = [];
  const guard = (run: () => void, extension?: number) => {
    try {
      run();
    } catch (error) {
      if (error === EXITS) return;
      thrown[thrown.length] = { extension, error: describe(error), plain: plainText(error) };
    }
  };
  guard(() => {
    const process = core.createLazyLoader("node:process")().default;
    const { reallyExit } = process;
    undo ??= () => {
      process._exiting = false;
      process.reallyExit = reallyExit;
    };
    process._exiting = true;
    process.reallyExit = (code: number) => {
      if (signalled !== undefined) exitCode ??= code;
      throw EXITS;
    };
    listen(process, guard);
  });
  return thrown.length === 0 && exitCode === undefined ? undefined : JSON.stringify({ thrown, code: exitCode });
}

/** Restores `process` after `exit`, because a command of a replaced generation goes on. */
export function resume(): void {
  undo?.();
  undo = undefined;
}

export function exit(json: string): string | undefined {
  return callListeners((process, guard) => {
    const listeners = process.rawListeners("exit");
    process.removeAllListeners("exit");
    for (let index = 0; index < listeners.length; index += 1) {
      const listener = listeners[index];
      const author = listenerOf(listener);
      process.on("exit", function (this: unknown, code: number) {
        if (author !== undefined) enter(author, "exit");
        guard(() => primordials.ReflectApply(listener, this, [code]), author);
      });
    }
    // Packages (signal-exit) replace this function.
    process.emit("exit", exitCode ?? JSON.parse(json));
  });
}

/** Emits the signal that ends pi; the argument is `[name, number]`. */
export function signal(json: string): string | undefined {
  return callListeners((process, guard) => {
    const [name, number] = JSON.parse(json);
    signalled = name;
    const listeners = process.rawListeners(name);
    // Packages (signal-exit) send the signal again if they find no listener but their own.
    process.on(name, () => {});
    for (let index = 0; index < listeners.length && exitCode === undefined; index += 1) {
      const author = listenerOf(listeners[index]);
      if (author !== undefined) enter(author, name);
      guard(() => primordials.ReflectApply(listeners[index], process, [name, number]), author);
    }
  });
}
