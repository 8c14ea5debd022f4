// Parts of Node's API that are loaded when they are used, not when the module that exports
// them is imported: `import "node:fs"` evaluated all of Node's streams for `ReadStream`,
// `import "node:crypto"` did for ciphers. The texts of `snapshot/corrections` call it.
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

/** What a proxy does for one; inherits the traps. */
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

/** Until it is loaded, what looks at it, or changes it, loads it, too. */
const looks: any = { __proto__: calls };
for (const name of Object.getOwnPropertyNames(Reflect)) {
  if (name in calls) continue;
  const look = (Reflect as any)[name];
  looks[name] = function (this: Handler, ...args: unknown[]) {
    this.loaded();
    return ReflectApply(look, undefined, args);
  };
}

/** A function or a class that is loaded when somebody calls it, or looks at it. */
function standIn(name: string, load: () => Function): Function {
  const target: any = function () {};
  ObjectDefineProperty(target, "name", { __proto__: null, value: name, configurable: true });
  let real: any;
  const loaded = () => {
    if (real) return real;
    real = load();
    // From here on they see the target: what a proxy says must be true of it.
    ObjectSetPrototypeOf(handler, calls);
    ObjectSetPrototypeOf(target, ReflectGetPrototypeOf(real));
    const keys = ReflectOwnKeys(real);
    for (let index = 0; index < keys.length; index += 1) {
      ReflectDefineProperty(target, keys[index], ReflectGetOwnPropertyDescriptor(real, keys[index]));
    }
    // Its objects know it by the name that everybody else knows.
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
  const handler: any = { __proto__: looks, loaded };
  const proxy = handler.proxy = new Proxy(target, handler);
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
