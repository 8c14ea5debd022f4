// `RpcClient`: controls another pi, a child process, over its stdin and stdout.
import { environment, executable, spawn } from "pi:node.ts";
import type { ChildProcess } from "pi:node.ts";

interface Options {
  /** The path of the original's program; the child is always this pi. */
  cliPath?: string;
  cwd?: string;
  env?: Record<string, string>;
  provider?: string;
  model?: string;
  args?: string[];
}

interface Line {
  type: string;
  id?: string;
  success?: boolean;
  error?: string;
  data?: unknown;
}

type Listener = (event: Line) => void;

const RESPONSE_TIMEOUT = 30_000;
const KILL_AFTER = 1000;

export class RpcClient {
  private options: Options;
  private _child: ChildProcess | undefined;
  private _listeners = new Set<Listener>();
  private _waiting = new Map<string, { resolve(line: Line): void; reject(error: Error): void }>();
  private _ids = 0;
  private _errors = "";

  constructor(options: Options = {}) {
    this.options = options;
  }

  async start(): Promise<void> {
    if (this._child) throw new Error("Client already started");
    const { provider, model, args = [], cwd, env } = this.options;
    const modeArgs = ["--mode", "rpc"];
    if (provider) modeArgs.push("--provider", provider);
    if (model) modeArgs.push("--model", model);
    const child = spawn(executable(), [...modeArgs, ...args], {
      cwd,
      env: { ...environment(), ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this._child = child;
    child.stdout.setEncoding("utf8");
    child.stderr.setEncoding("utf8");
    child.stderr.on("data", (text) => (this._errors += text));
    let rest = "";
    child.stdout.on("data", (text) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() as string;
      for (const line of lines) this._onLine(line);
    });
    const gone = (error: Error) => {
      this._child = undefined;
      for (const { reject } of this._waiting.values()) reject(error);
      this._waiting.clear();
    };
    child.on("error", (error) => gone(error as Error));
    child.on("exit", (code) => gone(new Error(`Agent process exited with code ${code}. Stderr: ${this._errors}`)));
    // The child answers when it is ready; if it exits, this rejects.
    await this._request({ type: "get_state" });
  }

  private _onLine(text: string): void {
    let line: Line;
    try {
      line = JSON.parse(text);
    } catch {
      return;
    }
    const waiting = line.type === "response" && line.id ? this._waiting.get(line.id) : undefined;
    if (waiting) {
      this._waiting.delete(line.id as string);
      return waiting.resolve(line);
    }
    for (const listener of [...this._listeners]) listener(line);
  }

  private async _request<T = void>(command: { type: string; [member: string]: unknown }): Promise<T> {
    const child = this._child;
    if (!child) throw new Error("Client not started");
    const id = `req_${(this._ids += 1)}`;
    const answer = new Promise<Line>((resolve, reject) => this._waiting.set(id, { resolve, reject }));
    child.stdin.write(`${JSON.stringify({ ...command, id })}\n`);
    const { success, error, data } = await answer;
    if (!success) throw new Error(error);
    return data as T;
  }

  async stop(): Promise<void> {
    const child = this._child;
    if (!child) return;
    const ended = new Promise<void>((resolve) => child.on("exit", () => resolve()));
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), KILL_AFTER);
    await ended;
    clearTimeout(timer);
  }

  onEvent(listener: Listener): () => void {
    this._listeners.add(listener);
    return () => void this._listeners.delete(listener);
  }

  getStderr(): string {
    return this._errors;
  }

  prompt(message: string, images?: unknown[]): Promise<void> {
    return this._request({ type: "prompt", message, images });
  }

  steer(message: string, images?: unknown[]): Promise<void> {
    return this._request({ type: "steer", message, images });
  }

  followUp(message: string, images?: unknown[]): Promise<void> {
    return this._request({ type: "follow_up", message, images });
  }

  abort(): Promise<void> {
    return this._request({ type: "abort" });
  }

  newSession(parentSession?: string): Promise<unknown> {
    return this._request({ type: "new_session", parentSession });
  }

  getState(): Promise<unknown> {
    return this._request({ type: "get_state" });
  }

  setModel(provider: string, modelId: string): Promise<unknown> {
    return this._request({ type: "set_model", provider, modelId });
  }

  cycleModel(): Promise<unknown> {
    return this._request({ type: "cycle_model" });
  }

  setThinkingLevel(level: string): Promise<void> {
    return this._request({ type: "set_thinking_level", level });
  }

  cycleThinkingLevel(): Promise<unknown> {
    return this._request({ type: "cycle_thinking_level" });
  }

  setSteeringMode(mode: string): Promise<void> {
    return this._request({ type: "set_steering_mode", mode });
  }

  setFollowUpMode(mode: string): Promise<void> {
    return this._request({ type: "set_follow_up_mode", mode });
  }

  compact(customInstructions?: string): Promise<unknown> {
    return this._request({ type: "compact", customInstructions });
  }

  setAutoCompaction(enabled: boolean): Promise<void> {
    return this._request({ type: "set_auto_compaction", enabled });
  }

  setAutoRetry(enabled: boolean): Promise<void> {
    return this._request({ type: "set_auto_retry", enabled });
  }

  abortRetry(): Promise<void> {
    return this._request({ type: "abort_retry" });
  }

  bash(command: string): Promise<unknown> {
    return this._request({ type: "bash", command });
  }

  abortBash(): Promise<void> {
    return this._request({ type: "abort_bash" });
  }

  getSessionStats(): Promise<unknown> {
    return this._request({ type: "get_session_stats" });
  }

  exportHtml(outputPath?: string): Promise<unknown> {
    return this._request({ type: "export_html", outputPath });
  }

  switchSession(sessionPath: string): Promise<unknown> {
    return this._request({ type: "switch_session", sessionPath });
  }

  fork(entryId: string): Promise<unknown> {
    return this._request({ type: "fork", entryId });
  }

  setSessionName(name: string): Promise<void> {
    return this._request({ type: "set_session_name", name });
  }

  private async _member<T>(type: string, name: string): Promise<T> {
    return (await this._request<Record<string, T>>({ type }))[name] as T;
  }

  getAvailableModels(): Promise<unknown[]> {
    return this._member("get_available_models", "models");
  }

  getForkMessages(): Promise<unknown[]> {
    return this._member("get_fork_messages", "messages");
  }

  getMessages(): Promise<unknown[]> {
    return this._member("get_messages", "messages");
  }

  getCommands(): Promise<unknown[]> {
    return this._member("get_commands", "commands");
  }

  async getLastAssistantText(): Promise<string | null> {
    return (await this._member<string | undefined>("get_last_assistant_text", "text")) ?? null;
  }

  /** Collects all events until the agent is done. */
  collectEvents(timeout = 2 * RESPONSE_TIMEOUT): Promise<Line[]> {
    return new Promise((resolve, reject) => {
      const events: Line[] = [];
      const timer = setTimeout(() => {
        off();
        reject(new Error(`Timeout collecting events. Stderr: ${this._errors}`));
      }, timeout);
      const off = this.onEvent((event) => {
        events.push(event);
        if (event.type !== "agent_end") return;
        clearTimeout(timer);
        off();
        resolve(events);
      });
    });
  }

  async waitForIdle(timeout?: number): Promise<void> {
    await this.collectEvents(timeout);
  }

  async promptAndWait(message: string, images?: unknown[], timeout?: number): Promise<Line[]> {
    const events = this.collectEvents(timeout);
    // If the prompt is refused, the rejection would count as unhandled.
    events.catch(() => undefined);
    await this.prompt(message, images);
    return await events;
  }
}
