// Run by Node and by pi in its place: both print the same.
import { Console } from "node:console";

class Animal {
  name = "cat";
  get legs() {
    return 4;
  }
}
const circular = { name: "self" };
circular.self = circular;
const everything = {
  text: "x",
  quoted: "it's",
  list: [1, "two", { deep: { deeper: { deepest: {} } } }],
  symbol: Symbol("s"),
  call() {},
  Class: class Other extends Animal {},
  map: new Map([["k", { v: 1 }]]),
  set: new Set([1, "2"]),
  date: new Date(0),
  pattern: /x/g,
  none: null,
  missing: undefined,
  large: 10n,
  zero: -0,
  bytes: Buffer.from("hi"),
  promise: Promise.resolve(4),
};
for (
  const value of [
    everything,
    "text",
    ["it's", '"quoted"', "multi\nline"],
    [[], {}, [[]], null, undefined, -0, 1.5],
    new Animal(),
    circular,
    [1, , 3],
    Array.from({ length: 120 }, (_, index) => index),
    Array.from({ length: 30 }, (_, index) => `item ${index}`),
    Object.create(null),
    { "a-b": 1, 2: 3 },
    { long: "x".repeat(100), list: ["y".repeat(100)] },
    Object.assign(() => {}, { own: "property" }),
    new String("boxed"),
    { [Symbol.for("nodejs.util.inspect.custom")]: (depth) => `custom ${depth}` },
  ]
) console.log(value);

console.log("%s is %d and %i and %f %j %o %O %% %c", "it", 42.5, 42.5, "1.5", { a: 1 }, ["b"], { c: "d" }, "css", { e: "f" });
console.log("100%", 5, "%d%%");
console.log("%s", { a: "b" }, null, Symbol("x"));
console.log();
for (const name of ["info", "debug", "warn", "error"]) console[name]({ [name]: "x" });
console.group("group", { of: "two" });
console.log({ text: "in it", lines: ["x".repeat(60), "y".repeat(60)] });
console.group();
console.log("two\nlines");
console.groupEnd();
console.groupEnd();
console.dir({ a: { b: { c: { d: 1 } } } }, { depth: 0 });
console.table([{ a: 1, b: "x" }, { a: 2, c: true }]);
console.table(new Map([["k", 1]]));
console.table([1, "two"]);
console.assert(true, "not said");
console.assert(false, "said %s", "so");
console.count();
console.count("other");
console.count();

const cause = Object.assign(new Error("inner"), { code: "ECODE" });
cause.stack = "Error: inner\n    at somewhere (/a/b.js:1:2)";
const error = new TypeError("outer", { cause });
error.stack = "TypeError: outer\n    at there (/a.js:1:1)";
console.log(error);
console.error({ error: cause });

const { log } = console;
log({ taken: "off" }, Object.keys(console).includes("indentLevel"));
new Console(process.stdout).log({ own: "console" });
