// Loads parts of Node's API when they are used, not when the module that exports them is imported:
// `import "node:fs"` evaluated all of Node's streams for `ReadStream`, and `import "node:crypto"`
// did the same for ciphers. Code in `snapshot/corrections` calls these functions.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";

const {
  ObjectDefineProperty,
  ObjectSetPrototypeOf,
  Proxy,
  ReflectApply,
  ReflectConstruct,
  ReflectDefineProperty,
  ReflectGetOwnPropertyDescriptor,
  ReflectGetPrototypeOf,
  ReflectOwnKeys,
  StringPrototypeStartsWith,
} = primordials;

/** The state of one proxy; inherits the traps. */
interface Handler {
  loaded(): any;
  proxy: Function;
}

const calls = {
  __proto__: null,
  apply(this: Handler, _: unknown, self: unknown, args: unknown[]) {
    return ReflectApply(this.loaded(), self, args);
  },
  construct(this: Handler, _: unknown, args: unknown[], made: Function) {
    return ReflectConstruct(this.loaded(), args, made === this.proxy ? this.loaded() : made);
  },
};

/** Traps that load the function when code inspects or changes it. */
const loadingTraps: any = { __proto__: calls };
for (const name of Object.getOwnPropertyNames(Reflect)) {
  if (name in calls) continue;
  const operation = (Reflect as any)[name];
  loadingTraps[name] = function (this: Handler, ...args: unknown[]) {
    this.loaded();
    return ReflectApply(operation, undefined, args);
  };
}

/** A function or a class that is loaded when it is called or inspected. */
function lazyFunction(name: string, load: () => Function): Function {
  const target: any = function () {};
  ObjectDefineProperty(target, "name", { __proto__: null, value: name, configurable: true });
  let real: any;
  const loaded = () => {
    if (real) return real;
    real = load();
    // From here on code sees the target, because a proxy has to be consistent with its target.
    ObjectSetPrototypeOf(handler, calls);
    ObjectSetPrototypeOf(target, ReflectGetPrototypeOf(real));
    const keys = ReflectOwnKeys(real);
    for (let index = 0; index < keys.length; index += 1) {
      ReflectDefineProperty(target, keys[index], ReflectGetOwnPropertyDescriptor(real, keys[index]));
    }
    // The constructor of its objects is the exported proxy, as callers expect.
    if (real.prototype?.constructor === real) {
      ObjectDefineProperty(real.prototype, "constructor", {
        __proto__: null,
        value: proxy,
        writable: true,
        configurable: true,
      });
    }
    return real;
  };
  const handler: any = { __proto__: loadingTraps, loaded };
  const proxy = handler.proxy = new Proxy(target, handler);
  return proxy;
}
internals.lazyFunction = lazyFunction;

/** The result of `make`, which inspects the function that it wraps. */
internals.lazyResult = (name: string, make: (...args: any[]) => Function, ...args: unknown[]) =>
  lazyFunction(name, () => ReflectApply(make, undefined, args));

/** Stand-ins for all exports of a module; each export must be a function. */
const lazyExports = (load: () => any) =>
  new Proxy({ __proto__: null }, {
    __proto__: null,
    get: (_: unknown, name: string) => lazyFunction(name, () => load()[name]),
  });

/** Replaces `core` for `node:crypto`, which consists of a dozen files: each is loaded separately. */
internals.lazyCryptoCore = {
  __proto__: null,
  loadExtScript: (specifier: string) =>
    StringPrototypeStartsWith(specifier, "ext:deno_node/internal/crypto/")
      ? lazyExports(() => core.loadExtScript(specifier))
      : core.loadExtScript(specifier),
};
