// What the program calls. Every function takes one JSON text and answers with
// JSON text, `undefined`, or a promise of either.
import { describe, host, hostSync } from "ext:js_runtime/host.ts";
import {
  abort,
  AbortController,
  asError,
  extend,
  isArray,
  isClass,
  isSlip,
  JSON,
  now,
  Object,
  Promise,
  race,
  SafeMap,
  SafeSet,
  Set,
} from "ext:js_runtime/safe.ts";
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
  frameOf,
  handlers,
  keep,
  leaveQueued,
  operations,
  plainText,
  report,
  shortcuts,
  tools,
} from "ext:js_runtime/bridge/registry.ts";
import { completionsIn, placedIn, wrongResult } from "ext:js_runtime/bridge/results.ts";
import { modelsRestored } from "ext:js_runtime/bridge/model-refresh.ts";
import { eventOf } from "ext:js_runtime/bridge/updates.ts";
import { Boundary, isBoundary } from "ext:js_runtime/bridge/boundary.ts";
import type { Update } from "ext:js_runtime/bridge/updates.ts";
import { exec } from "pi:pi-coding-agent/tool-runs.ts";
import type { BashOperations } from "pi:pi-coding-agent/tool-runs.ts";

function find<T>(map: Map<number, T>, id: number, what: string): T {
  const found = map.get(id);
  if (!found) throw new Error(`There is no ${what} ${id} in this runtime`);
  return found;
}

/** Runs the factory that the module exports by default. */
export async function activate(
  extension: number,
  namespace: { default?: unknown },
): Promise<void> {
  let factory = await namespace.default;
  // `exports.default = ...` in a CommonJS file.
  if (typeof factory !== "function") {
    factory = await (factory as { default?: unknown } | undefined)?.default;
  }
  if (typeof factory !== "function") {
    throw new Error(
      `Extension does not export a valid factory function${exported(namespace)}: ` +
        "write `export default function (pi) { ... }`. A file that only helps others belongs into a folder that has no index.ts",
    );
  }
  if (isClass(factory)) {
    const place = frameOf(factory).replace(/^ *at (.*)/, " ($1)");
    throw new TypeError(
      `The extension exports the class ${factory.name || "without a name"}, and pi calls what is exported without new: ` +
        "write `export default (pi) => { new TheClass(pi); }`" + place,
    );
  }
  enter(extension, "load");
  await factory(createApi(extension));
  await modelsRestored(extension);
}

/** What there is instead, in words. */
function exported(namespace: { default?: unknown }): string {
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
  event: Record<string, unknown>;
  /** The members that the handler may change in place. */
  mutable?: string[];
  /** Another value in their place does not count. */
  in_place_only?: boolean;
  run?: number | null;
}

/** One handler whose answer counts. */
export async function dispatch(json: string): Promise<string | undefined> {
  const { extension, handler, event, mutable = [], in_place_only: inPlaceOnly, run } = JSON.parse(json) as Dispatch;
  const fn = find(handlers, handler, "handler");
  const given = mutable.map((member) => event[member]);
  const before = given.map((value) => JSON.stringify(value));
  const ask = async () => {
    enter(extension, event.type as string);
    try {
      return await fn(event, createContext(extension, run));
    } catch (error) {
      throw event.type === "tool_call" ? blocking(error) : error;
    }
  };
  const result = await (typeof event.signal === "number" ? withLive(event, ask) : ask());
  let mutated: Record<string, unknown> | undefined;
  mutable.forEach((member, index) => {
    const value = inPlaceOnly ? given[index] : event[member];
    const after = JSON.stringify(value);
    if (after === undefined || after === before[index]) return;
    mutated ??= {};
    mutated[member] = value;
  });
  if (!mutated && (result === undefined || result === null)) return undefined;
  return JSON.stringify({
    result: plain(extension, event.type as string, result ?? null),
    mutated,
  });
}

/** The model is told what was thrown: it has to see that this is no result. */
function blocking(error: unknown): unknown {
  const said = plainText(error);
  if (error instanceof Error && said !== "") return error;
  return new Error(`Extension failed, blocking execution: ${said || "an error without a message"}`);
}

/** An answer with a number in the place of its functions. */
function plain(extension: number, type: string, result: unknown): unknown {
  const by = (result as { operations?: BashOperations } | null)?.operations;
  if (type !== "user_bash" || !by) return result;
  if (typeof by.exec !== "function") {
    throw new TypeError("operations of an answer to user_bash must have a function exec");
  }
  return { operations: keep(operations, { extension, by }) };
}

interface UserCommand {
  operations: number;
  /** Of the program, for output and the abort. */
  token: number;
  command: string;
  cwd: string;
}

const userCommands = new SafeMap<number, AbortController>();

/** A command of the user's, by the operations that a `user_bash` handler gave. */
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

