// Makes one script and one style of the page's sources and of the npm packages they
// use: minified, ASCII, compressed for the binary, and with the hashes by which the
// page's own content security policy knows them.
//
//   node bundle.mjs <output directory>
//
// Run by the crate's build.rs after `npm ci`.

import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { deflateSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? fail("say where to write: node bundle.mjs <output directory>"));

function fail(message) {
  console.error(`bundle.mjs: ${message}`);
  process.exit(1);
}

const common = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  charset: "ascii",
  legalComments: "eof",
  // These versions also support `light-dark()`.
  target: ["chrome123", "firefox120", "safari17.5"],
  write: false,
  logLevel: "warning",
};

async function bundle(entry, options) {
  const result = await build({ ...common, ...options, entryPoints: [entry] });
  return result.outputFiles[0].text;
}

const script = await bundle("src/main.ts", { format: "iife", platform: "browser" });
const style = await bundle("src/page.css", {});

// Both texts stand inside an element of the page, which these sequences would close, or keep open.
for (const [name, text] of Object.entries({ script, style })) {
  const found = /<\/(script|style)|<script[\s/>]|\r/i.exec(text);
  if (found) fail(`the ${name} contains ${JSON.stringify(found[0])}, which HTML would take for its own`);
  if (/[^\0-\x7f]/.test(text)) fail(`the ${name} is not ASCII`);
}

mkdirSync(out, { recursive: true });
const hashes = [];
for (const [name, text] of Object.entries({ script, style })) {
  writeFileSync(join(out, `${name}.zlib`), deflateSync(text, { level: 9 }));
  const hash = createHash("sha256").update(text).digest("base64");
  hashes.push(`pub(super) const ${name.toUpperCase()}_HASH: &str = "sha256-${hash}";`);
}
writeFileSync(join(out, "hashes.rs"), hashes.join("\n") + "\n");
