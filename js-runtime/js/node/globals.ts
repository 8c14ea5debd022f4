// What is global is what Node has: packages find out by names where they are, and take
// another way where there is a `Deno`, a `window` or a `self`. `Worker` and `reportError` stay,
// which extensions have found here.
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

/** Of a browser's. The storages throw here, and questions would be read from the input of the protocol. */
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

/** Made when the isolate begins. */
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
/** Those of Node are not found by whoever looks through all. */
const HIDDEN = ["Buffer", "process"];

const { EventTarget } = core.loadExtScript("ext:deno_web/02_event.js");
const { addEventListener, removeEventListener } = EventTarget.prototype;

// The layer listens for what is thrown (`snapshot/corrections`).
internals.listenGlobally = (...args: unknown[]) => ReflectApply(addEventListener, globalThis, args);
internals.ignoreGlobally = (...args: unknown[]) => ReflectApply(removeEventListener, globalThis, args);

const plain = (value: unknown) => ({ __proto__: null, value, configurable: true, writable: true });

// The layer's own code names Deno's namespace so (`snapshot/namespace.rs`), from the start on.
ObjectDefineProperty(globalThis, "__denoNamespace", {
  __proto__: null,
  configurable: true,
  get: () => (globalThis as any).Deno,
});

/**
 * Called once, before anything of anybody else runs. Afterwards nothing global is named `Deno`,
 * and the name that the layer uses is a variable that is no property of the global object.
 */
export function becomeNode(): void {
  core.evalContext("const __denoNamespace = globalThis.Deno;", "ext:js_runtime/namespace.js");
  const all: any = globalThis;
  const { Deno } = all;
  // It leads to operations that end the process, and past everything that is checked on the way.
  delete Deno[Deno.internal];
  delete Deno.internal;
  delete all.Deno;
  delete all.__denoNamespace;
  // A worker keeps what it speaks to its owner with.
  if ("postMessage" in all) return;
  for (const name of MADE_LATER) delete all[name];
  for (const name of HIDDEN) ObjectDefineProperty(all, name, { __proto__: null, enumerable: false });
  // Its events need the prototype that it has.
  const prototype = ObjectCreate(ObjectGetPrototypeOf(all), {
    addEventListener: plain(undefined),
    constructor: plain(Object),
    removeEventListener: plain(undefined),
  });
  ObjectSetPrototypeOf(all, prototype);
  ObjectDefineProperty(all, SymbolToStringTag, { __proto__: null, value: "global", configurable: true });
}