/** The members of a `session_before_...` event that are no plain data. */
function withLive<T>(event: Record<string, unknown>, ask: () => Promise<T>): Promise<T> {
  const { fileOps } = event.preparation as { fileOps?: Record<string, unknown> };
  const kinds = Object.keys(fileOps ?? {});
  for (let index = 0; index < kinds.length; index += 1) {
    fileOps![kinds[index]] = new Set(fileOps![kinds[index]] as string[]);
  }
  if (event.type === "session_before_compact") {
    // All that was ever said; only who reads it pays for it.
    const leaf = event.branchEntries as string;
    const get = () => sessionManager.getBranch(leaf);
    Object.defineProperty(event, "branchEntries", { get, enumerable: true, configurable: true });
  }
  return withSignal(event.signal as number, (signal) => {
    event.signal = signal;
    return ask();
  });
}

/** By a handler of `message_end`: another message in the place of the event's. */
type Answered = { message?: unknown } | undefined | null;

interface Notification {
  event: { type: string; message?: unknown } | Update;
  targets: [extension: number, handler: number][];
  /** The number under which a change of the message is told. */
  change?: number;
}

/** The handler that a batch waits for. */
interface Current {
  extension: number;
  handler: number;
  event: string;
  /** Which call of the handler this is: the same handler may be up again soon. */
  call: number;
  since: number;
  result: Promise<unknown>;
}

/** Goes past the current handler. */
let skip: (() => void) | undefined;
let current: Current | undefined;
let calls = 0;
/** Handlers that were left behind; until they settle they are not called again. */
const stuck = new SafeSet<number>();

/** What the handlers of an event took, in milliseconds. */
interface Spent {
  extension: number;
  event: string;
  calls: number;
  failures: number;
  total: number;
  slowest: number;
}

function tally(spent: Spent[], extension: number, event: string, took: number, failed: boolean) {
  // Most of a batch is one event of one extension.
  let sum: Spent | undefined;
  for (let index = 0; index < spent.length; index += 1) {
    if (spent[index].extension === extension && spent[index].event === event) sum = spent[index];
  }
  if (!sum) {
    sum = { extension, event, calls: 0, failures: 0, total: 0, slowest: 0 };
    spent[spent.length] = sum;
  }
  sum.calls += 1;
  sum.failures += failed ? 1 : 0;
  sum.total += took;
  if (took > sum.slowest) sum.slowest = took;
}

/**
 * The agent waits for it: what its handlers make of the message is what was said. What
 * cannot be used is not taken, and the next handler does not see it. Gives the JSON of
 * what is there now.
 */
function takeChange(
  event: { type: string; message?: unknown },
  extension: number,
  change: number,
  before: string,
): string {
  try {
    const after = JSON.stringify(event.message);
    if (after === before) return before;
    const { role } = JSON.parse(before) as { role: string };
    const { message } = event;
    const problem = hostSync<string | undefined>("message.changed", { change, role, message });
    if (!problem) return after;
    report(extension, event.type, new Error(`What the handler left was not taken: ${problem}`));
  } catch (error) {
    report(extension, event.type, error);
  }
  event.message = JSON.parse(before);
  return before;
}

/** Handlers whose answers do not count, in order. */
export async function notify(json: string): Promise<string> {
  const spent: Spent[] = [];
  const { events, run } = JSON.parse(json) as { events: Notification[]; run?: number | null };
  // By number: iterating is the extensions' to patch.
  for (let index = 0; index < events.length; index += 1) {
    const { event: told, targets, change } = events[index];
    const event = "step" in told ? eventOf(told) : told;
    if (event.type === "agent_end") restSoon(run);
    const ends = change !== undefined && isBoundary(event.type);
    const boundary = ends ? new Boundary(event, change) : undefined;
    let message = change === undefined || ends ? undefined : JSON.stringify(event.message);
    for (let target = 0; target < targets.length; target += 1) {
      const extension = targets[target][0];
      const handler = targets[target][1];
      if (stuck.has(handler)) continue;
      enter(extension, event.type, true);
      const since = now();
      let failed = false;
      try {
        let result = find(handlers, handler, "handler")(
          event as unknown as Record<string, unknown>,
          createContext(extension, run),
        );
        if (result instanceof Promise) {
          calls += 1;
          current = { extension, handler, event: event.type, call: calls, since, result };
          result = await race(result, new Promise<void>((resolve) => (skip = resolve)));
        }
        boundary?.take(extension, result);
        heed(extension, handler, event, result);
        if (message) event.message = (result as Answered)?.message ?? event.message;
      } catch (error) {
        failed = true;
        report(extension, event.type, error);
      } finally {
        skip = current = undefined;
        leaveQueued();
      }
      if (message) message = takeChange(event, extension, change!, message);
      tally(spent, extension, event.type, now() - since, failed);
    }
  }
  return JSON.stringify(spent);
}

