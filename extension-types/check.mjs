// Compares the types with the modules of the runtime, and type-checks extensions:
//   node check.mjs [--original FOLDER] [file or folder]...
// FOLDER has the original's examples: exactly what known.json says may be wrong there.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const js = join(here, "../js-runtime/js");
const tests = join(js, "modules/pi-coding-agent/test");
// Where `npm ci` has put what package.json names.
const packages = process.env.PI_TYPES_PACKAGES ?? join(here, "node_modules");
const typesOf = (path) => [join(packages, path)];

const paths = {
  "pi:missing.ts": [join(js, "missing.ts")],
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
  paths[`${scope}/pi-ai/compat`] = [join(here, "pi-ai.d.ts")];
  for (const name of ["pi-ai", "pi-tui", "pi-agent-core"]) paths[`${scope}/${name}`] = [join(here, `${name}.d.ts`)];
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
// The style of extensions is their authors'.
const lenient = {
  types: ["node"],
  skipLibCheck: true,
  noImplicitOverride: false,
  noUnusedLocals: false,
  noUnusedParameters: false,
};

const folder = mkdtempSync(join(tmpdir(), "pi-types-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

/** What the compiler complains about. */
function compile(options, include, exclude = []) {
  const config = join(folder, "tsconfig.json");
  writeFileSync(config, JSON.stringify({ compilerOptions: { ...compilerOptions, ...options }, include, exclude }));
  const tsc = join(packages, "typescript/bin/tsc");
  const { stdout, stderr, error } = spawnSync(process.execPath, [tsc, "-p", config], { cwd: here, encoding: "utf8" });
  if (error) throw error;
  return (stdout + stderr).trim();
}

function check(what, ...how) {
  const said = compile(...how);
  console.log(said === "" ? `${what}: ok` : `${said}\n${what}: FAILED`);
  return said === "";
}

/** The examples of the original, with what is known to be wrong there. */
function original(examples) {
  const root = realpathSync(examples);
  const found = compile(lenient, [root]).split("\n").flatMap((line) => {
    const match = /^(.+)\(\d+,\d+\): error TS\d+: (.*)$/.exec(line);
    if (!match) return [];
    return [`${relative(root, realpathSync(resolve(here, match[1])))}: ${match[2].replaceAll(root, "")}`];
  });
  const known = JSON.parse(readFileSync(join(here, "known.json"), "utf8")).map(({ file, message }) => `${file}: ${message}`);
  const unknown = found.filter((problem) => !known.includes(problem));
  const gone = known.filter((problem) => !found.includes(problem));
  for (const problem of unknown) console.log(problem);
  for (const problem of gone) console.log(`known.json names what is no problem any more: ${problem}`);
  const fine = unknown.length + gone.length === 0;
  console.log(`the original's examples: ${fine ? "ok" : "FAILED"}`);
  return fine;
}

const results = [
  // Our own modules must do without Node's types: they run in the snapshot.
  check("modules", { types: [], skipLibCheck: true }, [join(js, "modules/**/*.ts"), join(js, "missing.ts")], [tests, `${tests}.ts`]),
  // All but what `pi test` brings, which is loaded late.
  check("test module", { types: ["node"], skipLibCheck: true }, [
    `${tests}.ts`,
    join(tests, "*.ts"),
    join(here, "check/test-module.ts"),
  ]),
  check("types", { types: [], skipLibCheck: false }, [join(here, "*.d.ts"), join(here, "check/values.ts")]),
];
const words = process.argv.slice(2);
const at = words.indexOf("--original");
if (at >= 0) results.push(original(words.splice(at, 2)[1]));
const extensions = words.map((path) => resolve(path));
if (extensions.length > 0) results.push(check("extensions", lenient, extensions));
process.exit(results.every(Boolean) ? 0 : 1);
