// Compares the types with the modules of the runtime, and type-checks the extensions
// that are named:  node check.mjs [file or folder]...
import { spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const js = join(here, "../js-runtime/js");
const tests = join(js, "modules/pi-coding-agent/test");
const modules = (path) => [join(here, "node_modules", path)];

const paths = {
  "pi:missing.ts": [join(js, "missing.ts")],
  "pi:npm/sinclair-typebox/index.js": modules("@sinclair/typebox/build/esm/index.d.mts"),
  "pi:npm/typebox/index.js": modules("typebox/build/index.d.mts"),
  "pi:npm/yaml/index.js": modules("yaml/dist/index.d.ts"),
  "pi:*": [join(js, "modules/*")],
  "@sinclair/typebox": modules("@sinclair/typebox/build/esm/index.d.mts"),
  typebox: modules("typebox/build/index.d.mts"),
};
for (const scope of ["@mariozechner", "@earendil-works"]) {
  paths[`${scope}/pi-coding-agent`] = [join(here, "index.d.ts")];
  paths[`${scope}/pi-coding-agent/test`] = [join(here, "test.d.ts")];
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
  typeRoots: [join(here, "node_modules/@types")],
  paths,
};

function check(what, options, include, exclude = []) {
  const config = join(here, `tsconfig.${what.replace(" ", "-")}.tmp.json`);
  writeFileSync(config, JSON.stringify({ compilerOptions: { ...compilerOptions, ...options }, include, exclude }));
  const tsc = join(here, "node_modules/typescript/bin/tsc");
  const { status } = spawnSync(process.execPath, [tsc, "-p", config], { stdio: "inherit" });
  rmSync(config);
  console.log(`${what}: ${status === 0 ? "ok" : "FAILED"}`);
  return status === 0;
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
const extensions = process.argv.slice(2).map((path) => resolve(path));
if (extensions.length > 0) {
  const options = { types: ["node"], skipLibCheck: true, noUnusedLocals: false, noUnusedParameters: false };
  results.push(check("extensions", options, extensions));
}
process.exit(results.every(Boolean) ? 0 : 1);
