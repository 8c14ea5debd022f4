// Every action of an extension in every event, here and in both originals. See README.md.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ACTIONS, EVENTS, cells } from "./cells.mjs";
import { FACETS, covers, differing, readKnown, readReferences, sideBySide, writeReferences } from "./compare.mjs";
import { playAll } from "./player.mjs";

/** Milliseconds between two checks whether the agent is idle. */
const IDLE_POLL_INTERVAL = 25;
/** The interval for cells that differ, which are played once more in case the machine was under load. */
const RETRY_POLL_INTERVAL = 250;
/** Processes at a time: they wait more than they work. */
const WORKERS = 4;

const { values: options } = parseArgs({
	options: {
		binary: { type: "string" },
		cells: { type: "string" },
		slice: { type: "boolean", default: false },
		write: { type: "boolean", default: false },
		"extension-host": { type: "string" },
		references: { type: "boolean", default: false },
		old: { type: "string" },
		new: { type: "string" },
	},
});

function wanted() {
	const pattern = options.cells && new RegExp(options.cells);
	return cells().filter((cell) => (!options.slice || cell.slice) && (!pattern || pattern.test(cell.name)));
}

async function results(command, list, more) {
	const found = {};
	await playAll(command, list, { quiet: IDLE_POLL_INTERVAL, workers: WORKERS, ...more }, (cell, result) => {
		found[cell.name] = result;
	});
	// Sorts the results in the order of the matrix.
	return Object.fromEntries(list.map((cell) => [cell.name, found[cell.name]]));
}

/** `--references --old "COMMAND" --new "COMMAND"`: what the originals do, twice, until it is the same. */
async function references() {
	const list = cells();
	const commands = { "0.67.68": options.old, "1.5.2": options.new };
	const all = {};
	for (const [version, command] of Object.entries(commands)) {
		const play = (some, quiet) => results(command.split(" "), some, { quiet });
		const first = await play(list, IDLE_POLL_INTERVAL);
		const secondRun = await play(list, 2 * IDLE_POLL_INTERVAL);
		const unsure = list.filter(({ name }) => first[name].broken || differing(secondRun[name], [first[name]]).length > 0);
		const third = await play(unsure, RETRY_POLL_INTERVAL);
		for (const { name } of unsure) console.log(`${version} ${name}: not the same each time`);
		all[version] = { ...secondRun, ...third };
		const broken = Object.entries(all[version]).find(([, result]) => result.broken);
		if (broken) throw new Error(`${version}: ${broken[0]}: ${broken[1].broken}`);
	}
	writeReferences(Object.keys(commands), all);
}

async function compare() {
	const list = wanted();
	const { versions, results: originals } = readReferences();
	const known = readKnown();
	const command = [options.binary];
	const more = { extensionHost: options["extension-host"] };
	const ours = await results(command, list, more);
	const ofVersions = (name) => versions.map((version) => originals[version][name]);
	const unknown = (cell) => {
		const expectedFacets = known.filter((one) => covers(one, cell.name)).flatMap((one) => one.facets);
		return differing(ours[cell.name], ofVersions(cell.name)).filter((facet) => !expectedFacets.includes(facet));
	};
	const again = list.filter((cell) => unknown(cell).length > 0);
	if (again.length > 0) Object.assign(ours, await results(command, again, { ...more, quiet: RETRY_POLL_INTERVAL, workers: 2 }));
	let failed = 0;
	for (const cell of list) {
		const facets = unknown(cell);
		if (facets.length === 0) continue;
		failed += 1;
		console.log(`${cell.name}: ${facets.join(", ")}`);
		for (const facet of facets) {
			if (facet === "broken") console.log(`    ${ours[cell.name].broken}`);
			else console.log(sideBySide(ours[cell.name][facet], ofVersions(cell.name).map((one) => one[facet]), versions));
		}
	}
	const isWhole = list.length === cells().length;
	const differs = list.filter((cell) => differing(ours[cell.name], ofVersions(cell.name)).length > 0);
	if (isWhole) {
		for (const one of known.filter((one) => !one.sometimes && !differs.some((cell) => covers(one, cell.name)))) {
			failed += 1;
			console.log(`${one.cells.join(", ")}: does not differ any more`);
		}
	}
	console.log(`${list.length} cells, ${list.length - differs.length} the same, ${differs.length - failed} differ on purpose, ${failed} fail`);
	if (options.write && isWhole) write(known, list.length, differs.length);
	process.exitCode = failed > 0 ? 1 : 0;
}

const TABLE_START = "<!-- written by tests/matrix -->\n";
const TABLE_END = "<!-- end of what tests/matrix has written -->\n";

/** The section of docs/compatibility.md. */
function write(known, all, differ) {
	const path = join(import.meta.dirname, "../../docs/compatibility.md");
	const text = readFileSync(path, "utf8");
	const [head, rest] = text.split(TABLE_START);
	const [, tail] = rest.split(TABLE_END);
	const rows = known.map((one) => `| ${one.cells.map((name) => `\`${name}\``).join(", ")} | ${one.facets.join(", ")} | ${one.why} |`);
	const count = `${Object.keys(EVENTS).length} events × ${ACTIONS.length} actions: ${all} cells, ${all - differ} the same, ${differ} differ on purpose.`;
	const table = ["| cells | what differs | why |", "|---|---|---|", ...rows].join("\n");
	writeFileSync(path, `${head}${TABLE_START}${count}\n\n${table}\n${TABLE_END}${tail}`);
}

if (options.references) await references();
else await compare();
