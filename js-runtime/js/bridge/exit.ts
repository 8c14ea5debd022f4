// The end of a set of extensions: on `process` the signal that ends pi, and `exit`, where what
// is written for Node cleans up when it can wait for nothing any more.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
import { listenerOf } from "ext:js_runtime/bridge/listeners.ts";
import { enter, plainText } from "ext:js_runtime/bridge/registry.ts";
import { describe } from "ext:js_runtime/bridge/host.ts";
import { JSON } from "ext:js_runtime/primordials.ts";

/** Thrown by `process.exit()`, which ends what runs, as in Node. */
const EXITS = new Error("process.exit() was called while pi ends");
EXITS.stack = `Error: ${EXITS.message}`;

/** The signal that ends pi; the first `process.exit()` after it sets the exit code. */
let signalled: string | undefined;
let exitCode: number | undefined;

// A later exception of this kind, in an async listener, is no error either.
internals.isExit = (error: unknown): boolean => error === EXITS;

type Guard = (run: () => void, extension?: number) => void;

/** Gives what listeners threw, and the code; the others run all the same. */
function listened(listen: (process: any, guard: Guard) => void): string | undefined {
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
    process._exiting = true;
    process.reallyExit = (code: number) => {
      if (signalled !== undefined) exitCode ??= code;
      throw EXITS;
    };
    listen(process, guard);
  });
  return thrown.length === 0 && exitCode === undefined ? undefined : JSON.stringify({ thrown, code: exitCode });
}

export function exit(json: string): string | undefined {
  return listened((process, guard) => {
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
    // Packages (signal-exit) put a function of theirs in its place.
    process.emit("exit", exitCode ?? JSON.parse(json));
  });
}

/** `[name, number]` ends pi. */
export function signal(json: string): string | undefined {
  return listened((process, guard) => {
    const [name, number] = JSON.parse(json);
    signalled = name;
    const listeners = process.rawListeners(name);
    // Packages (signal-exit) that see no listener but theirs would send the signal once more.
    process.on(name, () => {});
    for (let index = 0; index < listeners.length && exitCode === undefined; index += 1) {
      const author = listenerOf(listeners[index]);
      if (author !== undefined) enter(author, name);
      guard(() => primordials.ReflectApply(listeners[index], process, [name, number]), author);
    }
  });
}
