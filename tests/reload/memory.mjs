// Prints the memory of pi after many reloads of an extension of 1 MB that changes every third time:
// node tests/reload/memory.mjs --binary target/release/pi [--reloads N] [--extension-host process]
import { readFileSync, readdirSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Program } from "./program.mjs";

const { values: options } = parseArgs({
	options: {
		binary: { type: "string" },
		reloads: { type: "string", default: "1500" },
		"extension-host": { type: "string", default: "thread" },
	},
});

const SIZE = 1_000_000;
/** Numbers of reloads after which the memory is printed. */
const PRINTED = [10, 50, 100, 250, 500, 750, 1000, 1250, 1500];
/** Time in milliseconds in which pi returns memory that it does not use. */
const REST = 5000;

function source(version) {
	const parts = [`const version: number = ${version};\n`];
	for (let length = 0, number = 0; length < SIZE; number += 1) {
		const part = `export function f${number}(count: number, label: string = "x${number}"): string {
	const value: Record<string, number> = { count, version };
	return label + JSON.stringify(value) + "${"y".repeat(20)}";
}\n`;
		parts.push(part);
		length += part.length;
	}
	parts.push(`export default (pi: any) => pi.registerCommand("version", { handler: async (_, ctx) => ctx.ui.notify("is " + version) });\n`);
	return parts.join("");
}

const parentOf = (pid) => Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ")[1]);

/** The proportional set size of the process and its children, in megabytes. */
function memory(pid) {
	const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
	const sizes = processes.map((one) => {
		try {
			if (Number(one) !== pid && parentOf(one) !== pid) return 0;
			return Number(readFileSync(`/proc/${one}/smaps_rollup`, "utf8").match(/^Pss:\s+(\d+)/m)[1]);
		} catch {
			// The process has ended meanwhile.
			return 0;
		}
	});
	return Math.round((sizes.reduce((sum, size) => sum + size, 0) * 1024) / 1e6);
}

const program = new Program([resolve(options.binary)], { extensionHost: options["extension-host"] });
try {
	let version = 0;
	program.extension("big.ts", source(version));
	await program.start();
	const started = performance.now();
	let most = 0;
	for (let reload = 1; reload <= Number(options.reloads); reload += 1) {
		if (reload % 3 === 0) program.extension("big.ts", source(++version));
		const response = await program.ask({ type: "reload" });
		if (!response.success || response.data.loaded.length !== 2) throw new Error(JSON.stringify(response));
		const used = memory(program.child.pid);
		most = Math.max(most, used);
		if (!PRINTED.includes(reload)) continue;
		const serving = await program.commandOutput("version");
		if (serving !== String(version)) throw new Error(`version ${serving} serves instead of ${version}`);
		await pause(REST);
		const seconds = Math.round((performance.now() - started) / 1000);
		console.log(`${reload} reloads: ${memory(program.child.pid)} MB at rest, ${used} MB after the response, at most ${most} MB; ${seconds} s`);
	}
} finally {
	await program.stop();
}
