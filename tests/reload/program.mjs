// A program in RPC mode, in a home of its own, with the extensions of one case.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";

/** The timeout of a step in milliseconds, for a machine under load. */
const STEP_TIMEOUT = 60_000;

/** This extension reloads where the protocol has no `reload`. It is in every case and never changes. */
const RELOADER = `export default (pi) => pi.registerCommand("reload", { handler: (_, ctx) => ctx.reload() });`;

/** The process has ended, or does not respond. */
export class Ended extends Error {}

export class Program {
	constructor(command, settings) {
		this.command = command;
		this.settings = settings;
		this.root = mkdtempSync(join(tmpdir(), "reload-"));
		this.work = join(this.root, "work");
		this.agent = join(this.root, "home/.pi/agent");
		mkdirSync(join(this.agent, "extensions"), { recursive: true });
		mkdirSync(this.work);
		this.extension("reloader.ts", RELOADER);
	}

	/** The path of an extension's file. */
	path(name) {
		return join(this.agent, "extensions", name);
	}

	extension(name, source) {
		writeFileSync(this.path(name), source);
	}

	async start() {
		const model = { id: "none", name: "none", reasoning: false, input: ["text"], contextWindow: 200_000, maxTokens: 32_000, cost: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 } };
		const provider = { baseUrl: "http://127.0.0.1:9", apiKey: "key", api: "openai-completions", models: [model] };
		writeFileSync(join(this.agent, "models.json"), JSON.stringify({ providers: { none: provider } }));
		writeFileSync(join(this.agent, "settings.json"), JSON.stringify({ defaultProvider: "none", defaultModel: "none", ...this.settings }));
		const [program, ...args] = this.command;
		const env = { PATH: process.env.PATH, HOME: join(this.root, "home"), TMPDIR: this.root, LANG: "C.UTF-8", PI_OFFLINE: "1" };
		this.child = spawn(program, [...args, "--mode", "rpc"], { cwd: this.work, env, stdio: ["pipe", "pipe", "pipe"] });
		this.ended = new Promise((resolve) => this.child.on("exit", resolve));
		this.child.stdin.on("error", () => {});
		/** Errors and notices that reach the user. */
		this.reported = "";
		this.child.stderr.on("data", (chunk) => (this.reported += chunk));
		this.notices = [];
		this.waiting = new Map();
		this.ids = 0;
		createInterface({ input: this.child.stdout }).on("line", (text) => this.read(JSON.parse(text)));
		await this.ask({ type: "get_state" });
	}

	read(line) {
		if (line.type === "response") {
			// 0.67.68 answers an unknown command without its id.
			const id = line.id ?? [...this.waiting.keys()].at(-1);
			this.waiting.get(id)?.(line);
			this.waiting.delete(id);
		} else if (line.method === "notify" && line.message.startsWith("is ")) {
			this.notices.push(line.message.slice(3));
		} else if (line.type === "extension_error") {
			this.reported += `${line.error}\n`;
		} else if (line.method === "notify") {
			this.reported += `${line.message}\n`;
		}
	}

	async ask(command) {
		const id = `reload-${++this.ids}`;
		const response = new Promise((resolve) => this.waiting.set(id, resolve));
		this.child.stdin.write(`${JSON.stringify({ ...command, id })}\n`);
		const late = pause(STEP_TIMEOUT, "hangs", { ref: false });
		const line = await Promise.race([response, late, this.ended.then(() => "the program ends")]);
		if (typeof line === "string") throw new Ended(line);
		return line;
	}

	/** Replaces all extensions. */
	async replace(cause) {
		if (cause === "new session") {
			await this.ask({ type: "new_session" });
			return;
		}
		const response = await this.ask({ type: "reload" });
		if (!response.success && /unknown command/i.test(response.error)) await this.ask({ type: "prompt", message: "/reload" });
	}

	/** The text that the command of an extension shows after "is ", or undefined if the command is not there. */
	async commandOutput(command) {
		const { data } = await this.ask({ type: "get_commands" });
		if (!data.commands.some(({ name }) => name === command)) return undefined;
		const before = this.notices.length;
		await this.ask({ type: "prompt", message: `/${command}` });
		const deadline = Date.now() + STEP_TIMEOUT;
		while (this.notices.length === before) {
			if (Date.now() > deadline) throw new Ended(`/${command} shows nothing`);
			await pause(5);
		}
		return this.notices.at(-1);
	}

	async stop() {
		this.child.stdin.end();
		const late = pause(5000, "late", { ref: false });
		if ((await Promise.race([this.ended, late])) === "late") this.child.kill("SIGKILL");
		await this.ended;
		rmSync(this.root, { recursive: true, force: true });
	}
}

export async function freePort() {
	const server = createServer();
	await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
	const { port } = server.address();
	await new Promise((resolve) => server.close(resolve));
	return port;
}

/** The text that the server of this port sends, or undefined without a server. */
export async function served(port) {
	return new Promise((resolve) => {
		let text = "";
		const socket = connect(port, "127.0.0.1");
		socket.on("data", (chunk) => (text += chunk));
		socket.on("error", () => resolve(undefined));
		socket.on("end", () => resolve(text));
	});
}
