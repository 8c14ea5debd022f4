// Talks to pi over its RPC protocol (docs/rpc.md), with Node's standard library only. Node 22.18 and newer
// run it as it is, older ones what `tsc` makes of it:
//
//     node examples/rpc/client.ts "list the files here"
//     PI_PROGRAM=target/debug/pi node examples/rpc/client.ts "read README.md" -- --provider anthropic
//
// Without options after `--` it uses the demo model, which needs no key. Answers go to stdout, tools and
// questions to stderr; questions of extensions are answered on stdin. Ctrl-C aborts, or takes back a question;
// a second one ends. If pi exits, it is started again with the same session.
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { AgentMessage, RpcEvent, UiRequest } from "pi-extension-types/rpc";

const RESTARTS = 3;

type Response = { type: "response"; id?: string; command: string; success: boolean; data?: unknown; error?: string };
type Answer = { value: string } | { confirmed: boolean } | { cancelled: true };

/** The command failed. */
class Refused extends Error {}
/** pi has exited. */
class Ended extends Error {}

/** One `pi --mode rpc`: commands in, responses and events out, one JSON object a line. */
class Pi {
  readonly #process: ChildProcess;
  readonly #ended: Promise<string>;
  readonly #waiting = new Map<string, { resolve(data: any): void; reject(error: Error): void }>();
  #ids = 0;

  constructor(program: string, options: string[], onEvent: (event: RpcEvent) => void) {
    // The process is in a group of its own: Ctrl-C in this terminal is for the client, not for pi.
    this.#process = spawn(program, ["--mode", "rpc", ...options], {
      stdio: ["pipe", "pipe", "inherit"],
      detached: true,
    });
    // The other pipe reports the end.
    this.#process.stdin!.on("error", () => {});
    this.#ended = new Promise((resolve) => {
      this.#process.on("error", (error) => resolve(error.message));
      this.#process.on("close", (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
    let rest = "";
    // A character may arrive in two parts. Only line feeds end a line, unlike in `readline`.
    this.#process.stdout!.setEncoding("utf8").on("data", (chunk: string) => {
      rest += chunk;
      if (!chunk.includes("\n")) return;
      const lines = rest.split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        const message: RpcEvent | Response = JSON.parse(line);
        if (message.type === "response") this.#settle(message);
        else onEvent(message);
      }
    });
  }

  #settle({ id, command, success, data, error }: Response) {
    const waiting = this.#waiting.get(id ?? "");
    this.#waiting.delete(id ?? "");
    if (success) waiting?.resolve(data);
    else waiting?.reject(new Refused(`${command}: ${error}`));
  }

  send(message: object) {
    this.#process.stdin!.write(`${JSON.stringify(message)}\n`);
  }

  /** Sends a command; returns the data of its response. */
  async ask<Data = void>(type: string, members: object = {}): Promise<Data> {
    const id = `${++this.#ids}`;
    const response = new Promise<Data>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.send({ id, type, ...members });
    const ended = this.#ended.then((how) => Promise.reject(new Ended(`pi ended (${how})`)));
    return Promise.race([response, ended]);
  }

  /** Closes stdin, which ends pi. */
  close(): Promise<string> {
    this.#process.stdin!.end();
    return this.#ended;
  }
}

/** The user interface of a session; starts pi, and again when it exits. */
class Client {
  readonly #program: string;
  readonly #options: string[];
  #session?: string;
  pi!: Pi;
  /** Shows one dialog at a time. */
  #questions: Promise<void> = Promise.resolve();
  question?: AbortController;

  constructor(program: string, options: string[]) {
    this.#program = program;
    this.#options = options;
  }

