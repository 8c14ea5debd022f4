// Compares the names that the original exports with those of these types:
//   node names.mjs FOLDER...
// FOLDER has the packages of a scope (node_modules/@mariozechner). What is missing here has to
// have its reason in check/absent.json, and what has one there has to be missing.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const packages = process.env.PI_TYPES_PACKAGES ?? join(here, "node_modules");
const ts = createRequire(join(packages, "typescript/package.json"))("typescript");

/** The file that declares a module, whose name has no scope. */
const ours = (module) => join(here, module === "pi-coding-agent" ? "index.d.ts" : `${module}.d.ts`);

/** The exports of each module of a scope, by name: whether it is a type, a value, or both. */
function exportsOf(files) {
  const options = {
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    target: ts.ScriptTarget.ESNext,
    skipLibCheck: true,
    types: [],
  };
  const program = ts.createProgram(files, options);
  const checker = program.getTypeChecker();
  return files.map((file) => {
    const symbol = checker.getSymbolAtLocation(program.getSourceFile(file));
    return new Map(checker.getExportsOfModule(symbol).map((found) => {
      const { flags } = found.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(found) : found;
      return [found.name, { type: flags & ts.SymbolFlags.Type, value: flags & ts.SymbolFlags.Value }];
    }));
  });
}

/** The modules of a scope that have types, including those of newer versions only. */
function modulesOf(scope) {
  const found = new Map();
  for (const name of ["pi-coding-agent", "pi-ai", "pi-agent-core", "pi-tui"]) {
    const { exports = {}, types } = JSON.parse(readFileSync(join(scope, name, "package.json"), "utf8"));
    const entries = { ".": { types }, ...exports };
    for (const [path, entry] of Object.entries(entries)) {
      const file = entry.types && join(scope, name, entry.types);
      if (file && existsSync(file)) found.set(join(name, path), file);
    }
  }
  return found;
}

const absent = JSON.parse(readFileSync(join(here, "check/absent.json"), "utf8"));
/** The names that may be missing; `*` stands for all. An entry without a scope is for both. */
function excused(module, scope) {
  const fits = (entry) => entry.modules.includes(module) && (entry.scope ?? scope) === scope;
  return new Set(absent.filter(fits).flatMap(({ names }) => names));
}
const problems = [];

// Every module that pi loads has a file here, and the other way round.
const loaded = readFileSync(join(here, "../js-runtime/ext/src/virtual_modules.rs"), "utf8");
for (const [, module] of loaded.matchAll(/^ {4}\("(pi-[^"]*)", "pi:/gm)) {
  const file = module === "pi-coding-agent/test" ? join(here, "test.d.ts") : ours(module);
  if (!existsSync(file)) problems.push(`${module} is loaded by pi, and ${relative(here, file)} is missing`);
}

// Every action with keys in the program is in the types, and the other way round.
const actions = (path) => new Set(readFileSync(join(here, path), "utf8").match(/"(tui|app)\.[^"]*"/g));
const [bound, typed] = ["../src/resources/keybindings/table.rs", "extension/keybindings.d.ts"].map(actions);
for (const action of bound) if (!typed.has(action)) problems.push(`${action} is missing in keybindings.d.ts`);
for (const action of typed) if (!bound.has(action)) problems.push(`${action} is typed, but nothing has that name`);

for (const scope of process.argv.slice(2)) {
  const modules = [...modulesOf(resolve(scope))];
  const theirs = exportsOf(modules.map(([, file]) => file));
  const present = modules.map(([module]) => ours(module)).filter(existsSync);
  const covered = new Map(exportsOf(present).map((names, index) => [present[index], names]));
  modules.forEach(([module], index) => {
    const reasons = excused(module, basename(scope));
    const names = covered.get(ours(module));
    if (!names) {
      if (!reasons.has("*")) problems.push(`${module}: there are no types for it`);
      return;
    }
    for (const [name, { type, value }] of theirs[index]) {
      const own = names.get(name);
      const isThere = own && (!type || own.type) && (!value || own.value);
      if (!isThere && !reasons.has(name) && !reasons.has("*")) problems.push(`${module}: ${name} is missing`);
      if (isThere && reasons.has(name)) problems.push(`${module}: ${name} is there, and check/absent.json says that it is not`);
    }
  });
}

for (const problem of problems) console.log(problem);
console.log(`names: ${problems.length === 0 ? "ok" : "FAILED"}`);
process.exit(problems.length === 0 ? 0 : 1);
