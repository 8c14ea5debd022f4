// Leaves only Node's global names: packages detect their environment by them, and take another path
// where `Deno`, `window` or `self` exists. `Worker` and `reportError` stay because extensions
// already use them here.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { windowOrWorkerGlobalScope } from "ext:runtime/98_global_scope_shared.js";
// @ts-ignore: provided by the runtime
import { mainRuntimeGlobalProperties } from "ext:runtime/98_global_scope_window.js";

const {
  Object,
  ObjectCreate,
  ObjectDefineProperty,
  ObjectGetPrototypeOf,
  ObjectKeys,
  ObjectSetPrototypeOf,
  ReflectApply,
  StringPrototypeStartsWith,
  SymbolToStringTag,
} = primordials;

/**
 * Global names of browsers. The storages throw here, and `prompt` and `confirm` would read from the
 * input of the protocol.
 */
const NOT_NODES = [
  "alert",
  "Cache",
  "CacheStorage",
  "caches",
  "confirm",
  "createImageBitmap",
  "DOMMatrix",
  "DOMMatrixReadOnly",
  "DOMPoint",
  "DOMPointReadOnly",
  "DOMQuad",
  "DOMRect",
  "DOMRectReadOnly",
  "EventSource",
  "FileReader",
  "ImageBitmap",
  "ImageBitmapRenderingContext",
  "ImageData",
  "localStorage",
  "Location",
  "Lock",
  "LockManager",
  "NavigatorUAData",
  "OffscreenCanvas",
  "ProgressEvent",
  "PromiseRejectionEvent",
  "prompt",
  "self",
  "sessionStorage",
  "Storage",
];
for (const properties of [windowOrWorkerGlobalScope, mainRuntimeGlobalProperties]) {
  for (const name of ObjectKeys(properties)) {
    if (NOT_NODES.includes(name) || StringPrototypeStartsWith(name, "GPU")) {
      delete properties[name];
      delete (globalThis as any)[name];
    }
  }
}

/** Globals that are made when the isolate starts. */
const MADE_LATER = [
  "close",
  "closed",
  "location",
  "name",
  "OffscreenCanvas",
  "onbeforeunload",
  "onerror",
  "onload",
  "onunhandledrejection",
  "onunload",
  "Window",
];
/** Globals that Node hides from enumeration. */
const HIDDEN = ["Buffer", "process"];

const { EventTarget } = core.loadExtScript("ext:deno_web/02_event.js");
const { addEventListener, removeEventListener } = EventTarget.prototype;

// The Node layer listens for uncaught errors with these functions (`snapshot/corrections`).
internals.listenGlobally = (...args: unknown[]) => ReflectApply(addEventListener, globalThis, args);
internals.ignoreGlobally = (...args: unknown[]) => ReflectApply(removeEventListener, globalThis, args);

const plain = (value: unknown) => ({ __proto__: null, value, configurable: true, writable: true });

// The name for Deno's namespace in the code of the Node layer (`snapshot/namespace.rs`).
ObjectDefineProperty(globalThis, "__denoNamespace", {
  __proto__: null,
  configurable: true,
  get: () => (globalThis as any).Deno,
});

/**
 * Called once, before code of any extension runs. Afterwards no global is named `Deno`, and the
 * name that the Node layer uses is a variable and not a property of the global object.
 */
export function becomeNode(): void {
  core.evalContext("const __denoNamespace = globalThis.Deno;", "ext:js_runtime/namespace.js");
  const all: any = globalThis;
  const { Deno } = all;
  // The internal member leads to operations that end the process or bypass all checks.
  delete Deno[Deno.internal];
  delete Deno.internal;
  delete all.Deno;
  delete all.__denoNamespace;
  // A worker keeps the functions for messages to its owner.
  if ("postMessage" in all) return;
  for (const name of MADE_LATER) delete all[name];
  for (const name of HIDDEN) ObjectDefineProperty(all, name, { __proto__: null, enumerable: false });
  // Events of the global object need its current prototype.
  const prototype = ObjectCreate(ObjectGetPrototypeOf(all), {
    addEventListener: plain(undefined),
    constructor: plain(Object),
    removeEventListener: plain(undefined),
  });
  ObjectSetPrototypeOf(all, prototype);
  ObjectDefineProperty(all, SymbolToStringTag, { __proto__: null, value: "global", configurable: true });
}
