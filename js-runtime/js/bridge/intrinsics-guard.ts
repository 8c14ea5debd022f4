// Checks the built-in objects that all code in the isolate relies on, the runtime included: ops are
// called with `Function.prototype.call`, and every response goes through `Promise.prototype.then`.
// The runtime calls this after each uninterrupted run of JavaScript and stops the extension that
// removed one. A working replacement (a wrapper that measures, a polyfill) may stay.
// @ts-ignore: provided by the runtime
import { primordials } from "ext:core/mod.js";

// deno-lint-ignore no-explicit-any
type Any = any;

const {
  ArrayIsArray,
  JSONStringify,
  PromisePrototypeThen,
  ReflectApply,
  ReflectConstruct,
} = primordials;
const NativeMap = Map;
const NativePromise = Promise;
const NativeSet = Set;

interface Intrinsic {
  /** The name, which is also the expression to read it. */
  name: string;
  /** Whether a replacement behaves the same; without this function no replacement is accepted. */
  works?(it: Any): boolean;
}

const intrinsics: Intrinsic[] = [];

function intrinsic(name: string, works?: (it: Any) => boolean): void {
  intrinsics[intrinsics.length] = { name, works };
}

/** A check whose result is known only after microtasks have run. */
interface Trial {
  /** The index of the intrinsic. */
  index?: number;
  it: unknown;
  done: boolean;
}

let trial: Trial | undefined;

/** `start` passes `done` to a promise that is settled. */
function afterMicrotasks(start: (it: Any, settled: Promise<number>, done: () => void) => unknown) {
  return (it: Any): boolean => {
    const ownTrial: Trial = (trial = { it, done: false });
    const settled = new NativePromise<number>((resolve) => resolve(1));
    return typeof start(it, settled, () => void (ownTrial.done = true)) === "object";
  };
}

const resolved = NativePromise.resolve();
const isFunction = (it: Any) => typeof it === "function";
const isOne = (it: Any) => it === 1;

intrinsic("Promise.prototype.then",
  afterMicrotasks((it, settled, done) => ReflectApply(it, settled, [done])));
intrinsic("Promise.prototype.catch",
  afterMicrotasks((it, settled, done) => {
    const failed = PromisePrototypeThen(settled, () => {
      throw 1;
    });
    // A rejection of this promise must not count as unhandled.
    PromisePrototypeThen(failed, undefined, () => {});
    return ReflectApply(it, failed, [done]);
  }));
intrinsic("Promise.prototype.finally",
  afterMicrotasks((it, settled, done) => ReflectApply(it, settled, [done])));
intrinsic("Promise.prototype.constructor",
  afterMicrotasks((_it, settled, done) => PromisePrototypeThen(settled, done)));
intrinsic("Promise[Symbol.species]",
  afterMicrotasks((_it, settled, done) => PromisePrototypeThen(settled, done)));
intrinsic("globalThis.Promise",
  (it) => isFunction(ReflectConstruct(it, [(resolve: () => void) => resolve()]).then));

intrinsic("Promise[Symbol.hasInstance]",
  (it) => ReflectApply(it, NativePromise, [{}]) === false && ReflectApply(it, NativePromise, [resolved]) === true);

intrinsic("Function.prototype.call",
  (it) => ReflectApply(it, isOne, [null, 1]) === true);
intrinsic("Function.prototype.apply",
  (it) => ReflectApply(it, isOne, [null, [1]]) === true);
intrinsic("Function.prototype.bind",
  (it) => ReflectApply(it, isOne, [null, 1])() === true);
intrinsic("Reflect.apply", (it) => it(isOne, null, [1]) === true);

// A member here appears on every object that is awaited, returned, described or sent.
intrinsic("Object.prototype.then");
intrinsic("Object.prototype.toJSON");
intrinsic("Object.prototype.get");
intrinsic("Object.prototype.set");
intrinsic("Object.prototype.value");
intrinsic("Object.prototype.writable");
intrinsic("Object.prototype.configurable");
intrinsic("Object.prototype.done");
intrinsic("Object.prototype.signal");
intrinsic("Object.prototype.length");
intrinsic("Object.prototype[0]");
// Optional members of messages from the program to the bridge.
intrinsic("Object.prototype.answer");
intrinsic("Object.prototype.around");
intrinsic("Object.prototype.block");
intrinsic("Object.prototype.cancelled");
intrinsic("Object.prototype.change");
intrinsic("Object.prototype.isAborted");
intrinsic("Object.prototype.in_place_only");
intrinsic("Object.prototype.more");
intrinsic("Object.prototype.mutable");
intrinsic("Object.prototype.problem");
intrinsic("Object.prototype.run");
intrinsic("Object.prototype.step");
intrinsic("Object.prototype[Symbol.toPrimitive]");
intrinsic("Array.prototype.__proto__");
intrinsic("Object.prototype.toString",
  (it) => ReflectApply(it, [], []) === "[object Array]");
intrinsic("Object.prototype.hasOwnProperty",
  (it) => ReflectApply(it, { a: 1 }, ["a"]) === true && ReflectApply(it, {}, ["a"]) === false);

const spreads = () => {
  const [first, ...rest] = [1, 2, 3];
  return first === 1 && rest[1] === 3;
};
intrinsic("Array.prototype[Symbol.iterator]", spreads);
intrinsic("ArrayIterator.prototype.next", spreads);
intrinsic("Array[Symbol.species]");
const asJson = (value: unknown, json: string) => JSONStringify(value) === json;
intrinsic("Array.prototype.push", (it) => {
  const list = [1];
  return ReflectApply(it, list, [2]) === 2 && list[1] === 2;
});
intrinsic("Array.prototype.pop",
  (it) => ReflectApply(it, [1, 2], []) === 2);
