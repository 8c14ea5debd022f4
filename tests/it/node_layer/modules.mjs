// Run by Node and by pi in its place: both print the same answers. Of what cannot be found, and
// of addresses that are none.
import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import url from "node:url";

const here = realpathSync(".");
const require = createRequire(`${here}/here.js`);
const answers = {};
const told = async (action) => {
  try {
    const answer = await action();
    return typeof answer === "string" ? answer : Object.keys(answer).filter((name) => name !== "module.exports");
  } catch (error) {
    const { name, code, message, input, base, requireStack } = error;
    return { name, code, message, input, base, requireStack, isOwn: error.constructor === globalThis[name] };
  }
};

const files = {
  "node_modules/p/package.json": '{"name":"p","exports":{".":"./i.js","./ok":"./ok.js","./gone":"./gone.js"}}',
  "node_modules/p/i.js": "exports.a = 1;",
  "node_modules/p/ok.js": "exports.ok = 1;",
  "own.mjs":
    "export const load = (name) => import(name); export const find = import.meta.resolve;",
  "throws.mjs": "throw new TypeError('thrown');",
  "deeper.cjs": "require('./missing-file');",
  "folder/inpath/index.js": "exports.inPath = 1;",
};
for (const [name, text] of Object.entries(files)) {
  mkdirSync(name.replace(/[^/]*$/, "."), { recursive: true });
  writeFileSync(name, text);
}
const { find, load } = await import(`${here}/own.mjs`);

answers.required = [];
for (const name of ["p/nope", "no-such-package", "@no/such", "./deeper.cjs", "./throws.mjs", "./none", "/abs/none"]) {
  answers.required.push([name, await told(() => require(name))]);
}
answers.gone = (await told(() => require("p/gone"))).code;
answers.imported = [];
for (const name of ["p", "p/ok", "p/nope", "p/gone", "no-such-package", "@no/such"]) {
  answers.imported.push([name, await told(() => load(name))]);
}
answers.resolved = [];
for (const name of ["p", "p/ok", "node:fs", "fs", "./none.mjs", "../up", "/abs", "nope:x", "http://a.example/b"]) {
  answers.resolved.push([name, await told(() => find(name))]);
}

// Searches further folders, with errors that arrive later.
const inPath = () => told(() => createRequire(`${here}/other.js`)("inpath"));
answers.path = [await inPath()];
process.env.NODE_PATH = `${here}/folder`;
require("node:module").Module._initPaths();
answers.path.push(await inPath(), require("node:module").globalPaths.includes(`${here}/folder`));

answers.names = [typeof require("node:module").register];

answers.addresses = [];
for (const words of [["nope"], ["//x"], ["http://"], ["/x", "nope"], [""], ["http://x:99999"], ["http://[::1"]]) {
  answers.addresses.push(await told(() => new URL(...words).href));
}
class Own extends URL {}
answers.classes = [
  new Own("http://a.example/") instanceof Own,
  new Own("http://a.example/") instanceof URL,
  url.URL === URL,
  url.pathToFileURL("/a") instanceof URL,
  url.pathToFileURL("/a").constructor === URL,
  URL.name,
  URL.canParse("nope"),
  await told(() => new Own("nope")),
  (() => {
    try {
      new URL("nope");
    } catch ({ stack }) {
      return stack.includes("modules.mjs");
    }
  })(),
];

for (const [name, answer] of Object.entries(answers)) {
  console.log(name, JSON.stringify(answer, null, 1).replaceAll(here, "HERE"));
}
