// `require` for extensions: it finds pi's own modules, and resolves files as `import` does
// (`require("./lib")` may be lib.ts or lib/index.ts).
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { op_addon_lacks, op_probe, op_probe_package, op_virtual_module } from "ext:core/ops";

interface NodeRequire {
  (id: string): unknown;
  resolve(id: string, options?: { paths?: string[] }): string;
}

interface NodeModule {
  _extensions: Record<string, unknown>;
  _initPaths(): void;
  globalPaths: string[];
  _resolveLookupPaths(request: string, parent: unknown): string[] | null;
  _load(request: string, parent: unknown, isMain: boolean): unknown;
  _resolveFilename(request: string, parent?: { filename?: string }, ...others: unknown[]): string;
}

const namespaces = new Map<string, unknown>();

function namespaceOf(specifier: string): unknown {
  if (!namespaces.has(specifier)) {
    namespaces.set(specifier, core.createLazyLoader(specifier)());
  }
  return namespaces.get(specifier);
}

const hooked = new WeakSet<NodeModule>();

/** Node's own functions for file extensions. */
const nodesOwn = new Set<unknown>();

/** Hooks of `registerHooks` see modules that Node's own functions load; other loaders bypass them. */
const loadsWithHooks = (loader: unknown): boolean => nodesOwn.has(loader);

/** The format of a file that such a hook gets, and the one that holds if no hook sets another. */
function formatOf(filename: string, mayBeCommonJs: (filename: string) => boolean): string | undefined {
  if (filename.endsWith(".json")) return "json";
  if (filename.endsWith(".cjs")) return "commonjs";
  if (filename.endsWith(".mjs")) return "module";
  try {
    return mayBeCommonJs(filename) ? undefined : "module";
  } catch {
    return undefined; // A hook may have made a name up.
  }
}

/** Modules that Node has only with the prefix "node:", because packages use the same names. */
const needsScheme = (name: string): boolean => SCHEME_ONLY.has(name);
const SCHEME_ONLY = new Set(["sea", "sqlite", "test", "test/reporters"]);

/** Adds the folders of NODE_PATH (https://nodejs.org/docs/latest-v24.x/api/modules.html). */
function lookInNodePath(Module: NodeModule): void {
  const folders = (): string[] => ((globalThis as any).process.env.NODE_PATH ?? "").split(":").filter(Boolean);
  let known: string[] | undefined;
  // Some programs change the variable and call this.
  Module._initPaths = () => {
    known = folders();
    Module.globalPaths = [...known];
  };
  const lookup = Module._resolveLookupPaths;
  Module._resolveLookupPaths = function (request, parent) {
    const paths = lookup.call(this, request, parent);
    known ??= folders();
    return paths === null || known.length === 0 || isPath(String(request)) ? paths : [...paths, ...known];
  };
}

/** Makes `require` in CommonJS files resolve pi's own modules. */
function hookRequire(Module: NodeModule): void {
  if (hooked.has(Module)) return;
  hooked.add(Module);
  for (const name of Object.keys(Module._extensions)) {
    // Node loads addons without the hooks.
    if (name !== ".node") nodesOwn.add(Module._extensions[name]);
  }
  lookInNodePath(Module);
  const load = Module._load;
  Module._load = function (request, parent, isMain) {
    const specifier = op_virtual_module(String(request));
    if (specifier !== "") return namespaceOf(specifier);
    try {
      return load.call(this, request, parent, isMain);
    } catch (error: any) {
      // The target of a package is looked up when it is read.
      if (error?.name !== "NotFound" || error.code !== "ENOENT") throw error;
      const stack = stackOf(parent);
      const words = stack.length === 0 ? "" : `\nRequire stack:\n- ${stack.join("\n- ")}`;
      const missing = new Error(`Cannot find module '${request}'${words}`);
      throw Object.assign(missing, { code: "MODULE_NOT_FOUND", requireStack: stack });
    }
  };
  const resolve = Module._resolveFilename;
  Module._resolveFilename = function (request, parent, ...others) {
    // Node's own modules have no file either.
    if (op_virtual_module(String(request)) !== "") return String(request);
    try {
      return resolve.call(this, request, parent, ...others);
    } catch (error: any) {
      const found = typescriptFile(String(request), parent?.filename);
      // Errors of deno_node about packages begin with the code.
      if (found !== undefined) return found;
      const start = `[${error.code}] `;
      if (error.message?.startsWith(start)) error.message = inPaths(error.message.slice(start.length));
      throw error;
    }
  };
}

