// The end of a set of extensions: `exit` on `process`, where what is written for Node
// cleans up when it can wait for nothing any more.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
import { listenerOf } from "ext:js_runtime/bridge/listeners.ts";
import { enter, plainText } from "ext:js_runtime/bridge/registry.ts";
import { describe } from "ext:js_runtime/host.ts";
import { JSON } from "ext:js_runtime/safe.ts";

/** By a listener's `process.exit()`, as it ends the listener in Node. */
const EXITS = { __proto__: null };

/** Gives what listeners threw; the others run all the same. */
export function exit(json: string): string | undefined {
  // Nobody can listen.
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
    process.reallyExit = () => {
      throw EXITS;
    };
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
    process.emit("exit", JSON.parse(json));
  });
  return thrown.length === 0 ? undefined : JSON.stringify(thrown);
}
