// Plays cells in one program and records the visible behaviour: requests to the model, events,
// responses, displayed texts, and the entries of the session.
import { spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { EVENTS } from "./cells.mjs";
import { startModel } from "./model.mjs";

/** The timeout of a step in milliseconds, for a machine under load. */
const STEP_TIMEOUT = 60_000;

/** The events that both originals and this program have, without those whose number depends on time. */
const EVENT_TYPES = new Set([
	"agent_start", "agent_end", "turn_start", "turn_end", "message_start", "message_end", "queue_update",
	"tool_execution_start", "tool_execution_update", "tool_execution_end", "compaction_start", "compaction_end",
	"extension_error",
]);

const textOf = (content) =>
	typeof content === "string"
		? content
		: (content ?? []).map((part) => (part.type === "toolCall" ? `+${part.name}` : (part.text ?? part.type))).join("");

const messageText = (message) => {
	const text = message.role === "compactionSummary" || message.role === "branchSummary" ? "" : textOf(message.content);
	const end = message.stopReason && !["stop", "toolUse"].includes(message.stopReason) ? ` (${message.stopReason})` : "";
	return `${message.role} ${text}${end}`;
};

/** The first sentence describes the problem; the advice after it differs between programs. */
const firstSentence = (text) => text.split(/[.\n]/)[0];

/** Version 1.5.2 stores its system prompt in the session and emits it. */
const isNotSystem = (message) => message?.role !== "system";

function eventText(line) {
	switch (line.type) {
		case "message_start":
			// The length of the beginning of a response depends on time.
			return line.message.role === "assistant" ? "message_start assistant" : `message_start ${messageText(line.message)}`;
		case "message_end":
			return `message_end ${messageText(line.message)}`;
		case "agent_end":
			return `agent_end ${line.messages.filter(isNotSystem).length}`;
		case "queue_update":
			return `queue_update ${JSON.stringify(line.steering)} ${JSON.stringify(line.followUp)}`;
		case "tool_execution_start":
			return `tool_execution_start ${line.toolName}`;
		case "tool_execution_update":
			return "tool_execution_update";
		case "tool_execution_end":
			return `tool_execution_end ${textOf(line.result?.content)}${line.isError ? " (error)" : ""}`;
		case "compaction_end":
			return `compaction_end${line.aborted ? " (aborted)" : ""}${line.errorMessage ? ` ${line.errorMessage}` : ""}`;
		case "extension_error":
			return `extension_error ${line.event}: ${firstSentence(line.error)}`;
		default:
			return line.type;
	}
}

function entryTexts(path) {
	if (!path || !existsSync(path)) return [];
	const lines = readFileSync(path, "utf8").trim().split("\n").map((line) => JSON.parse(line));
	const entries = lines.filter((entry) => entry.type !== "session" && isNotSystem(entry.message));
	const place = new Map(entries.map((entry, index) => [entry.id, index]));
	// Children of an omitted entry become children of the entry before it.
	for (const entry of lines) if (!place.has(entry.id)) place.set(entry.id, place.get(entry.parentId) ?? -1);
	return entries.map((entry, index) => {
		// An entry that does not follow the one before it names its parent.
		const parent = place.get(entry.parentId) ?? -1;
		const at = parent === index - 1 ? "" : ` (after ${parent})`;
		switch (entry.type) {
			case "message":
				return `message ${messageText(entry.message)}${at}`;
			case "custom_message":
				return `custom_message ${textOf(entry.content)}${at}`;
			case "custom":
				return `custom ${entry.customType}${at}`;
			case "model_change":
				return `model_change ${entry.modelId}${at}`;
			case "thinking_level_change":
				return `thinking_level_change ${entry.thinkingLevel}${at}`;
			case "session_info":
				return `session_info ${entry.name}${at}`;
			case "label":
				return `label ${entry.label} of ${place.get(entry.targetId)}${at}`;
			default:
				return `${entry.type}${at}`;
		}
	});
}

/** A program in RPC mode, in a home of its own. */
class Program {
	constructor(command, options) {
		this.command = command;
		this.quiet = options.quiet;
		this.extensionHost = options.extensionHost;
	}

	async start() {
		this.model = await startModel();
		this.root = mkdtempSync(join(tmpdir(), "matrix-"));
		this.work = join(this.root, "work");
		const agent = join(this.root, "home/.pi/agent");
		mkdirSync(join(agent, "extensions"), { recursive: true });
		mkdirSync(this.work);
		const one = (id) => ({ id, name: id, reasoning: true, input: ["text"], contextWindow: 200_000, maxTokens: 32_000, cost: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 } });
		const provider = { baseUrl: this.model.url, apiKey: "key", api: "openai-completions", models: [one("scripted-1"), one("scripted-2")] };
		writeFileSync(join(agent, "models.json"), JSON.stringify({ providers: { scripted: provider } }));
		const settings = {
			defaultProvider: "scripted",
			defaultModel: "scripted-1",
			defaultThinkingLevel: "medium",
			compaction: { enabled: false, reserveTokens: 1000, keepRecentTokens: 2 },
			retry: { enabled: false },
		};
		if (this.extensionHost) settings.extensionHost = this.extensionHost;
		writeFileSync(join(agent, "settings.json"), JSON.stringify(settings));
		copyFileSync(join(import.meta.dirname, "extension.ts"), join(agent, "extensions/matrix.ts"));
		const [program, ...args] = this.command;
		const env = { PATH: process.env.PATH, HOME: join(this.root, "home"), TMPDIR: this.root, LANG: "C.UTF-8", PI_OFFLINE: "1" };
		this.child = spawn(program, [...args, "--mode", "rpc"], { cwd: this.work, env, stdio: ["pipe", "pipe", "pipe"] });
		this.ended = new Promise((resolve) => this.child.on("exit", resolve));
		this.child.stdin.on("error", () => {});
		this.stderr = "";
		this.child.stderr.on("data", (chunk) => (this.stderr += chunk));
		this.lines = [];
		this.waiting = new Map();
		this.ids = 0;
		createInterface({ input: this.child.stdout }).on("line", (text) => {
			const line = JSON.parse(text);
			const waiting = line.type === "response" && this.waiting.get(line.id);
			if (waiting) {
				this.waiting.delete(line.id);
				waiting(line);
				if (line.command === "get_state") return;
			}
			this.lines.push(line);
		});
		await this.wait_until_idle();
	}

	async ask(command) {
		const id = `matrix-${++this.ids}`;
		const response = new Promise((resolve) => this.waiting.set(id, resolve));
		this.child.stdin.write(`${JSON.stringify({ ...command, id })}\n`);
		const late = pause(STEP_TIMEOUT, "late", { ref: false });
		const ended = this.ended.then(() => "ended");
		const line = await Promise.race([response, late, ended]);
		if (typeof line === "string") throw new Error(`${line} before the response to ${JSON.stringify(command)}\n${this.stderr}`);
		return line;
	}

	/** Waits until the agent is idle and no line has arrived for a while. */
	async wait_until_idle() {
		const deadline = Date.now() + STEP_TIMEOUT;
		let calm = 0;
		let seen = -1;
		while (calm < 3) {
			if (Date.now() > deadline) throw new Error("the agent does not come to rest");
			const { data } = await this.ask({ type: "get_state" });
			this.session = data.sessionFile;
			const isCalm = !data.isStreaming && !data.isCompacting && this.lines.length === seen;
			calm = isCalm ? calm + 1 : 0;
			seen = this.lines.length;
			if (calm < 3) await pause(this.quiet);
		}
	}

	async step(command) {
		await this.ask(command);
		await this.wait_until_idle();
	}

	async play(cell) {
		const file = join(this.work, "cell.json");
		writeFileSync(file, JSON.stringify({ event: "", action: "nothing" }));
		await this.ask({ type: "set_model", provider: "scripted", modelId: "scripted-1" });
		// 0.67.68 stores only a level that is another one.
		await this.ask({ type: "set_thinking_level", level: "low" });
		await this.ask({ type: "set_thinking_level", level: "medium" });
		await this.step({ type: "new_session" });
		writeFileSync(file, JSON.stringify(cell));
		const from = this.lines.length;
		const requestsBefore = this.model.asked.length;
		await this.step({ type: "new_session" });
		const sessions = [this.session];
		await this.scenario(EVENTS[cell.event]);
		if (!sessions.includes(this.session)) sessions.push(this.session);
		const lines = this.lines.slice(from);
		const shown = lines.filter((line) => line.type === "extension_ui_request" && line.method === "notify");
		const responses = lines.filter((line) => line.type === "response");
		return {
			requests: this.model.asked.slice(requestsBefore).filter((line, index, all) => !line.endsWith("(summarize)") || line !== all[index - 1]),
			events: lines.filter((line) => EVENT_TYPES.has(line.type) && isNotSystem(line.message)).map(eventText),
			responses: responses.map((line) => `${line.command}${line.success ? "" : `: ${firstSentence(line.error)}`}`),
			shown: shown.map((line) => line.message),
			entries: sessions.flatMap((path, index) => (index ? ["--", ...entryTexts(path)] : entryTexts(path))),
		};
	}

	async scenario(name) {
		const prompt = (message) => this.step({ type: "prompt", message });
		await prompt("go");
		switch (name) {
			case "command":
				await prompt("/act");
				break;
			case "model":
				await this.step({ type: "set_model", provider: "scripted", modelId: "scripted-2" });
				break;
			case "compact":
				await prompt("a second prompt that is long enough to be kept when the rest is summarized");
				await this.step({ type: "compact" });
				break;
			case "tree":
				await prompt("/back");
				break;
			case "fork": {
				await prompt("second");
				const { data } = await this.ask({ type: "get_fork_messages" });
				await this.step({ type: "fork", entryId: data.messages.at(-1).entryId });
				break;
			}
			case "leave":
				writeFileSync(join(this.work, "cell.json"), JSON.stringify({ event: "", action: "nothing" }));
				await this.step({ type: "new_session" });
				break;
		}
		await prompt("more");
	}

	async stop() {
		this.child.stdin.end();
		const late = pause(5000, "late", { ref: false });
		if ((await Promise.race([this.ended, late])) === "late") this.child.kill("SIGKILL");
		await this.ended;
		this.model.close();
		rmSync(this.root, { recursive: true, force: true });
	}
}

/**
 * Plays the cells, several in one process; a process that crashes is the result of one cell. `each`
 * gets every result.
 */
export async function playAll(command, cells, options, each) {
	const queue = [...cells];
	const worker = async () => {
		let program;
		for (let cell = queue.shift(); cell; cell = queue.shift()) {
			try {
				if (!program) {
					program = new Program(command, options);
					await program.start();
				}
				each(cell, await program.play(cell));
			} catch (error) {
				each(cell, { broken: [String(error.message ?? error)] });
				await program?.stop();
				program = undefined;
			}
		}
		await program?.stop();
	};
	await Promise.all(Array.from({ length: options.workers }, worker));
}
