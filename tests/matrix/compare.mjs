// Compares cells with the recorded behaviour of the originals.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The facets of a cell that are compared. */
export const FACETS = ["requests", "events", "responses", "shown", "entries"];

const at = (name) => join(import.meta.dirname, name);
const REFERENCES = at("references.json");

/** Results by version and cell. Each line is stored once; a cell has the places of its lines. */
export function readReferences() {
	const { versions, lines, cells } = JSON.parse(readFileSync(REFERENCES, "utf8"));
	const whole = (packed) => Object.fromEntries(FACETS.map((facet, index) => [facet, packed[index].map((place) => lines[place])]));
	const results = Object.fromEntries(versions.map((version) => [version, {}]));
	for (const [name, byVersion] of Object.entries(cells)) {
		// The second is left out where it is the same.
		versions.forEach((version, index) => {
			results[version][name] = whole(byVersion[index] ?? byVersion[0]);
		});
	}
	return { versions, results };
}

export function writeReferences(versions, results) {
	const places = new Map();
	const lines = [];
	const place = (line) => {
		if (!places.has(line)) places.set(line, lines.push(line) - 1);
		return places.get(line);
	};
	const packed = (result) => FACETS.map((facet) => result[facet].map(place));
	const rows = [];
	for (const name of Object.keys(results[versions[0]])) {
		const all = versions.map((version) => JSON.stringify(packed(results[version][name])));
		const different = all.filter((one, index) => index === 0 || one !== all[0]);
		rows.push(`${JSON.stringify(name)}:[${different.join(",")}]`);
	}
	const text = `{"versions":${JSON.stringify(versions)},\n"lines":[\n${lines.map((line) => JSON.stringify(line)).join(",\n")}],\n"cells":{\n${rows.join(",\n")}}}\n`;
	writeFileSync(REFERENCES, text);
}

/** Differences that are meant: `cells` are names with `*`, `facets` what may differ, `why` a sentence for the table. */
export function readKnown() {
	return JSON.parse(readFileSync(at("known.json"), "utf8")).map((known) => ({
		...known,
		patterns: known.cells.map((name) => new RegExp(`^${name.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")}$`)),
	}));
}

export const covers = (known, name) => known.patterns.some((pattern) => pattern.test(name));

/** The facets in which a result is not that of any original. */
export function differing(result, originals) {
	if (result.broken) return ["broken"];
	const same = (facet) => originals.some((original) => JSON.stringify(original[facet]) === JSON.stringify(result[facet]));
	return FACETS.filter((facet) => !same(facet));
}

/** Both sides of a facet, line by line. */
export function sideBySide(ours, originals, versions) {
	const text = (lines) => lines.map((line) => `      ${line}`).join("\n");
	const sides = versions.map((version, index) => `    ${version}:\n${text(originals[index])}`);
	return [`    ours:\n${text(ours)}`, ...sides].join("\n");
}
