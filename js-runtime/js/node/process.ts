// Sets `process.argv[1]`. deno_node has two values when its `process` is first used: the program
// itself if it is "standalone" (which it must be, or the arguments of child processes are rewritten
// to those of `deno`), or else the main module. Extensions take the first for a script, so this
// module supplies the second.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { internals } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { op_process_groups } from "ext:core/ops";

declare const Deno: any;

type Bootstrap = (...args: unknown[]) => unknown;

let bootstrap: Bootstrap | undefined;

function script(mainModule: string | undefined): string | undefined {
  // Worker threads have no main module, but a location.
  const url = mainModule ?? (globalThis as any).location?.href;
  return url?.startsWith("file:") ? decodeURIComponent(new URL(url).pathname) : undefined;
}

function bootstrapWithScript(this: unknown, ...args: unknown[]): unknown {
  const { execPath, mainModule } = Deno;
  // `process.argv0`
  args[0] ??= execPath();
  // deno_node reads argv[0] first, then argv[1].
  let reads = 0;
  Deno.execPath = () => {
    reads += 1;
    return reads === 2 ? script(mainModule) ?? execPath() : execPath();
  };
  try {
    return bootstrap!.apply(this, args);
  } finally {
    Deno.execPath = execPath;
  }
}

/** Deno's `process` lacks these functions (`snapshot/corrections.rs`). */
internals.setGroups = (name: string) => op_process_groups(`process.${name}()`);

/** Errors of starting a child that Node reports asynchronously. */
const ASYNC_ERRORS = ["EACCES", "EAGAIN", "EMFILE", "ENFILE", "ENOENT"];

/** Throws other errors of starting a child as Node does. */
internals.spawnRefusal = (error: any, named: (code: string) => any): Error | undefined => {
  const code = /: cwd is not a directory '/.test(error?.message) ? "ENOTDIR" : error?.code;
  if (typeof code !== "string" || !/^E[0-9A-Z]+$/.test(code) || ASYNC_ERRORS.includes(code)) return undefined;
  const { errno } = named(code);
  return Object.assign(new Error(`spawn ${code}`), { errno, code, syscall: "spawn" });
};

// `node:process` sets this member when it is first loaded, long after this module.
Object.defineProperty(internals, "__bootstrapNodeProcess", {
  configurable: true,
  get: () => bootstrap && bootstrapWithScript,
  set: (value: Bootstrap) => {
    bootstrap = value;
  },
});
