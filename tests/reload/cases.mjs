// The cases: extensions, and the description of what is left of them after they were replaced.
import { appendFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, served } from "./program.mjs";

/** How often the extensions of a case are replaced. */
const TIMES = 2;

/** The result of a case in which everything is right. */
export const RIGHT = "works";

/** Returns "reported: …" with the error of the case or the first line that reached the user, or "nothing reported". */
function problemsOf(program) {
	const text = program.reported.trim();
	if (!text) return "nothing reported";
	const error = text.match(/EADDRINUSE|EEXIST|database is locked/);
	return `reported: ${error ? error[0] : text.split("\n")[0]}`;
}

const COUNTER = `import fs from "node:fs";
let count = fs.existsSync("count") ? Number(fs.readFileSync("count", "utf8")) : 0;
export default (pi) => {
	pi.registerCommand("count", { handler: async (_, ctx) => ctx.ui.notify("is " + ++count) });
	pi.on("session_shutdown", () => fs.writeFileSync("count", String(count)));
};`;

/** State that is saved at the end and read at load. */
const state = {
	name: "state is saved in `session_shutdown` and read at load",
	causes: ["reload", "new session"],
	async play(program, cause) {
		program.extension("counter.ts", COUNTER);
		await program.start();
		let expected = 0;
		for (let time = 0; time <= TIMES; time += 1) {
			if (time > 0) await program.replace(cause);
			for (let count = 0; count < 3; count += 1) {
				const answer = await program.commandOutput("count");
				if (Number(answer) !== ++expected) return `lost: ${answer} instead of ${expected}`;
			}
		}
		return RIGHT;
	},
};

/** An extension that takes something when it loads. Its command shows which load it belongs to. */
const holder = (take, release) => `import fs from "node:fs";
import net from "node:net";
export default async (pi) => {
	fs.appendFileSync("loads", "x");
	const load = fs.readFileSync("loads", "utf8").length;
	const port = Number(fs.readFileSync("port", "utf8"));
	${take}
	pi.registerCommand("held", { handler: async (_, ctx) => ctx.ui.notify("is " + load) });
	pi.on("session_shutdown", async () => { ${release} });
};`;

const SERVER = "const server = net.createServer((socket) => socket.end(String(load)));";
const PORT = `${SERVER}
	await new Promise((resolve, reject) => server.on("error", reject).listen(port, "127.0.0.1", resolve));`;
const LOGGED_PORT = `${SERVER}
	server.on("error", (error) => console.error(error.message)).listen(port, "127.0.0.1");
	await new Promise((resolve) => server.once("listening", resolve).once("error", resolve));`;
const LATE_CLOSE = "await new Promise((resolve) => setTimeout(resolve, 200)); server.close();";
const DATABASE = `const { DatabaseSync } = await import("node:sqlite");
	const database = new DatabaseSync("data.sqlite");
	database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE IF NOT EXISTS t (a); COMMIT");`;
const LOGGED_LOCK = `let holds = true;
	try { fs.mkdirSync("lock"); } catch (error) { holds = false; console.error(error.message); }
	if (!holds) return;`;

function held(name, take, release) {
	const hasServer = take.includes(SERVER);
	return {
		name,
		causes: ["reload", "new session"],
		async play(program, cause) {
			const port = await freePort();
			writeFileSync(join(program.work, "port"), String(port));
			program.extension("holder.ts", holder(take, release));
			await program.start();
			for (let load = 1; load <= 1 + TIMES; load += 1) {
				if (load > 1) await program.replace(cause);
				const answer = await program.commandOutput("held");
				if (answer === undefined) return `not loaded; ${problemsOf(program)}`;
				if (Number(answer) !== load) return `load ${answer} serves instead of ${load}`;
				if (!hasServer) continue;
				const server = await served(port);
				if (server === undefined) return `no server is left; ${problemsOf(program)}`;
				if (Number(server) !== load) return `the server of the old load answers; ${problemsOf(program)}`;
			}
			return RIGHT;
		},
	};
}

const sayer = (name, value) =>
	`export default (pi) => pi.registerCommand("${name}", { handler: async (_, ctx) => ctx.ui.notify("is ${value}") });`;

/** Two extensions of which `a` breaks or goes while `b` changes. */
function besideBrokenFile(name, expected, breakIt) {
	return {
		name,
		causes: ["reload"],
		async play(program, cause) {
			program.extension("a.ts", sayer("a", "old"));
			program.extension("b.ts", sayer("b", "old"));
			await program.start();
			breakIt(program.path("a.ts"));
			program.extension("b.ts", sayer("b", "new"));
			await program.replace(cause);
			const a = (await program.commandOutput("a")) ?? "gone";
			const b = (await program.commandOutput("b")) ?? "gone";
			const isBroken = expected === "old";
			if (a === expected && b === "new" && (!isBroken || program.reported.includes("a.ts"))) return RIGHT;
			return `the changed one is ${b}; the ${isBroken ? "broken" : "removed"} one is ${a}${isBroken ? `; ${problemsOf(program)}` : ""}`;
		},
	};
}

export const CASES = [
	state,
	held("a port, closed in `session_shutdown`", PORT, "server.close();"),
	held("a port, closed after a pause in `session_shutdown`", PORT, LATE_CLOSE),
	held("a port that is never closed", PORT, ""),
	held("a port, closed in `session_shutdown`; the error is only logged", LOGGED_PORT, "server.close();"),
	held("a port that is never closed; the error is only logged", LOGGED_PORT, ""),
	held("a lock folder, removed in `session_shutdown`", 'fs.mkdirSync("lock");', 'fs.rmdirSync("lock");'),
	held("a lock folder, removed in `session_shutdown`; the error is only logged", LOGGED_LOCK, 'fs.rmdirSync("lock");'),
	held("an exclusive SQLite file, closed in `session_shutdown`", DATABASE, "database.close();"),
	held("an exclusive SQLite file that is never closed", DATABASE, ""),
	besideBrokenFile("one file has a syntax error, another one is new", "old", (path) => writeFileSync(path, "export default (pi) => {\n  pi.on(;")),
	besideBrokenFile("one file imports what is not there, another one is new", "old", (path) => writeFileSync(path, 'import "./missing";\nexport default () => {};')),
	besideBrokenFile("one file throws at load, another one is new", "old", (path) => appendFileSync(path, '\nthrow new Error("thrown");')),
	besideBrokenFile("one file is gone, another one is new", "gone", (path) => rmSync(path)),
];