  async start(more: string[] = []) {
    this.pi = new Pi(this.#program, [...this.#options, ...more], (event) => this.#show(event));
    this.#session = (await this.pi.ask<{ sessionFile?: string }>("get_state")).sessionFile;
  }

  /** Sends a prompt and shows what happens until the agent is done. */
  async converse(text: string) {
    for (let restarts = 0; ; restarts++) {
      try {
        await this.pi.ask("prompt", { message: text });
        return await this.pi.ask("wait_for_idle");
      } catch (error) {
        if (!(error instanceof Ended) || restarts === RESTARTS || !this.#session) throw error;
        console.error(`${error.message}, starting it again`);
      }
      // The conversation is on the disk, up to the last message that was complete.
      await this.start(["--session", this.#session]);
      const { messages } = await this.pi.ask<{ messages: AgentMessage[] }>("get_messages");
      const last = messages.filter((message) => message.role === "user").at(-1);
      if (JSON.stringify(last?.content ?? "").includes(JSON.stringify(text)))
        text = "You were interrupted. Look at where you are, and go on.";
    }
  }

  #show(event: RpcEvent) {
    if (event.type === "message_update") {
      const step = event.assistantMessageEvent;
      if (step.type === "text_delta") process.stdout.write(step.delta);
      else if (step.type === "text_end") process.stdout.write("\n");
    } else if (event.type === "message_end" && event.message.role === "assistant" && event.message.errorMessage)
      console.error(`Error: ${event.message.errorMessage}`);
    else if (event.type === "tool_execution_start") console.error(`[${event.toolName} ${JSON.stringify(event.args)}]`);
    else if (event.type === "tool_execution_end" && event.isError) console.error(`[${event.toolName} failed]`);
    else if (event.type === "extension_error") console.error(`${event.extensionPath}: ${event.error}`);
    else if (event.type === "extension_ui_request") {
      const pi = this.pi;
      this.#questions = this.#questions.then(async () => {
        const answer = await this.#answer(event);
        // An answer after the `timeout` of the dialog is ignored.
        if (answer) pi.send({ type: "extension_ui_response", id: event.id, ...answer });
      });
    }
  }

  /** Asks the user to answer a dialog; `undefined` for a request that is no dialog. */
  async #answer(request: UiRequest): Promise<Answer | undefined> {
    const { method } = request;
    if (method === "notify") console.error(`[${request.message}]`);
    if (method !== "select" && method !== "confirm" && method !== "input" && method !== "editor") return;
    const options = method === "select" ? request.options : [];
    const choices = options.map((option, index) => `  ${index + 1}. ${option}`);
    console.error([`? ${request.title}`, ...(method === "confirm" ? [request.message] : []), ...choices].join("\n"));
    this.question = new AbortController();
    const line = await readAnswer(method === "confirm" ? "y/n> " : "> ", this.question.signal);
    this.question = undefined;
    if (line === undefined) return { cancelled: true };
    if (method === "confirm") return { confirmed: /^y/i.test(line) };
    if (method !== "select") return { value: line };
    const value = options[Number(line) - 1];
    return value === undefined ? { cancelled: true } : { value };
  }
}

// Lines that arrive before a dialog needs one are kept.
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
let line: Promise<IteratorResult<string>> | undefined;

/** Resolves to `undefined` if the input has ended or the dialog was cancelled. */
async function readAnswer(hint: string, signal: AbortSignal): Promise<string | undefined> {
  process.stderr.write(hint);
  const aborted = new Promise<undefined>((resolve) => signal.addEventListener("abort", () => resolve(undefined)));
  line ??= lines.next();
  const answer = await Promise.race([line, aborted]);
  if (answer) line = undefined;
  return answer?.done ? undefined : answer?.value;
}

const words = process.argv.slice(2);
const end = words.includes("--") ? words.indexOf("--") : words.length;
const options = end < words.length ? words.slice(end + 1) : ["--provider", "demo", "--model", "demo"];
const client = new Client(process.env.PI_PROGRAM ?? "pi", options);
let interrupted = false;
process.on("SIGINT", () => {
  if (client.question) return client.question.abort();
  if (interrupted) process.exit(130);
  interrupted = true;
  client.pi.send({ type: "abort" });
});
try {
  await client.start();
  for (const text of words.slice(0, end)) if (!interrupted) await client.converse(text);
  await client.pi.close();
  process.exit(interrupted ? 130 : 0);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
