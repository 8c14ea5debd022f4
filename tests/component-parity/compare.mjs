// Compares two files of results: node compare.mjs <original.json> <ours.json>
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const read = (path) => JSON.parse(readFileSync(path, "utf8"));
const [original, ours] = process.argv.slice(2).map(read);
const known = read(join(dirname(fileURLToPath(import.meta.url)), "known.json"));
const used = new Set();
const problems = [];

/** The allowed differences of a case: none, all of it, or some members. */
function exemption(name) {
  return known.find((entry) => new RegExp(`^(?:${entry.cases})$`).test(name.replace(/ at \d+$/, "")));
}

const text = (value) => JSON.stringify(value);
const shown = (value) => (text(value) ?? "nothing").slice(0, 500);

function compare(name, expected, found, exempt) {
  if (text(expected) === text(found)) return;
  if (exempt && !exempt.members) {
    used.add(exempt);
    return;
  }
  if (typeof expected !== "object" || typeof found !== "object" || !expected || !found) {
    problems.push(`${name}\n    original ${shown(expected)}\n    ours     ${shown(found)}`);
    return;
  }
  const members = exempt && new RegExp(`^(?:${exempt.members})$`);
  for (const key of new Set([...Object.keys(expected), ...Object.keys(found)])) {
    if (text(expected[key]) === text(found[key])) continue;
    if (members?.test(key)) used.add(exempt);
    else problems.push(`${name}, ${JSON.stringify(key)}\n    original ${shown(expected[key])}\n    ours     ${shown(found[key])}`);
  }
}

for (const name of new Set([...Object.keys(original), ...Object.keys(ours)])) {
  compare(name, original[name], ours[name], exemption(name));
}
for (const entry of known) {
  if (!used.has(entry)) problems.push(`known.json says that "${entry.cases}" differs, and it does not`);
}
for (const problem of problems.slice(0, 40)) console.error(problem);
console.log(`${Object.keys(original).length} cases, ${problems.length} unexpected differences, ${known.length} known ones`);
process.exit(problems.length === 0 ? 0 : 1);
