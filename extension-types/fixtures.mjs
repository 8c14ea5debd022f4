// Type-checks the TypeScript fixtures of tests:  node fixtures.mjs <folder of the tests>
// Fixtures are written as loosely as published extensions, so a parameter without a type is `any`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const packages = process.env.PI_TYPES_PACKAGES ?? join(here, "node_modules");
const root = resolve(process.argv[2]);

/** The fixture whose wrong imports are the subject of its test. */
const WRONG_IMPORTS = "missing-exports-are-reported-at-the-import.ts";

const paths = {
  "@sinclair/typebox": [join(packages, "@sinclair/typebox/build/esm/index.d.mts")],
  typebox: [join(packages, "typebox/build/index.d.mts")],
};
for (const scope of ["@mariozechner", "@earendil-works"]) {
  paths[`${scope}/pi-coding-agent`] = [join(here, "index.d.ts")];
  paths[`${scope}/pi-coding-agent/test`] = [join(here, "test.d.ts")];
  paths[`${scope}/*`] = [join(here, "*.d.ts")];
}
const compilerOptions = {
  strict: false,
  noEmit: true,
  target: "esnext",
  module: "esnext",
  moduleResolution: "bundler",
  moduleDetection: "force",
  allowImportingTsExtensions: true,
  lib: ["esnext", "dom", "dom.iterable"],
  typeRoots: [join(packages, "@types")],
  types: ["node"],
  skipLibCheck: true,
  paths,
};

const folder = mkdtempSync(join(tmpdir(), "pi-fixtures-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const config = join(folder, "tsconfig.json");
const include = ["**/fixtures/**/*.ts", "hostile/attacks/*.ts", "rpc/stories/*.ts"].map((path) => join(root, path));
const exclude = [join(root, `**/${WRONG_IMPORTS}`)];
writeFileSync(config, JSON.stringify({ compilerOptions, include, exclude }));
const tsc = join(packages, "typescript/bin/tsc");
const { stdout, stderr, error } = spawnSync(process.execPath, [tsc, "-p", config, "--pretty", "false"], { cwd: root, encoding: "utf8" });
if (error) throw error;
const problems = (stdout + stderr).split("\n").filter((line) => line !== "");
console.log([...problems, `fixtures: ${problems.length === 0 ? "ok" : "FAILED"}`].join("\n"));
if (problems.length > 0) process.exitCode = 1;
