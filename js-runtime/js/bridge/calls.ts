// Functions that the program calls. Each takes one JSON text and returns JSON text, `undefined`, or
// a promise of either.
import { describe, host, hostSync, writeStack } from "ext:js_runtime/bridge/host.ts";
import {
  abort,
  AbortController,
  asError,
  extend,
  isArray,
  isClass,
  isAuthorError,
  JSON,
  Object,
  SafeMap,
  Set,
} from "ext:js_runtime/primordials.ts";
import { createApi } from "ext:js_runtime/bridge/api.ts";
import {
  abortRun as abortRunSignal,
  createCommandContext,
  createContext,
  sessionManager,
  withSignal,
} from "ext:js_runtime/bridge/context.ts";
import {
  commands,
  enter,
  find,
  frameOf,
  handlers,
  addNumbered,
  operations,
  plainText,
  report,
  shortcuts,
  tools,
} from "ext:js_runtime/bridge/registry.ts";
import { completionsIn, placedIn, resultProblem } from "ext:js_runtime/bridge/validate/results.ts";
import { modelsRestored } from "ext:js_runtime/bridge/model-refresh.ts";
import { exec } from "pi:pi-coding-agent/tools/execute.ts";
import type { BashOperations } from "pi:pi-coding-agent/tools/execute.ts";

/** Runs the factory that the module exports by default. */
export async function activate(
  extension: number,
  namespace: { default?: unknown },
): Promise<void> {
  let factory = await namespace.default;
  // A CommonJS file may contain `exports.default = ...`.
  if (typeof factory !== "function") {
    factory = await (factory as { default?: unknown } | undefined)?.default;
  }
  if (typeof factory !== "function") {
    throw new Error(
      `Extension does not export a valid factory function${describeExports(namespace)}: ` +
        "write `export default function (pi) { ... }`. A file that only helps others belongs in a folder that has no index.ts",
    );
  }
  if (isClass(factory)) {
    const position = frameOf(factory).replace(/^ *at (.*)/, " ($1)");
    throw new TypeError(
      `The extension exports the class ${factory.name || "without a name"}, and pi calls what is exported without new: ` +
        "write `export default (pi) => { new TheClass(pi); }`" + position,
    );
  }
  enter(extension, "load");
  await factory(createApi(extension));
  await modelsRestored(extension);
}

/** Describes what a module exports instead of a default function. */
function describeExports(namespace: { default?: unknown }): string {
  const names = Object.keys(namespace).filter((name) => name !== "default" && name !== "module.exports");
  const { default: value } = namespace;
  if (value === undefined) return names.length === 0 ? " (it exports nothing)" : ` (it exports ${names.join(", ")}, no default)`;
  if (typeof value !== "object" || value === null) return ` (its default export is a ${typeof value})`;
  const members = Object.keys(value);
  return members.length === 0 ? " (its default export is an empty object)" : ` (its default export is an object with ${members.join(", ")})`;
}

interface Dispatch {
  extension: number;
  handler: number;
  /** The number of this call of a handler. */
  call: number;
  event: Record<string, unknown>;
  /** The members that the handler may change in place. */
  mutable?: string[];
  /** Whether replacing such a member has no effect. */
  in_place_only?: boolean;
  run?: number | null;
}

type Members = Record<string, unknown>;

/** A call of a handler whose result counts, while it is pending or after it failed. */
interface PendingCall {
  result: unknown;
  /** The members that the handler has changed in place so far. */
  changed(): Members | undefined;
  /** Whether the program stopped waiting for it. */
  isAbandoned: boolean;
  hasFailed: boolean;
}

/** Pending calls by number. */
const pendingCalls = new SafeMap<number, PendingCall>();

/** Calls one handler whose result counts. */
export async function dispatch(json: string): Promise<string | undefined> {
  const { extension, handler, call, event, mutable = [], in_place_only, run } = JSON.parse(json) as Dispatch;
  const fn = find(handlers, handler, "handler");
  const { changed, replaced } = watch(event, mutable, in_place_only === true);
  const pending: PendingCall = { result: undefined, changed, isAbandoned: false, hasFailed: false };
  pendingCalls.set(call, pending);
  const callHandler = async () => {
    enter(extension, event.type as string);
    try {
      return await (pending.result = fn(event, createContext(extension, run)));
    } catch (error) {
      writeStack(error);
      throw event.type === "tool_call" ? blockingError(error) : error;
    }
  };
  let result: unknown;
  try {
    result = await (typeof event.signal === "number" ? withLiveMembers(event, callHandler) : callHandler());
  } catch (error) {
    // Changes from before the failure count; the program fetches them with `mutationsOf`.
    pending.hasFailed = true;
    if (pending.isAbandoned || !changedSoFar(pending)) pendingCalls.delete(call);
    throw error;
  }
  pendingCalls.delete(call);
  const mutated = changed();
  const assigned = replaced();
  if (!mutated && assigned.length === 0 && (result === undefined || result === null)) return undefined;
  return JSON.stringify({
    result: withoutFunctions(extension, event.type as string, result ?? null),
    mutated,
    assigned,
  });
}

