#!/usr/bin/env node
// Refreshes src/ai/catalogue/*.json: the facts about the built-in models, taken
// from an installed @mariozechner/pi-ai.
//
//   node scripts/catalogue.mjs <node_modules/@mariozechner/pi-ai> [output folder]
//
// One file per provider, so that the program parses only the providers it needs:
//
//   variants  how its models are reached: api, baseUrl, headers?, compat?; the
//             first one is that of the provider's first model, which is what
//             custom models in models.json inherit
//   models    one row each: [id, name, flags, context window, max tokens,
//             [input, output, cache read, cache write], variant = 0];
//             flags: r = reasoning, i = takes images
//
// Providers whose wire API is not implemented yet keep their variants and have
// no rows.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

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

const [packageFolder, outputArgument] = process.argv.slice(2);
const source = packageFolder && resolve(packageFolder, "dist/models.generated.js");
if (!source || !existsSync(source)) {
  console.error(source ? `Not there: ${source}` : "Which pi-ai? Give its package folder.");
  process.exit(1);
}
const here = dirname(fileURLToPath(import.meta.url));
const output = resolve(outputArgument ?? join(here, "../src/ai/catalogue"));
const { MODELS } = await import(pathToFileURL(source));

function flags(model) {
  const known = ["text", "image"];
  const unknown = model.input.filter((kind) => !known.includes(kind));
  if (unknown.length > 0 || !model.input.includes("text")) {
    throw new Error(`${model.provider}/${model.id}: input ${model.input} does not fit the layout`);
  }
  return (model.reasoning ? "r" : "") + (model.input.includes("image") ? "i" : "");
}

function describe(models) {
  const variants = [];
  const rows = [];
  const variantOf = ({ api, baseUrl, headers, compat }) => {
    const text = JSON.stringify({ api, baseUrl, headers, compat });
    if (!variants.includes(text)) variants.push(text);
    return variants.indexOf(text);
  };
  // The first model decides the first variant, implemented or not.
  variantOf(models[0]);
  for (const model of models.filter(({ api }) => IMPLEMENTED.includes(api))) {
    const { input, output, cacheRead, cacheWrite } = model.cost;
    const prices = [input, output, cacheRead, cacheWrite];
    const row = [model.id, model.name, flags(model), model.contextWindow, model.maxTokens, prices];
    const variant = variantOf(model);
    rows.push(JSON.stringify(variant === 0 ? row : [...row, variant]));
  }
  return { variants, rows };
}

const block = (lines) => (lines.length === 0 ? "[]" : `[\n    ${lines.join(",\n    ")}\n  ]`);

mkdirSync(output, { recursive: true });
let total = 0;
for (const [provider, byId] of Object.entries(MODELS)) {
  const { variants, rows } = describe(Object.values(byId));
  total += rows.length;
  const text = `{\n  "variants": ${block(variants)},\n  "models": ${block(rows)}\n}\n`;
  JSON.parse(text);
  writeFileSync(join(output, `${provider}.json`), text);
}
console.log(`${total} models of ${Object.keys(MODELS).length} providers written to ${output}`);
