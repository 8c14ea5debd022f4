#!/usr/bin/env node
// Refreshes src/ai/models/catalogue/*.json: the facts about the built-in models, taken from a
// published version of the original's package of models. Run it at each release:
//
//   node scripts/catalogue.mjs VERSION     installs @earendil-works/pi-ai@VERSION and writes
//   node scripts/catalogue.mjs --from DIR  takes an installed package instead
//   node scripts/catalogue.mjs --list      prints what the catalogue has, for the list of a
//                                          version that src/ai/models/catalogue/tests keeps
//
// One file per provider, so that the program parses only the providers it needs:
//
//   variants  what models share: api, baseUrl, headers?, compat?, thinkingLevelMap?; the
//             first one is that of the provider's first model, which is what custom models
//             in models.json inherit
//   models    one row each: [id, name, flags, context window, max tokens,
//             [input, output, cache read, cache write], variant = 0, tiers = []];
//             flags: r = reasoning, i = takes images; a tier is [tokens, ...prices]:
//             requests of more input tokens than that cost these prices
//   older     rows of models that were published before and are not any more: users have
//             them in their settings and sessions
//
// A provider that is not published any more keeps its file. Models of a wire API that is not
// implemented are counted and left out.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGE = "@earendil-works/pi-ai";
const IMPLEMENTED = [
  "anthropic-messages",
  "azure-openai-responses",
  "bedrock-converse-stream",
  "google-gemini-cli",
  "google-generative-ai",
  "google-vertex",
  "mistral-conversations",
  "openai-codex-responses",
  "openai-completions",
  "openai-responses",
];

const catalogue = join(dirname(fileURLToPath(import.meta.url)), "../src/ai/models/catalogue");
const fileOf = (provider) => join(catalogue, `${provider}.json`);
const read = (path) => JSON.parse(readFileSync(path, "utf8"));

// An address that depends on the user's settings can only be made by an API that knows them.
const isUsable = (model) =>
  IMPLEMENTED.includes(model.api) && (model.baseUrl !== "" || model.api.startsWith("azure-"));

function flags(model) {
  const known = ["text", "image"];
  const unknown = model.input.filter((kind) => !known.includes(kind));
  if (unknown.length > 0 || !model.input.includes("text")) {
    throw new Error(`${model.provider}/${model.id}: input ${model.input} does not fit the layout`);
  }
  return (model.reasoning ? "r" : "") + (model.input.includes("image") ? "i" : "");
}

const pricesOf = ({ input, output, cacheRead, cacheWrite }) => [input, output, cacheRead, cacheWrite];

class Provider {
  variants = [];

  variant({ api, baseUrl, headers, compat, thinkingLevelMap }) {
    const text = JSON.stringify({ api, baseUrl, headers, compat, thinkingLevelMap });
    if (!this.variants.includes(text)) this.variants.push(text);
    return this.variants.indexOf(text);
  }

  row(model) {
    const tiers = (model.cost.tiers ?? []).map((tier) => [tier.inputTokensAbove, ...pricesOf(tier)]);
    const row = [model.id, model.name, flags(model), model.contextWindow, model.maxTokens, pricesOf(model.cost)];
    return this.finish(row, this.variant(model), tiers);
  }

  // A row of the catalogue as it was.
  keep(row, variants) {
    const [known, variant = 0, tiers = []] = [row.slice(0, 6), row[6], row[7]];
    return this.finish(known, this.variant(variants[variant]), tiers);
  }

  finish(row, variant, tiers) {
    if (tiers.length > 0) return JSON.stringify([...row, variant, tiers]);
    return JSON.stringify(variant === 0 ? row : [...row, variant]);
  }
}

const block = (lines) => (lines.length === 0 ? "[]" : `[\n    ${lines.join(",\n    ")}\n  ]`);

function published(folder) {
  const data = join(folder, "dist/providers/data");
  if (!existsSync(data)) throw new Error(`Not there: ${data}`);
  const providers = readdirSync(data).filter((name) => name.endsWith(".json")).sort();
  return providers.map((name) => {
    const models = Object.values(read(join(data, name))).flatMap((group) => Object.values(group));
    return [name.slice(0, -".json".length), models.filter(({ type }) => type === "chat")];
  });
}

function refresh(folder) {
  const total = { models: 0, older: 0, left: 0 };
  for (const [id, all] of published(folder)) {
    const models = all.filter(isUsable);
    total.left += all.length - models.length;
    if (models.length === 0) continue;
    const provider = new Provider();
    const rows = models.map((model) => provider.row(model));
    const ids = new Set(models.map((model) => model.id));
    const before = existsSync(fileOf(id)) ? read(fileOf(id)) : { variants: [], models: [] };
    const older = [...before.models, ...(before.older ?? [])]
      .filter(([known]) => !ids.has(known))
      .map((row) => provider.keep(row, before.variants));
    total.models += rows.length;
    total.older += older.length;
    const members = [`"variants": ${block(provider.variants)}`, `"models": ${block(rows)}`];
    if (older.length > 0) members.push(`"older": ${block(older)}`);
    writeFileSync(fileOf(id), `{\n  ${members.join(",\n  ")}\n}\n`);
    read(fileOf(id));
  }
  console.log(`${total.models} models written, ${total.older} older ones kept, ${total.left} left out`);
}

function list() {
  for (const name of readdirSync(catalogue).filter((name) => name.endsWith(".json")).sort()) {
    const { models, older = [] } = read(join(catalogue, name));
    for (const [id, , , context, tokens, prices] of [...models, ...older]) {
      console.log([name.slice(0, -".json".length), id, context, tokens, ...prices].join("\t"));
    }
  }
}

const [argument, folder] = process.argv.slice(2);
if (argument === "--list") {
  list();
} else if (argument === "--from" && folder) {
  refresh(resolve(folder));
} else if (argument && /^\d/.test(argument)) {
  const room = mkdtempSync(join(tmpdir(), "pi-catalogue-"));
  try {
    const options = ["--prefix", room, "--ignore-scripts", "--no-audit", "--no-fund", "--silent"];
    execFileSync("npm", ["install", ...options, `${PACKAGE}@${argument}`], { stdio: "inherit" });
    refresh(join(room, "node_modules", PACKAGE));
  } finally {
    rmSync(room, { recursive: true, force: true });
  }
} else {
  console.error("Which version? See the beginning of this script.");
  process.exit(1);
}