interface Watched {
  /** The new values of members that have changed. */
  changed(): Members | undefined;
  /** Members that were replaced although only changes in place count. */
  replaced(): string[];
}

function watch(event: Members, mutable: string[], inPlaceOnly: boolean): Watched {
  const original = mutable.map((member) => event[member]);
  const before = original.map((value) => JSON.stringify(value));
  return {
    changed() {
      let mutated: Members | undefined;
      mutable.forEach((member, index) => {
        const value = inPlaceOnly ? original[index] : event[member];
        const after = JSON.stringify(value);
        if (after === undefined || after === before[index]) return;
        mutated ??= {};
        mutated[member] = value;
      });
      return mutated;
    },
    replaced: () => inPlaceOnly ? mutable.filter((member, index) => event[member] !== original[index]) : [],
  };
}

function changedSoFar(call: PendingCall): Members | undefined {
  try {
    return call.changed();
  } catch {
    // The handler is in the middle of a change, or failed during one.
    return undefined;
  }
}

/** The changes in place of a handler that failed or was abandoned. */
export function mutationsOf(json: string): string | undefined {
  const call = JSON.parse(json) as number;
  const pending = pendingCalls.get(call);
  if (!pending) return undefined;
  pending.isAbandoned = true;
  if (pending.hasFailed) pendingCalls.delete(call);
  const mutated = changedSoFar(pending);
  return mutated && JSON.stringify({ mutated });
}

/** Resolves when that call of a handler has settled. */
export async function whenDispatchSettled(json: string): Promise<void> {
  try {
    await pendingCalls.get(JSON.parse(json) as number)?.result;
  } catch {
    // The result is too late to count.
  }
}

/** The model gets the exception: it has to see that this is no result. */
function blockingError(error: unknown): unknown {
  const message = plainText(error);
  if (error instanceof Error && message !== "") return error;
  return new Error(`Extension failed, blocking execution: ${message || "an error without a message"}`);
}

/** Replaces functions in a result by a number. */
function withoutFunctions(extension: number, type: string, result: unknown): unknown {
  const by = (result as { operations?: BashOperations } | null)?.operations;
  if (type !== "user_bash" || !by) return result;
  if (typeof by.exec !== "function") {
    throw new TypeError("operations of an answer to user_bash must have a function exec");
  }
  return { operations: addNumbered(operations, { extension, by }) };
}

interface UserCommand {
  operations: number;
  /** The program's token for output and abort. */
  token: number;
  command: string;
  cwd: string;
}

const userCommands = new SafeMap<number, AbortController>();

/** Runs a command of the user with the operations that a `user_bash` handler returned. */
export async function runUserCommand(json: string): Promise<string> {
  const { operations: id, token, command, cwd } = JSON.parse(json) as UserCommand;
  const { extension, by } = find(operations, id, "operations");
  operations.delete(id);
  const controller = new AbortController();
  userCommands.set(token, controller);
  enter(extension, "user_bash");
  try {
    const send = (data: string) => host("user_bash.data", { token, data });
    return JSON.stringify(await exec(by, [command, cwd], controller.signal, send));
  } finally {
    userCommands.delete(token);
  }
}

export function abortUserCommand(json: string): void {
  abortOne(userCommands, json);
}

function abortOne(controllers: Map<number, AbortController>, json: string): void {
  const controller = controllers.get(JSON.parse(json) as number);
  if (controller) abort(controller);
}

/** Restores members of a `session_before_...` event that JSON cannot carry. */
function withLiveMembers<T>(event: Record<string, unknown>, run: () => Promise<T>): Promise<T> {
  const { fileOps } = event.preparation as { fileOps?: Record<string, unknown> };
  const kinds = Object.keys(fileOps ?? {});
  for (let index = 0; index < kinds.length; index += 1) {
    fileOps![kinds[index]] = new Set(fileOps![kinds[index]] as string[]);
  }
  if (event.type === "session_before_compact") {
    // The whole conversation, read on demand.
    const leaf = event.branchEntries as string;
    const get = () => sessionManager.getBranch(leaf);
    Object.defineProperty(event, "branchEntries", { get, enumerable: true, configurable: true });
  }
  return withSignal(event.signal as number, (signal) => {
    event.signal = signal;
    return run();
  });
}

