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

interface Essential {
  /** An expression: what it is called, and where it is found. */
  name: string;
  /** Whether a replacement behaves the same; without this function no replacement is accepted. */
  works?(it: Any): boolean;
}

const essentials: Essential[] = [];

function essential(name: string, works?: (it: Any) => boolean): void {
  essentials[essentials.length] = { name, works };
}

/** A check whose result is known only after microtasks have run. */
interface Trial {
  /** The index of the intrinsic. */
  of?: number;
  it: unknown;
  done: boolean;
}

let trial: Trial | undefined;

/** `start` has `done` called by a promise that is settled. */
function later(start: (it: Any, settled: Promise<number>, done: () => void) => unknown) {
  return (it: Any): boolean => {
    const own: Trial = (trial = { it, done: false });
    const settled = new NativePromise<number>((resolve) => resolve(1));
    return typeof start(it, settled, () => void (own.done = true)) === "object";
  };
}

const resolved = NativePromise.resolve();
const isFunction = (it: Any) => typeof it === "function";
const one = (it: Any) => it === 1;

essential("Promise.prototype.then",
  later((it, settled, done) => ReflectApply(it, settled, [done])));
essential("Promise.prototype.catch",
  later((it, settled, done) => {
    const failed = PromisePrototypeThen(settled, () => {
      throw 1;
    });
    // A rejection of this promise must not count as unhandled.
    PromisePrototypeThen(failed, undefined, () => {});
    return ReflectApply(it, failed, [done]);
  }));
essential("Promise.prototype.finally",
  later((it, settled, done) => ReflectApply(it, settled, [done])));
essential("Promise.prototype.constructor",
  later((_it, settled, done) => PromisePrototypeThen(settled, done)));
essential("Promise[Symbol.species]",
  later((_it, settled, done) => PromisePrototypeThen(settled, done)));
essential("globalThis.Promise",
  (it) => isFunction(ReflectConstruct(it, [(resolve: () => void) => resolve()]).then));

essential("Promise[Symbol.hasInstance]",
  (it) => ReflectApply(it, NativePromise, [{}]) === false && ReflectApply(it, NativePromise, [resolved]) === true);

essential("Function.prototype.call",
  (it) => ReflectApply(it, one, [null, 1]) === true);
essential("Function.prototype.apply",
  (it) => ReflectApply(it, one, [null, [1]]) === true);
essential("Function.prototype.bind",
  (it) => ReflectApply(it, one, [null, 1])() === true);
essential("Reflect.apply", (it) => it(one, null, [1]) === true);

// A member here appears on every object that is awaited, returned, described or sent.
essential("Object.prototype.then");
essential("Object.prototype.toJSON");
essential("Object.prototype.get");
essential("Object.prototype.set");
essential("Object.prototype.value");
essential("Object.prototype.writable");
essential("Object.prototype.configurable");
essential("Object.prototype.done");
essential("Object.prototype.signal");
essential("Object.prototype.length");
essential("Object.prototype[0]");
// Optional members of messages from the program to the bridge.
essential("Object.prototype.answer");
essential("Object.prototype.around");
essential("Object.prototype.block");
essential("Object.prototype.cancelled");
essential("Object.prototype.change");
essential("Object.prototype.hurried");
essential("Object.prototype.in_place_only");
essential("Object.prototype.more");
essential("Object.prototype.mutable");
essential("Object.prototype.problem");
essential("Object.prototype.run");
essential("Object.prototype.step");
essential("Object.prototype[Symbol.toPrimitive]");
essential("Array.prototype.__proto__");
essential("Object.prototype.toString",
  (it) => ReflectApply(it, [], []) === "[object Array]");
essential("Object.prototype.hasOwnProperty",
  (it) => ReflectApply(it, { a: 1 }, ["a"]) === true && ReflectApply(it, {}, ["a"]) === false);

const spreads = () => {
  const [first, ...rest] = [1, 2, 3];
  return first === 1 && rest[1] === 3;
};
essential("Array.prototype[Symbol.iterator]", spreads);
essential("ArrayIterator.prototype.next", spreads);
essential("Array[Symbol.species]");
const asJson = (value: unknown, json: string) => JSONStringify(value) === json;
essential("Array.prototype.push", (it) => {
  const list = [1];
  return ReflectApply(it, list, [2]) === 2 && list[1] === 2;
});
essential("Array.prototype.pop",
  (it) => ReflectApply(it, [1, 2], []) === 2);
essential("Array.prototype.shift",
  (it) => ReflectApply(it, [1, 2], []) === 1);
essential("Array.prototype.slice",
  (it) => asJson(ReflectApply(it, [1, 2], [1]), "[2]"));
essential("Array.prototype.splice",
  (it) => asJson(ReflectApply(it, [1, 2], [1]), "[2]"));
