// Closes what extensions hold when another generation takes over while one of their commands goes
// on: timers, servers, connections, files and databases. Otherwise the end of the isolate does that.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
import { resume } from "ext:js_runtime/bridge/exit.ts";

/** Resources below this number are the standard streams. */
const FIRST_OWN_RESOURCE = 3;

/** Databases of `node:sqlite`; the garbage collector may take them. */
let databases: { deref(): any }[] = [];
/** Number of databases at which those that are gone are removed. */
let pruneAt = 32;

/** Constructs a database of `node:sqlite`, as `Reflect.construct` does, and records it. */
internals.makeDatabase = (...parts: unknown[]): object => {
  const database = primordials.ReflectApply(primordials.ReflectConstruct, undefined, parts);
  if (databases.length >= pruneAt) {
    const alive: { deref(): any }[] = [];
    for (let index = 0; index < databases.length; index += 1) {
      if (databases[index].deref() !== undefined) alive[alive.length] = databases[index];
    }
    databases = alive;
    pruneAt = 32 + 2 * alive.length;
  }
  databases[databases.length] = new primordials.SafeWeakRef(database);
  return database;
};

/** Calls `close`, whose failure concerns only what it closes. */
function attempt(close: () => void): void {
  try {
    close();
  } catch {
    // The handle is closed already, or the extension has replaced the function.
  }
}

/** Closes everything that the extensions hold. The isolate goes on; failures are ignored. */
export function release(): void {
  attempt(resume);
  attempt(() => internals.endTimers?.());
  for (let index = 0; index < databases.length; index += 1) {
    const database = databases[index].deref();
    if (database?.isOpen) attempt(() => database.close());
  }
  // Without `process` nothing of `node:net` is open.
  if (internals.__nodeProcessBootstrapped) {
    const handles = core.createLazyLoader("node:process")().default._getActiveHandles();
    for (let index = 0; index < handles.length; index += 1) {
      const handle = handles[index];
      attempt(() => (handle.destroy ? handle.destroy() : handle.close()));
    }
  }
  const numbers = primordials.ObjectKeys(core.resources());
  for (let index = 0; index < numbers.length; index += 1) {
    const number = +numbers[index];
    if (number >= FIRST_OWN_RESOURCE) core.tryClose(number);
  }
}
