// Compares the types with the modules of the runtime, and type-checks extensions:
//   node check.mjs [--original FOLDER] [file or folder]...
// FOLDER has the original's examples, which must have exactly the problems listed in known.json.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const js = join(here, "../js-runtime/js");
const tests = join(js, "modules/pi-coding-agent/test");
// The folder in which `npm ci` has installed the dependencies of package.json.
const packages = process.env.PI_TYPES_PACKAGES ?? join(here, "node_modules");
// Folders of types beside the entry points.
const FOLDERS = ["ai", "extension", "pi-ai", "sdk", "tui"];
const typesOf = (path) => [join(packages, path)];

const paths = {
  "pi:unavailable.ts": [join(js, "unavailable.ts")],
  // Written by js-runtime/ext/build.rs.
  "pi:version.ts": [join(js, "modules/version.d.ts")],
  "pi:npm/sinclair-typebox/index.js": typesOf("@sinclair/typebox/build/esm/index.d.mts"),
  "pi:npm/typebox/index.js": typesOf("typebox/build/index.d.mts"),
  "pi:npm/yaml/index.js": typesOf("yaml/dist/index.d.ts"),
  "pi:*": [join(js, "modules/*")],
  "@sinclair/typebox": typesOf("@sinclair/typebox/build/esm/index.d.mts"),
  typebox: typesOf("typebox/build/index.d.mts"),
};
for (const scope of ["@mariozechner", "@earendil-works"]) {
  paths[`${scope}/pi-coding-agent`] = [join(here, "index.d.ts")];
  paths[`${scope}/pi-coding-agent/test`] = [join(here, "test.d.ts")];
  paths[`${scope}/*`] = [join(here, "*.d.ts")];
}

const compilerOptions = {
  strict: true,
  noEmit: true,
  noImplicitOverride: true,
  noUnusedLocals: true,
  noUnusedParameters: true,
  target: "esnext",
  module: "esnext",
  moduleResolution: "bundler",
  allowImportingTsExtensions: true,
  lib: ["esnext", "dom", "dom.iterable"],
  typeRoots: [join(packages, "@types")],
  paths,
};
// Options for extensions, whose style is up to their authors.
const lenient = {
  types: ["node"],
  skipLibCheck: true,
  noImplicitOverride: false,
  noUnusedLocals: false,
  noUnusedParameters: false,
};

const folder = mkdtempSync(join(tmpdir(), "pi-types-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

/** Returns the messages of the compiler. */
function compile(options, include, exclude = []) {
  const config = join(folder, "tsconfig.json");
  writeFileSync(config, JSON.stringify({ compilerOptions: { ...compilerOptions, ...options }, include, exclude }));
  return run(config, here);
}

function run(config, cwd) {
  const tsc = join(packages, "typescript/bin/tsc");
  const { stdout, stderr, error } = spawnSync(process.execPath, [tsc, "-p", config], { cwd, encoding: "utf8" });
  if (error) throw error;
  return (stdout + stderr).trim();
}

function check(what, ...how) {
  return report(what, compile(...how));
}

function report(what, output) {
  console.log(output === "" ? `${what}: ok` : `${output}\n${what}: FAILED`);
  return output === "";
}

/** Checks extensions with an author's options; below `root`, exactly the known problems are allowed. */
function checkExtensions(paths, root) {
  const output = compile(lenient, [...paths, ...(root ? [root] : [])]);
  const known = root ? JSON.parse(readFileSync(join(here, "known.json"), "utf8")) : [];
  const missed = new Set(known.map(({ file, message }) => `${file}: ${message}`));
  const problems = output.split("\n").filter((line) => {
    const found = /^(.+)\(\d+,\d+\): error TS\d+: (.*)$/.exec(line);
    // Other lines continue the message before.
    if (!found) return output !== "" && !root;
    const file = realpathSync(resolve(here, found[1]));
    return !missed.delete(root ? `${relative(root, file)}: ${found[2].replaceAll(root, "")}` : "");
  });
  for (const problem of missed) problems.push(`known.json names what is no problem any more: ${problem}`);
  console.log([...problems, `extensions: ${problems.length === 0 ? "ok" : "FAILED"}`].join("\n"));
  return problems.length === 0;
}

/** Checks the set-up of README.md, with one package for schemas and possibly without the other. */
function checkAuthor(resolution, schemas, ...others) {
  const author = mkdtempSync(join(folder, "author-"));
  const types = join(author, "node_modules/pi-extension-types");
  mkdirSync(types, { recursive: true });
  const published = readdirSync(here).filter((name) => name.endsWith(".d.ts") || FOLDERS.includes(name));
  for (const name of published) cpSync(join(here, name), join(types, name), { recursive: true });
  for (const name of ["@types/node", schemas, ...others]) {
    mkdirSync(dirname(join(author, "node_modules", name)), { recursive: true });
    symlinkSync(join(realpathSync(packages), name), join(author, "node_modules", name));
  }
  const { compilerOptions } = JSON.parse(/```json\n([^]*?)```/.exec(readFileSync(join(here, "README.md"), "utf8"))[1]);
  const module = resolution === "bundler" ? {} : { module: resolution };
  const options = { ...compilerOptions, ...module, moduleResolution: resolution, skipLibCheck: false };
  writeFileSync(join(author, "package.json"), '{"type":"module"}');
  const files = ["author.ts", "newer.ts", ...(others.length > 0 ? [] : ["generic.ts"])];
  writeFileSync(join(author, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files }));
  for (const name of files) {
    const text = readFileSync(join(here, "check", name), "utf8");
    writeFileSync(join(author, name), text.replace('"typebox"', `"${schemas}"`));
  }
  return report(`with ${schemas} ${others.length > 0 ? `and ${others}` : "only"}, ${resolution}`, run(author, author));
}

const results = [
  // Our own modules must not need Node's types: they run in the snapshot.
  check(
    "modules and types",
    { types: [], skipDefaultLibCheck: true },
    [join(js, "modules/**/*.ts"), join(js, "unavailable.ts"), join(here, "*.d.ts"), ...FOLDERS.map((name) => join(here, name, "**/*.d.ts")), join(here, "check/values.ts")],
    [tests, `${tests}.ts`],
  ),
  // Everything except the modules of `pi test`, which are loaded late.
  check("test module", { types: ["node"], skipLibCheck: true }, [
    `${tests}.ts`,
    join(tests, "*.ts"),
    join(here, "check/test-module.ts"),
  ]),
  checkAuthor("bundler", "typebox"),
  checkAuthor("nodenext", "typebox"),
  checkAuthor("node16", "@sinclair/typebox"),
  checkAuthor("bundler", "typebox", "@sinclair/typebox"),
  checkAuthor("bundler", "@sinclair/typebox", "typebox"),
];
const words = process.argv.slice(2);
const at = words.indexOf("--original");
const original = at < 0 ? undefined : realpathSync(words.splice(at, 2)[1]);
const extensions = words.map((path) => resolve(path));
if (extensions.length > 0 || original) results.push(checkExtensions(extensions, original));
process.exit(results.every(Boolean) ? 0 : 1);
