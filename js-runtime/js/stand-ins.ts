// Parts of Node's API that are loaded when they are used, not when the module that exports
// them is imported: `import "node:fs"` evaluated all of Node's streams for `ReadStream`,
// `import "node:crypto"` did for ciphers. The texts of `snapshot/corrections` call it.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";

const {
  ObjectDefineProperty,
  Proxy,
  ReflectApply,
  ReflectConstruct,
  ReflectDefineProperty,
  ReflectDeleteProperty,
  ReflectGet,
  ReflectGetOwnPropertyDescriptor,
  ReflectGetPrototypeOf,
  ReflectHas,
  ReflectIsExtensible,
  ReflectOwnKeys,
  ReflectPreventExtensions,
  ReflectSet,
  ReflectSetPrototypeOf,
  StringPrototypeStartsWith,
} = primordials;

/** A function or a class that is loaded when somebody calls it, or looks at it. */
function standIn(name: string, load: () => Function): Function {
  const target: any = function () {};
  ObjectDefineProperty(target, "name", { __proto__: null, value: name, configurable: true });
  let real: any;
  const loaded = () => {
    if (real) return real;
    real = load();
    const prototype = ReflectGetOwnPropertyDescriptor(real, "prototype");
    if (prototype) {
      // What a proxy says of this member must be true of what it stands for.
      ReflectDefineProperty(target, "prototype", prototype);
      // Its objects know it by the name that everybody else knows.
      if (prototype.value?.constructor === real) {
        ObjectDefineProperty(prototype.value, "constructor", {
          __proto__: null,
          value: proxy,
          writable: true,
          configurable: true,
        });
      }
    }
    return real;
  };
  const proxy = new Proxy(target, {
    __proto__: null,
    apply: (_: unknown, self: unknown, args: unknown[]) => ReflectApply(loaded(), self, args),
    construct: (_: unknown, args: unknown[], made: Function) =>
      ReflectConstruct(loaded(), args, made === proxy ? loaded() : made),
    get: (_: unknown, key: PropertyKey) => ReflectGet(loaded(), key),
    set: (_: unknown, key: PropertyKey, value: unknown) => ReflectSet(loaded(), key, value),
    has: (_: unknown, key: PropertyKey) => ReflectHas(loaded(), key),
    deleteProperty: (_: unknown, key: PropertyKey) => ReflectDeleteProperty(loaded(), key),
    defineProperty: (_: unknown, key: PropertyKey, descriptor: PropertyDescriptor) =>
      ReflectDefineProperty(loaded(), key, descriptor),
    getOwnPropertyDescriptor: (_: unknown, key: PropertyKey) =>
      ReflectGetOwnPropertyDescriptor(loaded(), key),
    ownKeys: () => ReflectOwnKeys(loaded()),
    getPrototypeOf: () => ReflectGetPrototypeOf(loaded()),
    setPrototypeOf: (_: unknown, prototype: object | null) =>
      ReflectSetPrototypeOf(loaded(), prototype),
    isExtensible: () => ReflectIsExtensible(loaded()),
    preventExtensions: () => ReflectPreventExtensions(loaded()),
  });
  return proxy;
}
internals.standIn = standIn;

/** What is made of a function by another one, which looks at it. */
internals.late = (name: string, make: (...args: any[]) => Function, ...args: unknown[]) =>
  standIn(name, () => ReflectApply(make, undefined, args));

/** All that a module exports; each must be a function. */
const standIns = (load: () => any) =>
  new Proxy({ __proto__: null }, {
    __proto__: null,
    get: (_: unknown, name: string) => standIn(name, () => load()[name]),
  });

/** `core` for `node:crypto`, which is made of a dozen files: each is loaded for itself. */
internals.lateCrypto = {
  __proto__: null,
  loadExtScript: (specifier: string) =>
    StringPrototypeStartsWith(specifier, "ext:deno_node/internal/crypto/")
      ? standIns(() => core.loadExtScript(specifier))
      : core.loadExtScript(specifier),
};
