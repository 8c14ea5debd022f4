// Turns the npm packages that are part of the binary into ASCII ES modules that
// the startup snapshot can hold, and writes a table of names and files.
//
//   node bundle.mjs <output directory>
//
// Run by ../ext/build.rs after `npm ci`. Everything is bundled in one go with code
// splitting, so that a package's root and its sub-paths share one copy of their
// symbols and registries.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Packages by the name that extensions use, with the folder of their modules below `pi:npm/`. */
const PACKAGES = [
  { name: "@sinclair/typebox", folder: "sinclair-typebox", public: true },
  { name: "typebox", folder: "typebox", public: true },
  // Used by our own modules only. Extensions bring their own copy.
  { name: "yaml", folder: "yaml", public: false, only: ["."] },
];

/** Names without a package of their own that newer extensions use. */
const ALIASES = [["@sinclair/typebox/compile", "typebox/compile"]];

const SCHEME = "pi:npm";
const CONDITIONS = ["import", "module"];

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? fail("the output directory is missing: node bundle.mjs <output directory>"));

function fail(message) {
  console.error(`bundle.mjs: ${message}`);
  process.exit(1);
}

/** The sub-paths that a package exports to ES modules: `.`, `./value`, ... */
function subPaths({ name, only }) {
  if (only) return only;
  const manifest = JSON.parse(readFileSync(join(here, "node_modules", name, "package.json"), "utf8"));
  return Object.keys(manifest.exports).filter((path) => !path.endsWith(".json") && !path.includes("*"));
}

const entryPoints = {};
const modules = [];
for (const item of PACKAGES) {
  for (const path of subPaths(item)) {
    const file = `${item.folder}/${path === "." ? "index" : path.slice(2)}`;
    const specifier = path === "." ? item.name : `${item.name}/${path.slice(2)}`;
    entryPoints[file] = specifier;
    if (item.public) modules.push([specifier, `${SCHEME}/${file}.js`]);
  }
}
for (const [alias, target] of ALIASES) {
  const found = modules.find(([name]) => name === target) ?? fail(`${alias} stands for ${target}, which is not bundled`);
  modules.push([alias, found[1]]);
}

rmSync(out, { recursive: true, force: true });
const result = await build({
  absWorkingDir: here,
  entryPoints,
  outdir: out,
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  platform: "neutral",
  mainFields: ["module", "main"],
  conditions: CONDITIONS,
  charset: "ascii",
  minifyWhitespace: true,
  legalComments: "eof",
  chunkNames: "chunk-[hash]",
  // Chunks import each other by their full name: there is no directory in the binary.
  publicPath: SCHEME,
  metafile: true,
  logLevel: "warning",
});

const lines = modules.map(([name, specifier]) => `module\t${name}\t${specifier}`);
for (const [path, output] of Object.entries(result.metafile.outputs)) {
  const absolute = resolve(here, path);
  const text = readFileSync(absolute, "utf8");
  if (/[^\0-\x7f]/.test(text)) fail(`${path} is not ASCII`);
  for (const { path: imported, external } of output.imports) {
    if (external) fail(`${path} imports ${imported}, which is not in the bundle`);
  }
  const specifier = `${SCHEME}/${relative(out, absolute).replaceAll("\\", "/")}`;
  lines.push(`file\t${specifier}\t${absolute}`);
}
writeFileSync(join(out, "manifest.tsv"), lines.sort().join("\n") + "\n");