/** The chain of modules that required each other, up to the first one. */
function stackOf(parent: any): string[] {
  const stack: string[] = [];
  for (let module = parent; module?.filename && !stack.includes(module.filename); module = module.parent) {
    stack.push(module.filename);
  }
  return stack;
}

/** Node names the package and not the importing module. */
const inPaths = (text: string): string =>
  text.replace(/ in '([^']+)' imported from '[^']+'$/, " in $1").replace(/ imported from '[^']+'$/, "");

/**
 * Resolves `./helper` and `./helper.js` next to a CommonJS file of an extension, and the
 * `typescript` package.
 */
function typescriptFile(request: string, parent: string | undefined): string | undefined {
  if (!parent) return;
  const { dirname, resolve } = (globalThis as any).process.getBuiltinModule("node:path");
  if (!isPath(request)) return op_probe_package(request, dirname(parent)) ?? undefined;
  if (/[\\/]node_modules[\\/]/.test(parent)) return;
  const slash = request.endsWith("/") ? "/" : "";
  return op_probe(resolve(dirname(parent), request) + slash) ?? undefined;
}

const isPath = (request: string): boolean => /^(\.{0,2}\/|\.{1,2}$)/.test(request);

interface Meta {
  url: string;
  resolve(id: string): string;
}

/** The `require` of an ES module of an extension. */
function requireOf(
  meta: Meta,
  Module: NodeModule & { createRequire(url: string): NodeRequire },
): NodeRequire {
  const nodeRequire = Module.createRequire(meta.url);
  const { fileURLToPath } = (globalThis as any).process.getBuiltinModule("node:url");
  const find = (id: string): string => {
    if (!isPath(id)) return id;
    try {
      return fileURLToPath(meta.resolve(id));
    } catch {
      return id; // Node's own error names it better.
    }
  };
  const require = (id: string) => nodeRequire(find(String(id)));
  // With explicit `paths`, `require.resolve` does not search next to this file.
  const resolve = (id: string, options?: { paths?: string[] }) =>
    options?.paths ? nodeRequire.resolve(id, options) : nodeRequire.resolve(find(String(id)));
  return Object.assign(require, nodeRequire, {
    resolve: Object.assign(resolve, nodeRequire.resolve),
  }) as NodeRequire;
}

/** Throws for a native addon that would crash the program. */
function checkAddon(filename: string): void {
  const name = op_addon_lacks(filename);
  if (!name) return;
  const error = new Error(
    `${filename} cannot be loaded: it calls ${name}, which only Node has. Addons that keep to Node-API can be loaded`,
  );
  throw Object.assign(error, { code: "ERR_DLOPEN_FAILED" });
}

/**
 * The error of a text that does not compile has no position: V8 reports one only if the error has
 * no stack.
 */
function withPosition(error: any, compile: () => [unknown, { thrown: unknown }]): unknown {
  if (!(error instanceof SyntaxError)) return error;
  const { stackTraceLimit } = Error;
  try {
    Error.stackTraceLimit = 0;
    const [, again] = compile();
    const [{ fileName, lineNumber, columnNumber }] = core.destructureError(again.thrown).frames;
    const { message, stack } = error;
    error.message = `${message} (${fileName.replace("file://", "")}:${lineNumber}:${columnNumber})`;
    error.stack = stack.replace(message, () => error.message);
  } catch {
    // The original value is restored.
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
  return error;
}

const CYCLE = /^(Cannot require\(\) ES Module )(?:file:\/\/)?(.* in a cycle\.)$/;

/**
 * The error of a required module, or the reason why the module did not run. deno_core puts class,
 * message and stack of that error into the message of another one.
 */
function requiredError(error: any): unknown {
  if (!(error instanceof Error)) return error;
  const frames = error.message.indexOf("\n    at ");
  if (frames >= 0) {
    const stack = error.message;
    const frameText = stack.slice(0, frames);
    const start = `${error.name}: `;
    error.message = frameText.startsWith(start) ? frameText.slice(start.length) : frameText;
    error.stack = stack;
    return error;
  }
  const cycle = CYCLE.exec(error.message);
  if (!cycle) return error;
  const { message } = error;
  error.message = `${cycle[1]}${cycle[2]} It is still being loaded: require it inside a function, or import it`;
  error.stack = error.stack?.replace(message, () => error.message);
  return Object.assign(error, { code: "ERR_REQUIRE_CYCLE_MODULE" });
}

// Called when Node's modules are evaluated (snapshot/corrections.rs).
Object.assign(internals, { hookRequire, checkAddon, formatOf, loadsWithHooks, needsScheme, withPosition, required: requiredError });

Object.defineProperty(globalThis, Symbol.for("pi.requireOf"), { value: requireOf });