essential("Array.prototype.map",
  (it) => asJson(ReflectApply(it, [1, 2], [one]), "[true,false]"));
essential("Array.prototype.filter",
  (it) => asJson(ReflectApply(it, [1, 2], [one]), "[1]"));
essential("Array.prototype.forEach", (it) => {
  let seen = 0;
  ReflectApply(it, [1, 2], [() => void (seen += 1)]);
  return seen === 2;
});
essential("Array.prototype.join",
  (it) => ReflectApply(it, [1, 2], ["-"]) === "1-2");
essential("Array.isArray", (it) => it([]) && !it({}));

essential("JSON.stringify",
  (it) => it({ a: [1, "x"] }) === '{"a":[1,"x"]}');
essential("JSON.parse", (it) => it('{"a":[1]}').a[0] === 1);

essential("Map.prototype.get",
  (it) => ReflectApply(it, new NativeMap([[1, 2]]), [1]) === 2);
essential("Map.prototype.set", (it) => {
  const map = new NativeMap();
  ReflectApply(it, map, [1, 2]);
  return map.size === 1;
});
essential("Map.prototype.values",
  (it) => ReflectApply(it, new NativeMap([[1, 2]]), []).next().value === 2);
essential("Map.prototype.has",
  (it) => ReflectApply(it, new NativeMap([[1, 2]]), [1]) === true);
essential("Set.prototype.has",
  (it) => ReflectApply(it, new NativeSet([1]), [1]) === true && !ReflectApply(it, new NativeSet(), [1]));
essential("Set.prototype.add", (it) => {
  const set = new NativeSet();
  ReflectApply(it, set, [1]);
  return set.size === 1;
});

essential("RegExp.prototype.exec",
  (it) => ReflectApply(it, /a(b)/, ["ab"])[1] === "b");
essential("String.prototype.split",
  (it) => ReflectApply(it, "a,b", [","])[1] === "b");
essential("String.prototype.includes",
  (it) => ReflectApply(it, "ab", ["b"]) === true && ReflectApply(it, "ab", ["c"]) === false);
essential("String.prototype.replace",
  (it) => ReflectApply(it, "ab", ["b", "c"]) === "ac");
essential("String.prototype.slice",
  (it) => ReflectApply(it, "ab", [1]) === "b");

essential("globalThis.Object", (it) => isFunction(it.keys) && isFunction(it.assign));
essential("globalThis.Array", (it) => ArrayIsArray(ReflectConstruct(it, [1])));
essential("globalThis.Map", (it) => ReflectConstruct(it, [[[1, 2]]]).get(1) === 2);
essential("globalThis.Set", (it) => ReflectConstruct(it, [[1]]).has(1));
essential("globalThis.Error", (it) => ReflectConstruct(it, ["x"]).message === "x");

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

/** Compiles an expression in which the names mean that. */
function compiled<T>(expression: string): T {
  return new Function(...Object.keys(natives), `return ${expression}`)(...Object.values(natives));
}

const looks = compiled<(() => unknown)[]>(
  `[${essentials.map(({ name }) => `() => ${name}`).join(", ")}]`,
);
/** Each intrinsic as it was, or its accepted replacement. */
const accepted = looks.map((look) => look());
// One function with a comparison for each intrinsic takes a tenth of the time of a loop.
const isWhole = compiled<(accepted: unknown[]) => () => boolean>(
  `(accepted) => () => ${
    essentials.map(({ name }, index) => `${name} === accepted[${index}]`).join(" && ")
  }`,
)(accepted);

/** Whether every intrinsic is unchanged or an accepted replacement. */
export function whole(): boolean {
  try {
    return isWhole();
  } catch {
    // A variable was removed or became a getter.
    return false;
  }
}
// Compiles the function for the snapshot.
whole();

/**
 * `undefined` if every intrinsic is intact; `true` if microtasks have to run before that is known,
 * after which the caller asks again; else the name of the missing one and what replaced it.
 */
export function missingEssential(): undefined | true | [name: string, it: unknown] {
  if (trial === undefined && whole()) return undefined;
  const { of, it, done } = trial ?? {};
  trial = undefined;
  if (of !== undefined) {
    if (!done) return [essentials[of].name, it];
    accepted[of] = it;
  }
  for (let index = 0; index < essentials.length; index += 1) {
    const { name, works } = essentials[index];
    let it: unknown;
    try {
      it = looks[index]();
      if (it === accepted[index]) continue;
      if (!works?.(it)) return [name, it];
    } catch {
      return [name, it];
    }
    const pending = trial as Trial | undefined;
    if (pending) {
      pending.of = index;
      return true;
    }
    accepted[index] = it;
  }
  return undefined;
}
