// Compares what a reload or a new session leaves of extensions, here and in both originals. See README.md.
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { CASES, RIGHT } from "./cases.mjs";
import { Ended, Program } from "./program.mjs";

const { values: options } = parseArgs({
	options: {
		binary: { type: "string" },
		old: { type: "string" },
		new: { type: "string" },
		cases: { type: "string", default: "" },
		write: { type: "boolean", default: false },
	},
});

// The programs run in other folders.
const binary = resolve(options.binary);

/** The columns of the table. */
const PROGRAMS = [
	{ name: "pi, threads", command: binary, settings: { extensionHost: "thread" }, ours: true },
	{ name: "pi, processes", command: binary, settings: { extensionHost: "process" }, ours: true },
	{ name: "0.67.68", command: options.old, settings: {} },
	{ name: "1.5.2", command: options.new, settings: {} },
].filter(({ command }) => command);

async function play(one, cause, { command, settings }) {
	const program = new Program(command.split(" "), settings);
	try {
		return await one.play(program, cause);
	} catch (error) {
		if (!(error instanceof Ended)) throw error;
		return error.message;
	} finally {
		await program.stop();
	}
}

const TABLE_START = "<!-- written by tests/reload -->\n";
const TABLE_END = "<!-- end of what tests/reload has written -->\n";

function write(table) {
	const path = join(import.meta.dirname, "../../docs/compatibility.md");
	const text = readFileSync(path, "utf8");
	const [head, rest] = text.split(TABLE_START);
	const [, tail] = rest.split(TABLE_END);
	writeFileSync(path, `${head}${TABLE_START}${table}\n${TABLE_END}${tail}`);
}

const rows = [];
/** Rows are printed as they come, because all cases take some minutes. */
function row(text) {
	rows.push(text);
	console.log(text);
}

row(`| case | at | ${PROGRAMS.map(({ name }) => name).join(" | ")} |`);
row(`|---|---|${"---|".repeat(PROGRAMS.length)}`);
const failed = [];
for (const one of CASES.filter(({ name }) => new RegExp(options.cases).test(name))) {
	for (const cause of one.causes) {
		const cells = await Promise.all(PROGRAMS.map((program) => play(one, cause, program)));
		row(`| ${one.name} | ${cause} | ${cells.join(" | ")} |`);
		if (PROGRAMS.some(({ ours }, index) => ours && cells[index] !== RIGHT)) failed.push(`${one.name}, ${cause}`);
	}
}
for (const name of failed) console.error(`${name}: does not work here`);
if (options.write) write(rows.join("\n"));
process.exitCode = failed.length > 0 ? 1 : 0;
