// Adapts the results of `import()` in files of extensions, which are written for jiti: CommonJS
// modules look as they do in a static import (loader/interop/compat.rs), and errors have the classes and
// codes that jiti gives them.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { primordials } from "ext:core/mod.js";
import { isOtherIsolate } from "ext:js_runtime/node/uncaught.ts";

const {
  ArrayPrototypeEvery,
  Error,
  ObjectCreate,
  ObjectDefineProperties,
  ObjectDefineProperty,
  ObjectGetOwnPropertyDescriptors,
  ObjectHasOwn,
  ObjectKeys,
  PromisePrototypeThen,
  RegExpPrototypeExec,
  SafeWeakMap,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
  StringPrototypeStartsWith,
  SymbolFor,
  SyntaxError,
  TypeError,
} = primordials;

type Names = Record<string, unknown>;

/** The namespace object made for each CommonJS module. */
const namespaces: WeakMap<object, object> = new SafeWeakMap();

/** The export "module.exports" exists only in CommonJS and JSON modules. */
function interop(namespace: Names): object {
  if (!ObjectHasOwn(namespace, "module.exports")) return namespace;
  const exports = namespace["module.exports"] as Names | null;
  if ((typeof exports !== "object" && typeof exports !== "function") || exports === null) return namespace;
  const isCompiled = Boolean(exports.__esModule);
  if (isCompiled && "default" in exports) return exports;
  const isThere = (name: string) => ObjectHasOwn(namespace, name);
  if (!isCompiled && ArrayPrototypeEvery(ObjectKeys(exports), isThere)) return namespace;
  let made = namespaces.get(exports);
  if (made === undefined) {
    made = ObjectDefineProperties(ObjectCreate(null), {
      ...ObjectGetOwnPropertyDescriptors(exports),
      default: { value: exports, enumerable: true, configurable: true, writable: true },
    }) as object;
    namespaces.set(exports, made);
  }
  return made;
}

const NO_SUCH = /^Cannot find (?:module|package) (.*)/s;
const ERROR_CODE_PREFIX = /^\[(ERR_\w+)\] /;

/** deno_core throws a `TypeError` with this code for every module that cannot be loaded. */
function nodeError(error: any): unknown {
  if (!(error instanceof TypeError) || error.code !== "ERR_MODULE_NOT_FOUND") return error;
  const text: string = error.message;
  const found = RegExpPrototypeExec(ERROR_CODE_PREFIX, text);
  let adapted: any;
  if (StringPrototypeStartsWith(text, "SyntaxError: ")) {
    adapted = new SyntaxError(StringPrototypeSlice(text, "SyntaxError: ".length));
  } else if (found !== null) {
    const words = StringPrototypeSlice(text, found[0].length);
    adapted = found[1] === "ERR_UNKNOWN_FILE_EXTENSION" ? new TypeError(words) : new Error(words);
    adapted.code = found[1];
  } else {
    const missing = RegExpPrototypeExec(NO_SUCH, text);
    // jiti calls `require` for extensions, so the message is that of `require`.
    const isJiti = missing !== null && !isOtherIsolate;
    adapted = new Error(isJiti ? `Cannot find module ${missing[1]}` : text);
    if (missing !== null) adapted.code = isJiti ? "MODULE_NOT_FOUND" : error.code;
  }
  const at = StringPrototypeIndexOf(error.stack, text);
  const rest = at < 0 ? "" : StringPrototypeSlice(error.stack, at + text.length);
  ObjectDefineProperty(adapted, "stack", {
    value: `${adapted.name}: ${adapted.message}${rest}`,
    configurable: true,
    writable: true,
  });
  return adapted;
}

function adaptImport(promise: Promise<Names>): Promise<object> {
  const readable = (namespace: Names) => {
    try {
      return interop(namespace);
    } catch {
      return namespace; // A proxy, perhaps: it works for those who know it.
    }
  };
  return PromisePrototypeThen(promise, readable, (error: unknown) => {
    throw nodeError(error);
  });
}

ObjectDefineProperty(globalThis, SymbolFor("pi.imported"), { value: adaptImport });
