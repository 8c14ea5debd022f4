// Runs built-in tools of the program, and its shell, for an extension. The program sends messages
// about a run, including requests for operations that the extension replaces.
import { host, hostSync } from "pi:host.ts";
import { buffer } from "pi:node.ts";

/** Operations of an extension that replace those of the program: `readFile`, `exec`, ... */
export type Operations = Record<string, unknown>;

type Updates = ((partial: unknown) => void) | undefined;

interface OperationRequest {
  type: "ask";
  id: number;
  operation: string;
  args: unknown[];
}

type RunMessage =
  | { type: "update"; output: unknown }
  | { type: "data"; data: string }
  | { type: "done"; output: unknown }
  | { type: "failed"; error: string }
  | OperationRequest;

export interface Run {
  /** The name of a built-in tool, or `exec` for the shell. */
  name: string;
  callId?: string;
  cwd: string;
  args: unknown;
  operations?: Operations;
  autoResizeImages?: boolean;
  env?: Record<string, string | undefined>;
  /** Replaces the shell of the settings. */
  shellPath?: string;
}

interface Listeners {
  signal?: AbortSignal;
  onUpdate?: Updates;
  onData?: (data: unknown) => void;
}

let tokens = 0;

/** Resolves to the tool's result, rejects with its error. */
export async function run<T>(request: Run, { signal, onUpdate, onData }: Listeners): Promise<T> {
  const { operations, ...rest } = request;
  const token = (tokens += 1);
  const offers = operations &&
    Object.keys(operations).filter((name) => typeof operations[name] === "function");
  hostSync("tools.start", { token, offers, ...rest });
  const abort = () => hostSync("tools.abort", { token });
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort, { once: true });
  try {
    for (;;) {
      const batch = await host<RunMessage[]>("tools.next", { token });
      if (batch.length === 0) throw new Error(`The run of ${request.name} was lost`);
      for (const message of batch) {
        if (message.type === "done") return message.output as T;
        if (message.type === "failed") throw new Error(message.error);
        if (message.type === "update") onUpdate?.(message.output);
        else if (message.type === "data") onData?.(buffer().from(message.data, "base64"));
        else void runOperation(token, message, operations ?? {}, signal);
      }
    }
  } finally {
    signal?.removeEventListener("abort", abort);
    hostSync("tools.close", { token });
  }
}

async function runOperation(
  token: number,
  { id, operation, args }: OperationRequest,
  operations: Operations,
  signal: AbortSignal | undefined,
): Promise<void> {
  const respond = (answer: object) => hostSync("tools.respond", { token, id, ...answer });
  try {
    const result = await (operation === "exec"
      ? exec(operations as unknown as BashOperations, args, signal, (data) =>
        host("tools.data", { token, id, data }))
      : (operations[operation] as (...args: unknown[]) => unknown)(...args));
    respond({ value: plain(operation, result) });
  } catch (error) {
    respond({ error: error instanceof Error ? error.message : String(error) });
  }
}

/**
 * Converts results for the bridge: contents of files to base64, results of `stat` to whether the
 * path is a folder.
 */
function plain(operation: string, result: unknown): unknown {
  if (operation === "stat") return (result as { isDirectory(): boolean }).isDirectory();
  if (result instanceof Uint8Array) {
    return { base64: buffer().from(result.buffer, result.byteOffset, result.byteLength).toString("base64") };
  }
  return result;
}

export interface ExecOptions {
  onData(data: unknown): void;
  signal?: AbortSignal;
  /** Timeout in seconds. */
  timeout?: number;
  env?: Record<string, string | undefined>;
}

export interface BashOperations {
  exec(command: string, cwd: string, options: ExecOptions): Promise<{ exitCode: number | null }>;
}

/** Runs a command with an extension's operations; all output was passed on when it resolves. */
export async function exec(
  operations: BashOperations,
  args: unknown[],
  signal: AbortSignal | undefined,
  send: (base64: string) => Promise<unknown>,
): Promise<{ exitCode: number | null }> {
  const [command, cwd, options] = args as [string, string, Partial<ExecOptions> | undefined];
  let sent: Promise<unknown> = Promise.resolve();
  const onData = (data: unknown) => {
    const bytes = buffer().from(data as Uint8Array).toString("base64");
    sent = sent.then(() => send(bytes)).catch(() => undefined);
  };
  const { timeout, env } = options ?? {};
  try {
    return await operations.exec(command, cwd, {
      onData,
      signal,
      timeout: timeout ?? undefined,
      env: env ?? undefined,
    });
  } finally {
    await sent;
  }
}
