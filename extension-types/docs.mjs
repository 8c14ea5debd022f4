// Compares docs/extensions with the types, both ways: every member, event, field and
// export has a row there, and every row is about something that there is.
//   node docs.mjs
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const packages = process.env.PI_TYPES_PACKAGES ?? join(here, "node_modules");
const ts = createRequire(join(packages, "typescript/package.json"))("typescript");

/** The interface that a section documents, by its heading. */
const INTERFACES = {
  "`pi`": "ExtensionAPI",
  "`ctx`": "ExtensionContext",
  "`ctx` of commands": "ExtensionCommandContext",
  "`ctx.ui`": "ExtensionUIContext",
  "`ctx.sessionManager`": "ReadonlySessionManager",
  "`ctx.modelRegistry`": "ModelRegistry",
  "A tool": "ToolDefinition",
  "A provider": "ProviderConfig",
};
const MODULES = {
  "`pi-coding-agent`": "index",
  "`pi-ai`": "pi-ai",
  "`pi-tui`": "pi-tui",
  "`pi-agent-core`": "pi-agent-core",
  "`pi-coding-agent/test`": "test",
};

const file = (name) => join(here, `${name}.d.ts`);
const program = ts.createProgram(Object.values(MODULES).map(file), {
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  target: ts.ScriptTarget.ESNext,
  skipLibCheck: true,
  types: [],
});
const checker = program.getTypeChecker();

function exportsOf(module) {
  const symbol = checker.getSymbolAtLocation(program.getSourceFile(file(module)));
  const typeOnly = (node) => ts.isExportSpecifier(node) && (node.isTypeOnly || node.parent.parent.isTypeOnly);
  return checker.getExportsOfModule(symbol).filter(({ declarations }) => !declarations.some(typeOnly)).map((found) => ({
    name: found.name,
    symbol: found.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(found) : found,
  }));
}
const main = new Map(exportsOf("index").map(({ name, symbol }) => [name, symbol]));
const typeOf = (name) => checker.getDeclaredTypeOfSymbol(main.get(name));
const isPrivate = (symbol) =>
  (symbol.declarations ?? []).some((declaration) => ts.getCombinedModifierFlags(declaration) & ts.ModifierFlags.Private);
const members = (type) =>
  checker.getPropertiesOfType(type).filter((symbol) => !isPrivate(symbol)).map(({ name }) => name);
/** Includes members that only some members of a union have. */
const all = (type) => [...new Set(type.isUnion() ? type.types.flatMap(members) : members(type))];

/** The rows of a section's tables, as lists of cells. */
function sections(name) {
  const found = new Map();
  let rows;
  for (const line of readFileSync(join(here, "../docs/extensions", name), "utf8").split("\n")) {
    const heading = /^## (.*)$/.exec(line);
    if (heading) found.set(heading[1], (rows = []));
    if (!line.startsWith("|") || /^\|[-| ]+\|$/.test(line)) continue;
    rows?.push(line.replaceAll("\\|", "\u0000").split("|").slice(1, -1).map((cell) => cell.replaceAll("\u0000", "|").trim()));
  }
  return found;
}
/** Values follow a colon: `reason`: `new` or `resume`; `name` */
const fields = (cell) => names(cell.replaceAll(/: [^;]*/g, ""));
const names = (cell) => [...cell.matchAll(/`([A-Za-z_]\w*)[^`]*`/g)].map((match) => match[1]);

const problems = [];
function compare(where, documented, real) {
  for (const name of real) if (!documented.includes(name)) problems.push(`${where}: ${name} is not documented`);
  for (const name of documented) if (!real.includes(name)) problems.push(`${where}: ${name} is documented, but there is no such thing`);
  const twice = documented.filter((name, index) => documented.indexOf(name) !== index);
  for (const name of twice) problems.push(`${where}: ${name} is documented twice`);
}

const api = sections("api.md");
const inherited = new Set(members(typeOf("ExtensionContext")));
for (const [heading, type] of Object.entries(INTERFACES)) {
  const own = members(typeOf(type)).filter((name) => type !== "ExtensionCommandContext" || !inherited.has(name));
  compare(`api.md, ${heading}`, (api.get(heading) ?? []).flatMap(([cell]) => names(cell)), own);
}

const events = checker.getPropertiesOfType(typeOf("ExtensionEvents"));
const rows = [...sections("events.md").values()].flat().filter(([cell]) => names(cell).length > 0);
compare("events.md", rows.flatMap(([cell]) => names(cell)), events.map(({ name }) => name));
for (const event of events) {
  const row = rows.find(([cell]) => names(cell).includes(event.name));
  if (!row) continue;
  const [about, answer] = checker.getTypeArguments(checker.getTypeOfSymbol(event));
  compare(`events.md, fields of ${event.name}`, fields(row[1]), all(about).filter((name) => name !== "type"));
  compare(`events.md, answer to ${event.name}`, fields(row[2]), answer.flags & ts.TypeFlags.Unknown ? [] : all(answer));
}

const modules = sections("modules.md");
for (const [heading, module] of Object.entries(MODULES)) {
  const values = exportsOf(module).filter(({ symbol }) => symbol.flags & ts.SymbolFlags.Value);
  compare(`modules.md, ${heading}`, (modules.get(heading) ?? []).flatMap(([cell]) => names(cell)), values.map(({ name }) => name));
}

for (const problem of problems) console.log(problem);
console.log(`documentation: ${problems.length === 0 ? "ok" : "FAILED"}`);
process.exit(problems.length === 0 ? 0 : 1);
