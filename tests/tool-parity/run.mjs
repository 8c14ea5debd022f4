// Compares our tools with the original's: `node tests/tool-parity/run.mjs`. The README has the rest.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import * as cases from "./cases.mjs";
import { difference, known } from "./compare.mjs";
import { made } from "./made.mjs";
import { pictures } from "./pictures.mjs";
import { slice } from "./slice.mjs";
import { remove } from "./tree.mjs";

const { values: options } = parseArgs({
	options: {
		package: { type: "string", default: join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "pi-tests/0.67.68/node_modules/@mariozechner/pi-coding-agent") },
		real: { type: "string", multiple: true },
		only: { type: "string" },
		show: { type: "string", default: "5" },
		record: { type: "boolean", default: false },
		known: { type: "string" },
		work: { type: "string" },
	},
});
const here = dirname(fileURLToPath(import.meta.url));
const packageDir = resolve(options.package);
if (!existsSync(packageDir)) fail(`The original is not at ${packageDir}: run the tests once, or say --package.`);

function fail(message) {
	console.error(message);
	process.exit(2);
}

function program(variable, names) {
	const folders = (process.env.PATH ?? "").split(delimiter);
	const found = names.flatMap((name) => folders.map((folder) => join(folder, name))).find(existsSync);
	return process.env[variable] ?? found ?? fail(`${names[0]} is not installed; ${variable} may say where it is.`);
}

// Small letters only: `find` matches absolute patterns in the case that the path has.
const work = options.work ? resolve(options.work) : join(tmpdir(), `pi-tool-parity-${process.pid}`);
const root = join(work, "tree");
const home = join(work, "home");
mkdirSync(join(home, "agent/bin"), { recursive: true });
// rg and fd as the original runs them, but with an order: their threads print
// results as they come, so that a limit takes any of them.
const programs = {
	rg: `exec "$PARITY_RG" --sort path "$@"`,
	fd: `exec '${process.execPath}' '${join(here, "fd.mjs")}' "$@"`,
};
for (const [name, line] of Object.entries(programs)) writeFileSync(join(home, "agent/bin", name), `#!/bin/sh\n${line}\n`, { mode: 0o755 });

/** Real packages: those of cargo and those that the original brings. */
function realFolders() {
	const registry = join(process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "registry/src");
	const below = (folder) => (existsSync(folder) ? readdirSync(folder).sort().map((name) => join(folder, name)) : []);
	const crates = below(registry).flatMap(below).filter((path) => /\/(serde|regex|tokio|ignore|globset|clap|image|similar|tempfile|notify)-\d[^/]*$/.test(path));
	const modules = ["typescript", "chalk", "glob", "minimatch", "diff", "marked", "ajv", "undici", "yaml", "@mariozechner/pi-ai", "@mariozechner/pi-tui", "@sinclair/typebox"];
	return [...crates, ...modules.map((name) => join(packageDir, "../..", name))].filter(existsSync);
}

const folders = options.real ?? realFolders();
const real = cases.realFiles(folders, 220);
const all = {
	read: () => cases.read(real, pictures(packageDir)),
	write: () => cases.write(real),
	edit: () => cases.edit(real),
	bash: () => cases.bash(),
	grep: () => cases.grep(folders),
	find: () => cases.find(folders),
	ls: () => cases.ls(folders),
};
// A superuser may read everything; without these capabilities it has the rights of a normal user.
const plainUser = process.getuid() === 0 ? ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--"] : [];
function run(command, args, more) {
	remove(root);
	mkdirSync(root, { recursive: true });
	const env = { ...process.env, HOME: home, XDG_CONFIG_HOME: join(home, "config"), PI_CODING_AGENT_DIR: join(home, "agent"), PI_OFFLINE: "1", LC_ALL: "C.UTF-8", ...more };
	const [program, ...rest] = [...plainUser, command, ...args];
	const done = spawnSync(program, rest, { env, stdio: ["ignore", "pipe", "pipe"], maxBuffer: 2 ** 28 });
	if (done.status !== 0) fail(`${command} ${args.join(" ")}\n${done.error ?? `${done.stdout}${done.stderr}`}`);
}

const built = execFileSync("cargo", ["test", "--locked", "--test", "it", "--no-run", "--message-format=json"], { cwd: join(here, "../.."), stdio: ["ignore", "pipe", "inherit"], maxBuffer: 2 ** 28 });
const messages = built.toString().trim().split("\n").map((line) => JSON.parse(line));
const { executable } = messages.find((message) => message.executable && message.target.name === "it");
const read = (path) => JSON.parse(readFileSync(path, "utf8"));

/** Runs one tool after the other. With --work, the original runs again only when the cases have changed. */
function ask(tool) {
	const toolCases = all[tool]();
	const text = JSON.stringify({ root, files: made, cases: toolCases });
	const [suite, theirs, ours] = ["suite", "theirs", "ours"].map((name) => join(work, `${tool}-${name}.json`));
	if (!existsSync(theirs) || readFileSync(suite, "utf8") !== text) {
		writeFileSync(suite, text);
		run(process.execPath, [join(here, "reference.mjs"), packageDir, suite, theirs], { PARITY_RG: program("PARITY_RG", ["rg"]), PARITY_FD: program("PARITY_FD", ["fd", "fdfind"]) });
	}
	run(executable, ["--ignored", "--exact", "tools::parity::answers_for_the_comparison"], { PARITY_SUITE: suite, PARITY_ANSWERS: ours });
	return { asked: toolCases, theirs: read(theirs), ours: read(ours) };
}

console.log(`real files from ${folders.length} folders`);
const seen = new Set();
const whole = { cases: [], theirs: [], ours: [] };
let unknown = 0;
for (const tool of options.only?.split(",") ?? Object.keys(all)) {
	const { asked, theirs, ours } = ask(tool);
	const counts = {};
	for (const [index, one] of asked.entries()) {
		const found = difference(one, theirs[index], ours[index]) ?? "equal";
		counts[found] = (counts[found] ?? 0) + 1;
		seen.add(found);
		if (found === "unknown" && counts.unknown <= Number(options.show)) show(one, theirs[index], ours[index]);
		if (found === options.known) show(one, theirs[index], ours[index]);
	}
	unknown += counts.unknown ?? 0;
	whole.cases.push(...asked);
	whole.theirs.push(...theirs);
	whole.ours.push(...ours);
	console.log(`${tool}: ${asked.length} cases, ${Object.entries(counts).map(([name, count]) => `${count} ${name}`).join(", ")}`);
}
function show(one, theirs, ours) {
	const cut = (value) => (value.length > 1500 ? `${value.slice(0, 700)} ... ${value.slice(-700)}` : value);
	console.log(`\n${one.tool} in ${one.cwd ?? "its own folder"}: ${cut(JSON.stringify(one.args))}`);
	const [a, b] = [theirs, ours].map((answer) => (answer.error ? `error: ${answer.error}` : JSON.stringify(answer)));
	let at = 0;
	while (at < a.length && a[at] === b[at]) at += 1;
	const from = Math.max(0, at - 80);
	console.log(`  original: ${cut(a.slice(from))}\n  ours:     ${cut(b.slice(from))}`);
}
for (const { name, why } of known) if (seen.has(name)) console.log(`  ${name}: ${why}`);
if (options.record) writeFileSync(join(here, "slice.json"), slice({ files: made, cases: whole.cases }, whole.theirs, whole.ours));
remove(options.work ? root : work);
process.exitCode = unknown ? 1 : 0;
