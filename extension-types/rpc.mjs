// Generates rpc.d.ts from docs/rpc.schema.json, or checks that it is up to date:
//   node rpc.mjs [--write]
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const packages = process.env.PI_TYPES_PACKAGES ?? join(here, "node_modules");
const { compile } = createRequire(join(packages, "rpc.js"))("json-schema-to-typescript");

const schema = JSON.parse(readFileSync(join(here, "../docs/rpc.schema.json"), "utf8"));
// The description of the schema is about its generation, which does not belong into the types.
schema.description = "A line of `pi --mode rpc`: docs/rpc.md.";
/** Types members that may be anything as `unknown`; the compiler would make them objects. */
function prepare(schema) {
  if (Array.isArray(schema)) return schema.forEach(prepare);
  if (typeof schema !== "object" || schema === null) return;
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const says = Object.keys(Object(property)).filter((key) => key !== "description" && key !== "default");
    if (says.length === 0) schema.properties[name] = { ...Object(property), tsType: "unknown" };
  }
  // Members beside allOf would be lost.
  if (schema.allOf && schema.properties) {
    const { properties, required, type } = schema;
    schema.allOf.unshift({ type, properties, required, additionalProperties: false });
    for (const key of ["properties", "required", "type"]) delete schema[key];
  }
  Object.values(schema).forEach(prepare);
}
prepare(schema);
const made = await compile(schema, "RpcLine", {
  additionalProperties: false,
  bannerComment: "// The protocol of `pi --mode rpc`. Made of docs/rpc.schema.json by rpc.mjs; do not edit.",
  unknownAny: true,
  unreachableDefinitions: true,
});
const file = join(here, "rpc.d.ts");
if (process.argv.includes("--write")) {
  writeFileSync(file, made);
} else if (readFileSync(file, "utf8") === made) {
  console.log("rpc.d.ts: ok");
} else {
  console.log("rpc.d.ts is stale: node extension-types/rpc.mjs --write");
  process.exitCode = 1;
}