intrinsic("Array.prototype.shift",
  (it) => ReflectApply(it, [1, 2], []) === 1);
intrinsic("Array.prototype.slice",
  (it) => asJson(ReflectApply(it, [1, 2], [1]), "[2]"));
intrinsic("Array.prototype.splice",
  (it) => asJson(ReflectApply(it, [1, 2], [1]), "[2]"));
intrinsic("Array.prototype.map",
  (it) => asJson(ReflectApply(it, [1, 2], [isOne]), "[true,false]"));
intrinsic("Array.prototype.filter",
  (it) => asJson(ReflectApply(it, [1, 2], [isOne]), "[1]"));
intrinsic("Array.prototype.forEach", (it) => {
  let seen = 0;
  ReflectApply(it, [1, 2], [() => void (seen += 1)]);
  return seen === 2;
});
intrinsic("Array.prototype.join",
  (it) => ReflectApply(it, [1, 2], ["-"]) === "1-2");
intrinsic("Array.isArray", (it) => it([]) && !it({}));

intrinsic("JSON.stringify",
  (it) => it({ a: [1, "x"] }) === '{"a":[1,"x"]}');
intrinsic("JSON.parse", (it) => it('{"a":[1]}').a[0] === 1);

intrinsic("Map.prototype.get",
  (it) => ReflectApply(it, new NativeMap([[1, 2]]), [1]) === 2);
intrinsic("Map.prototype.set", (it) => {
  const map = new NativeMap();
  ReflectApply(it, map, [1, 2]);
  return map.size === 1;
});
intrinsic("Map.prototype.values",
  (it) => ReflectApply(it, new NativeMap([[1, 2]]), []).next().value === 2);
intrinsic("Map.prototype.has",
  (it) => ReflectApply(it, new NativeMap([[1, 2]]), [1]) === true);
intrinsic("Set.prototype.has",
  (it) => ReflectApply(it, new NativeSet([1]), [1]) === true && !ReflectApply(it, new NativeSet(), [1]));
intrinsic("Set.prototype.add", (it) => {
  const set = new NativeSet();
  ReflectApply(it, set, [1]);
  return set.size === 1;
});

intrinsic("RegExp.prototype.exec",
  (it) => ReflectApply(it, /a(b)/, ["ab"])[1] === "b");
intrinsic("String.prototype.split",
  (it) => ReflectApply(it, "a,b", [","])[1] === "b");
intrinsic("String.prototype.includes",
  (it) => ReflectApply(it, "ab", ["b"]) === true && ReflectApply(it, "ab", ["c"]) === false);
intrinsic("String.prototype.replace",
  (it) => ReflectApply(it, "ab", ["b", "c"]) === "ac");
intrinsic("String.prototype.slice",
  (it) => ReflectApply(it, "ab", [1]) === "b");

intrinsic("globalThis.Object", (it) => isFunction(it.keys) && isFunction(it.assign));
intrinsic("globalThis.Array", (it) => ArrayIsArray(ReflectConstruct(it, [1])));
intrinsic("globalThis.Map", (it) => ReflectConstruct(it, [[[1, 2]]]).get(1) === 2);
intrinsic("globalThis.Set", (it) => ReflectConstruct(it, [[1]]).has(1));
intrinsic("globalThis.Error", (it) => ReflectConstruct(it, ["x"]).message === "x");

/** The objects behind these names, whatever happens to the global variables. */
const natives: Record<string, unknown> = {
  Array,
  ArrayIterator: { prototype: Object.getPrototypeOf([][Symbol.iterator]()) },
  Function,
  Map,
  Object,
  Promise,
  RegExp,
  Set,
  String,
  Symbol,
};

/** Compiles an expression in which the names have these meanings. */
function compiled<T>(expression: string): T {
  return new Function(...Object.keys(natives), `return ${expression}`)(...Object.values(natives));
}

const readers = compiled<(() => unknown)[]>(
  `[${intrinsics.map(({ name }) => `() => ${name}`).join(", ")}]`,
);
/** Each intrinsic as it was, or its accepted replacement. */
const accepted = readers.map((read) => read());
// One function with a comparison for each intrinsic takes a tenth of the time of a loop.
const allIntact = compiled<(accepted: unknown[]) => () => boolean>(
  `(accepted) => () => ${
    intrinsics.map(({ name }, index) => `${name} === accepted[${index}]`).join(" && ")
  }`,
)(accepted);

/** Whether every intrinsic is unchanged or an accepted replacement. */
export function isIntact(): boolean {
  try {
    return allIntact();
  } catch {
    // A variable was removed or became a getter.
    return false;
  }
}
// Compiles the function for the snapshot.
isIntact();

/**
 * `undefined` if every intrinsic is intact; `true` if microtasks have to run before that is known,
 * after which the caller asks again; else the name of the missing one and what replaced it.
 */
export function missingEssential(): undefined | true | [name: string, it: unknown] {
  if (trial === undefined && isIntact()) return undefined;
  const { index: checked, it, done } = trial ?? {};
  trial = undefined;
  if (checked !== undefined) {
    if (!done) return [intrinsics[checked].name, it];
    accepted[checked] = it;
  }
  for (let index = 0; index < intrinsics.length; index += 1) {
    const { name, works } = intrinsics[index];
    let it: unknown;
    try {
      it = readers[index]();
      if (it === accepted[index]) continue;
      if (!works?.(it)) return [name, it];
    } catch {
      return [name, it];
    }
    const pending = trial as Trial | undefined;
    if (pending) {
      pending.index = index;
      return true;
    }
    accepted[index] = it;
  }
  return undefined;
}