/** The source position of a registered function, by its number. */
export function sourcePositionOf(json: string): string {
  const id = JSON.parse(json) as number;
  return frameOf(
    handlers.get(id) ?? tools.get(id)?.execute ?? commands.get(id)?.handler ?? shortcuts.get(id),
  );
}

interface ToolCall {
  extension: number;
  tool: number;
  /** The program's token for updates and aborts. */
  token: number;
  callId: string;
  params: unknown;
  /** Whether the program waits for `execute` to have been called. */
  reportsStart: boolean;
  run?: number | null;
}

const running = new SafeMap<number, AbortController>();

export async function executeTool(json: string): Promise<string> {
  const { extension, tool, token, callId, params, reportsStart, run } = JSON.parse(json) as ToolCall;
  const definition = find(tools, tool, "tool");
  const controller = new AbortController();
  running.set(token, controller);
  let resultError: Error | undefined;
  enter(extension, `tool:${definition.name}`);
  try {
    const executing = definition.execute(
      callId,
      params,
      controller.signal,
      (output) => {
        if (running.has(token)) hostSync("tool.update", { token, output: partialOf(output) });
      },
      // Each call has a signal of its own: a tool may be aborted alone, and while no run is known.
      extend(createContext(extension, run), { signal: controller.signal }),
    );
    if (reportsStart) hostSync("tool.started", { token });
    const result = await executing;
    const problem = resultProblem(definition.name, result);
    if (problem) throw resultError = placedIn(definition.execute, new TypeError(problem));
    return JSON.stringify(result);
  } catch (error) {
    writeStack(error);
    // The model gets the error, and so does the author if it is a mistake in the code.
    const isReported = isAuthorError(error) || (resultError !== undefined && error === resultError);
    if (isReported && !controller.signal.aborted) report(extension, `tool:${definition.name}`, error);
    throw asError(error);
  } finally {
    running.delete(token);
  }
}

/** Returns the partial result of a tool, which may have any type. */
function partialOf(output: unknown): unknown {
  if (output === undefined || output === null) return { content: [] };
  if (isArray((output as { content?: unknown }).content)) return output;
  const text = typeof output === "string" ? output : JSON.stringify(output) ?? "";
  return { content: [{ type: "text", text }] };
}

export function abortTool(json: string): void {
  abortOne(running, json);
}

export function abortRun(json: string): void {
  abortRunSignal(JSON.parse(json) as number);
}

export function prepareArguments(json: string): string {
  const { extension, tool, args } = JSON.parse(json) as {
    extension: number;
    tool: number;
    args: unknown;
  };
  const definition = find(tools, tool, "tool");
  enter(extension, `tool:${definition.name}`);
  return JSON.stringify(definition.prepareArguments!(args) ?? null);
}

export async function runCommand(json: string): Promise<void> {
  const { extension, command, args, run } = JSON.parse(json) as {
    extension: number;
    command: number;
    args: string;
    run?: number | null;
  };
  const { handler } = find(commands, command, "command");
  enter(extension, "command");
  try {
    await handler(args, createCommandContext(extension, run));
  } catch (error) {
    writeStack(error);
    throw error;
  }
}

/** Runs the handler that an extension registered for a key. */
export async function runShortcut(json: string): Promise<void> {
  const { extension, shortcut, key, run } = JSON.parse(json) as {
    extension: number;
    shortcut: number;
    key: string;
    run?: number | null;
  };
  const handler = find(shortcuts, shortcut, "shortcut") as (ctx: unknown) => unknown;
  enter(extension, `shortcut:${key}`);
  try {
    await handler(createContext(extension, run));
  } catch (error) {
    writeStack(error);
    throw error;
  }
}

export async function completeArguments(json: string): Promise<string> {
  const { extension, command, prefix } = JSON.parse(json) as {
    extension: number;
    command: number;
    prefix: string;
  };
  enter(extension, "command");
  const { getArgumentCompletions } = find(commands, command, "command");
  const complain = (error: unknown) => {
    // Completions are requested at every key press, so a repeated problem is reported once.
    const problem = describe(error);
    if (completions.get(command) !== problem) report(extension, "command", error);
    completions.set(command, problem);
  };
  try {
    const { good, problem } = completionsIn(await getArgumentCompletions?.(prefix) ?? []);
    if (problem) complain(placedIn(getArgumentCompletions, new TypeError(`getArgumentCompletions ${problem}`)));
    return JSON.stringify(good);
  } catch (error) {
    complain(error);
    return "[]";
  }
}

/** By command, the last problem reported about its completions. */
const completions = new SafeMap<number, string>();