/**
 * As long as handlers of `agent_end` have not waited for anything they see a run that is
 * busy. The original goes on for five steps of the microtask queue after it has told
 * them, and extensions rely on what they found out by trying.
 */
async function restSoon(run?: number | null): Promise<void> {
  for (let step = 0; step < 5; step += 1) await undefined;
  hostSync("run.rest", { run });
}

/** Queued events whose answers count. */
const answered = new SafeSet(["message_end", "turn_end", "agent_before_settle"]);
/** Handlers of which it was told that nothing comes of what they answer. */
const unheard = new SafeSet<number>();

/** The program is told of members that the event has not: it knows what an answer may have. */
function heed(extension: number, handler: number, event: { type: string }, result: unknown): void {
  if (typeof result !== "object" || result === null || unheard.has(handler)) return;
  const given = result as Record<string, unknown>;
  const answer: Record<string, unknown> = {};
  try {
    // Functions give back all kinds of things; only this is meant as an answer.
    if (!answered.has(event.type) && given.block !== true && given.cancel !== true) return;
    const names = Object.keys(given);
    for (let index = 0; index < names.length; index += 1) {
      const value = given[names[index]];
      if (names[index] in event) continue;
      answer[names[index]] = typeof value === "object" && value !== null ? {} : value;
    }
    if (Object.keys(answer).length === 0) return;
    unheard.add(handler);
    hostSync("answer.unheard", { extension, event: event.type, answer, frame: frameOf(handlers.get(handler)) });
  } catch {
    // It may be anything.
  }
}

/** Where a function is that was registered, by its number. */
export function placeOf(json: string): string {
  const id = JSON.parse(json) as number;
  return frameOf(
    handlers.get(id) ?? tools.get(id)?.execute ?? commands.get(id)?.handler ?? shortcuts.get(id),
  );
}

/** The handler that `notify` is waiting for, and for how many milliseconds. */
export function currentHandler(): string | undefined {
  if (!current) return undefined;
  const { extension, event, call, since } = current;
  return JSON.stringify({ extension, event, call, elapsed: now() - since });
}

/** Leaves that call of a handler behind: says where the handler is, or nothing if it has settled meanwhile. */
export function abandon(json: string): string | undefined {
  if (!current || current.call !== (JSON.parse(json) as number)) return undefined;
  const { handler, result } = current;
  stuck.add(handler);
  freeWhenSettled(handler, result);
  skip?.();
  return frameOf(handlers.get(handler));
}

async function freeWhenSettled(handler: number, result: Promise<unknown>): Promise<void> {
  try {
    await result;
  } catch {
    // It was left behind, and so is what it says.
  }
  stuck.delete(handler);
}

interface ToolCall {
  extension: number;
  tool: number;
  /** Of the program, for updates and aborts. */
  token: number;
  callId: string;
  params: unknown;
  run?: number | null;
}

const running = new SafeMap<number, AbortController>();

export async function executeTool(json: string): Promise<string> {
  const { extension, tool, token, callId, params, run } = JSON.parse(json) as ToolCall;
  const definition = find(tools, tool, "tool");
  const controller = new AbortController();
  running.set(token, controller);
  let slip: Error | undefined;
  enter(extension, `tool:${definition.name}`);
  try {
    const result = await definition.execute(
      callId,
      params,
      controller.signal,
      (output) => {
        if (running.has(token)) hostSync("tool.update", { token, output: partialOf(output) });
      },
      // Its own: a tool may be aborted alone, and while no run is known.
      extend(createContext(extension, run), { signal: controller.signal }),
    );
    const problem = wrongResult(definition.name, result);
    if (problem) throw slip = placedIn(definition.execute, new TypeError(problem));
    return JSON.stringify(result);
  } catch (error) {
    // The model is told; so is whoever can do something about it.
    const isTold = isSlip(error) || (slip !== undefined && error === slip);
    if (isTold && !controller.signal.aborted) report(extension, `tool:${definition.name}`, error);
    throw asError(error);
  } finally {
    running.delete(token);
  }
}

/** Whatever a tool calls its partial result. */
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
  await handler(args, createCommandContext(extension, run));
}

/** What an extension registered for a key. */
export async function runShortcut(json: string): Promise<void> {
  const { extension, shortcut, key, run } = JSON.parse(json) as {
    extension: number;
    shortcut: number;
    key: string;
    run?: number | null;
  };
  const handler = find(shortcuts, shortcut, "shortcut") as (ctx: unknown) => unknown;
  enter(extension, `shortcut:${key}`);
  await handler(createContext(extension, run));
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
    // Asked for with every key that is typed.
    const said = describe(error);
    if (completions.get(command) !== said) report(extension, "command", error);
    completions.set(command, said);
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

/** By command, what was told of its completions last. */
const completions = new SafeMap<number, string>();
