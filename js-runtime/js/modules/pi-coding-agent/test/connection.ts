// A pi in RPC mode: commands go in, responses and events come out.
import type { ChildProcess, ChildProcessWithoutNullStreams } from "node:child_process";

const { spawn } = process.getBuiltinModule("node:child_process");

// deno-lint-ignore no-explicit-any
export type RpcEvent = { type: string } & Record<string, any>;

interface Waiting {
  type: string;
  resolve(data: unknown): void;
  reject(error: Error): void;
}

/** Milliseconds that a pi may take to exit. */
const EXIT_TIMEOUT = 10_000;

export interface Ended {
  code: number | null;
  signal: string | null;
}

export class Connection {
  stderr = "";
  readonly ended: Promise<Ended>;
  private _child: ChildProcessWithoutNullStreams;
  private _waiting = new Map<string, Waiting>();
  private _ids = 0;
  private _unread = "";

  constructor(
    args: string[],
    where: { cwd: string; env: Record<string, string> },
    onEvent: (event: RpcEvent) => void,
  ) {
    // The test has written the project itself.
    const isDecided = args.some((arg) => ["-a", "--approve", "-na", "--no-approve"].includes(arg));
    const approve = isDecided ? [] : ["--approve"];
    const child = spawn(process.execPath, ["--mode", "rpc", ...approve, ...args], { ...where, stdio: "pipe" });
    this._child = child;
    child.stderr.setEncoding("utf8");
    child.stderr.on("data", (text: string) => (this.stderr += text));
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (text: string) => {
      const lines = (this._unread + text).split("\n");
      this._unread = lines.pop()!;
      for (const line of lines) this._onLine(JSON.parse(line) as RpcEvent, onEvent);
    });
    // A failed write is reported by the exit that follows.
    child.stdin.on("error", () => {});
    this.ended = new Promise((resolve) => {
      child.on("error", () => resolve({ code: null, signal: null }));
      child.on("close", (code, signal) => resolve({ code, signal }));
    });
    void this.ended.then(({ code, signal }) => {
      const error = new Error(`pi has ended (${signal ?? `exit code ${code}`})\n${this.stderr}`.trimEnd());
      for (const { reject } of this._waiting.values()) reject(error);
      this._waiting.clear();
    });
  }

  private _onLine(line: RpcEvent, onEvent: (event: RpcEvent) => void): void {
    if (line.type !== "response") return onEvent(line);
    const waiting = this._waiting.get(String(line.id));
    this._waiting.delete(String(line.id));
    if (line.success) waiting?.resolve(line.data);
    else waiting?.reject(new Error(`${line.command}: ${line.error}`));
  }

  /** Commands that have no response yet. */
  get pending(): string[] {
    return [...this._waiting.values()].map(({ type }) => type);
  }

  request<T = unknown>(type: string, members: object = {}): Promise<T> {
    const id = String((this._ids += 1));
    return new Promise((resolve, reject) => {
      this._waiting.set(id, { type, resolve: resolve as (data: unknown) => void, reject });
      this.send({ ...members, id, type });
    });
  }

  /** Sends a command without waiting for its response. */
  send(command: object): void {
    this._child.stdin.write(`${JSON.stringify(command)}\n`);
  }

  /** Ends pi as a client does, by closing the input, and kills it after `timeout` milliseconds. */
  async close(timeout = EXIT_TIMEOUT): Promise<Ended> {
    this._child.stdin.end();
    const timer = setTimeout(() => this.kill(), timeout);
    try {
      return await this.ended;
    } finally {
      clearTimeout(timer);
    }
  }

  private kill(): void {
    this._child.kill("SIGKILL");
  }
}

export interface PrintOutput extends Ended {
  stdout: string;
  stderr: string;
}

/** Runs a pi until it exits. */
export async function runToEnd(
  args: string[],
  where: { cwd: string; env: Record<string, string> },
  input: string,
  onStart: (child: ChildProcess) => void,
): Promise<PrintOutput> {
  const child = spawn(process.execPath, args, { ...where, stdio: "pipe" });
  onStart(child);
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  return await new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}
