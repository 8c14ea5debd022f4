// Calls handlers of queued events, whose results are ignored, one after the other. A handler that
// misses its deadline, or that an abort skips, is abandoned: it is not called again before it has
// settled, and its events wait until then.
import { op_thread_time_of_others } from "ext:core/ops";
import { hostSync } from "ext:js_runtime/bridge/host.ts";
import { JSON, now, Object, Promise, race, SafeMap, SafeSet, setTimeout } from "ext:js_runtime/primordials.ts";
import { createContext } from "ext:js_runtime/bridge/context.ts";
import { isIntact } from "ext:js_runtime/bridge/intrinsics-guard.ts";
import { enter, find, frameOf, handlers, leaveQueued, report } from "ext:js_runtime/bridge/registry.ts";
import { TurnEndProposals } from "ext:js_runtime/bridge/turn-end.ts";
import { eventOf } from "ext:js_runtime/bridge/message-delta.ts";
import type { Update } from "ext:js_runtime/bridge/message-delta.ts";

interface EventData {
  type: string;
  [member: string]: unknown;
}

/** The program's request for the changes that handlers make to an event. */
interface Change {
  number: number;
  /** The member that handlers may change; with `null` they may propose entries. */
  member: string | null;
}

type Run = number | null | undefined;

/** The result of a handler of `message_end`: a message that replaces that of the event. */
type MessageEndResult = { message?: unknown } | undefined | null;

interface Notification {
  event: EventData | Update;
  targets: [extension: number, handler: number][];
  change?: Change;
}

interface Batch {
  number: number;
  events: Notification[];
  run?: number | null;
  /** Whether the user has aborted the wait for its handlers. */
  isAborted?: boolean;
}

/** The handler that a batch waits for. */
interface Current {
  extension: number;
  handler: number;
  event: string;
  /** The number of this call: the same handler may be called again soon. */
  call: number;
  since: number;
  result: Promise<unknown>;
  /** Continues without waiting for the handler. */
  skip(): void;
}

/** Milliseconds that each handler gets after an abort. A handler that does not wait finishes within them. */
const ABORT_GRACE = 100;

let current: Current | undefined;
let calls = 0;
/** The number of the batch whose handlers are being called. */
let batch = 0;
let isBatchAborted = false;
/** Handlers of the batch that an abort skipped. */
let skippedHandlers: Pick<Current, "extension" | "handler" | "event">[] = [];

/** Time that the handlers of an event took, in milliseconds. */
interface HandlerTime {
  extension: number;
  event: string;
  calls: number;
  failures: number;
  total: number;
  slowest: number;
}

/** Measured since the last response to the program. */
let handlerTimes: HandlerTime[] = [];

function tally(extension: number, event: string, took: number, failed: boolean) {
  // Most events of a batch are of one type and one extension.
  let sum: HandlerTime | undefined;
  for (let index = 0; index < handlerTimes.length; index += 1) {
    if (handlerTimes[index].extension === extension && handlerTimes[index].event === event) sum = handlerTimes[index];
  }
  if (!sum) {
    sum = { extension, event, calls: 0, failures: 0, total: 0, slowest: 0 };
    handlerTimes[handlerTimes.length] = sum;
  }
  sum.calls += 1;
  sum.failures += failed ? 1 : 0;
  sum.total += took;
  if (took > sum.slowest) sum.slowest = took;
}

/**
 * Milliseconds that handlers may run without a break. After it other work gets the thread, because
 * an uninterrupted run has a limit.
 */
const MAX_RUN_TIME = 100;

/** Lets all waiting work run. Resolves to the time of continuation. */
function yieldToEventLoop(): Promise<number> {
  return new Promise((resolve) => setTimeout(() => resolve(now()), 0));
}

/** The capacity of the program's own queue. */
const MAX_WAITING_EVENTS = 1024;

/** An abandoned handler and the events that wait for it: the last `MOST`. */
class AbandonedHandler {
  readonly extension: number;
  /** Resolves when the handler has settled and got its events. */
  readonly over: Promise<void>;
  readonly #events: (readonly [type: string, event: EventData, run: Run])[] = [];
  #first = 0;
  #end = 0;

  constructor(handler: number, { extension, result }: Current) {
    this.extension = extension;
    this.over = this.#settle(handler, result);
  }

  enqueue(type: string, event: EventData, run: Run): void {
    if (this.#end - this.#first === MAX_WAITING_EVENTS) {
      if (this.#first === 0) {
        const text = `The handler was abandoned and has not settled: only the last ${MAX_WAITING_EVENTS} of its events wait`;
        report(this.extension, type, new Error(text));
      }
      this.#first += 1;
    }
    this.#events[this.#end % MAX_WAITING_EVENTS] = [type, event, run];
    this.#end += 1;
  }

  async #settle(handler: number, result: Promise<unknown>): Promise<void> {
    try {
      await result;
    } catch {
      // The handler was abandoned, so its failure is ignored.
    }
    while (this.#first < this.#end) {
      const next = this.#events[this.#first % MAX_WAITING_EVENTS];
      this.#first += 1;
      await this.#deliver(handler, next[0], next[1], next[2]);
    }
    abandonedHandlers.delete(handler);
  }

  async #deliver(handler: number, type: string, event: EventData, run: Run): Promise<void> {
    enter(this.extension, type);
    const since = now();
    let failed = false;
    try {
      await call(handler, event, this.extension, run);
    } catch (error) {
      failed = true;
      report(this.extension, type, error);
    }
    tally(this.extension, type, now() - since, failed);
  }
}

const abandonedHandlers = new SafeMap<number, AbandonedHandler>();

function call(handler: number, event: EventData, extension: number, run: Run): unknown {
  const fn = find(handlers, handler, "handler");
  return fn(event as unknown as Record<string, unknown>, createContext(extension, run));
}

/**
 * Passes a changed member to the program, which waits for it. A value that is invalid is reverted
 * before the next handler sees it. Returns the JSON of the current value.
 */
function takeChange(
  type: string,
  event: EventData,
  extension: number,
  change: number,
  member: string,
  before: string,
): string {
  try {
    const value = event[member];
    const after = JSON.stringify(value);
    if (after === before) return before;
    const role = member === "message" ? (JSON.parse(before) as { role: string }).role : undefined;
    const problem = hostSync<string | undefined>("event.mutated", { change, member, role, value });
    if (!problem) return after;
    report(extension, type, new Error(`pi ignores the handler's change: ${problem}`));
  } catch (error) {
    report(extension, type, error);
  }
  event[member] = JSON.parse(before);
  return before;
}

/** Calls the handlers of a batch, in order. */
export async function notify(json: string): Promise<string> {
  const { number, events, run, isAborted } = JSON.parse(json) as Batch;
  batch = number;
  isBatchAborted = isAborted === true;
  let begun = now();
  // Indexed, because extensions can patch iterators.
  for (let index = 0; index < events.length; index += 1) {
    const { event: received, targets, change } = events[index];
    // All handlers get the same event object, and may change it.
    const { type } = received;
    const event = "step" in received ? eventOf(received) : received;
    if (now() - begun > MAX_RUN_TIME) begun = await yieldToEventLoop();
    if (type === "agent_end") markIdleSoon(run);
    const member = change?.member;
    const boundary = change && !member ? new TurnEndProposals(event, change.number) : undefined;
    let before = member ? JSON.stringify(event[member]) : undefined;
    for (let target = 0; target < targets.length; target += 1) {
      const extension = targets[target][0];
      const handler = targets[target][1];
      const abandoned = abandonedHandlers.get(handler);
      if (abandoned) {
        abandoned.enqueue(type, event, run);
        continue;
      }
      if (now() - begun > MAX_RUN_TIME) begun = await yieldToEventLoop();
      enter(extension, type, true);
      const since = now();
      let failed = false;
      let heldBefore: number | undefined;
      try {
        let result = call(handler, event, extension, run);
        if (result instanceof Promise) {
          heldBefore = op_thread_time_of_others(extension);
          result = await awaitHandler(result, { extension, handler, event: type, since });
        }
        boundary?.accept(extension, result);
        reportIgnoredMembers(extension, handler, event, result);
        if (type === "message_end") event.message = (result as MessageEndResult)?.message ?? event.message;
      } catch (error) {
        failed = true;
        report(extension, type, error);
      } finally {
        current = undefined;
        leaveQueued();
      }
      if (member && before) before = takeChange(type, event, extension, change!.number, member, before);
      // Time that other extensions used meanwhile is not counted.
      const others = heldBefore === undefined ? 0 : op_thread_time_of_others(extension) - heldBefore;
      const took = now() - since - others;
      tally(extension, type, took > 0 ? took : 0, failed);
      // A damaged intrinsic is found before another extension is called: at the end of this
      // uninterrupted run, in which a timer may be due already.
      for (let round = 0; round < 3 && !isIntact(); round += 1) begun = await yieldToEventLoop();
    }
  }
  batch = 0;
  const response = { tallies: handlerTimes, skipped: skippedHandlers };
  handlerTimes = [];
  skippedHandlers = [];
  return JSON.stringify(response);
}

/** The value of the promise of a handler; `undefined` if the handler is abandoned. */
function awaitHandler(
  result: Promise<unknown>,
  caller: Pick<Current, "extension" | "handler" | "event" | "since">,
): Promise<unknown> {
  calls += 1;
  const call = calls;
  const skipped = new Promise<void>((resolve) => {
    current = { ...caller, call, result, skip: resolve };
  });
  if (isBatchAborted) skipSoon();
  return race(result, skipped);
}

/** The user no longer waits for handlers of this batch. */
export function abortBatch(json: string): void {
  if (batch !== (JSON.parse(json) as number)) return;
  isBatchAborted = true;
  skipSoon();
}

function skipSoon(): void {
  const pending = current;
  if (!pending) return;
  setTimeout(() => {
    if (current !== pending) return;
    const { extension, handler, event } = pending;
    skippedHandlers[skippedHandlers.length] = { extension, handler, event };
    markAbandoned(pending);
  }, ABORT_GRACE);
}

function markAbandoned(pending: Current): void {
  abandonedHandlers.set(pending.handler, new AbandonedHandler(pending.handler, pending));
  pending.skip();
}

/**
 * Marks the session idle soon: handlers of `agent_end` see a busy run until they first wait. The
 * original goes on for five steps of the microtask queue after it emits the event, and extensions
 * rely on that.
 */
async function markIdleSoon(run?: number | null): Promise<void> {
  for (let step = 0; step < 5; step += 1) await undefined;
  try {
    hostSync("run.idle", { run });
  } catch {
    // The session was replaced by another one.
  }
}

/** Queued events whose results count. */
const eventsWithResult = new SafeSet(["message_end", "turn_end", "agent_before_settle"]);
/** Handlers about whose ignored results a warning was sent. */
const warnedHandlers = new SafeSet<number>();

/**
 * Reports members of a result that the event does not have; the program knows which ones a result
 * may have.
 */
function reportIgnoredMembers(extension: number, handler: number, event: { type: string }, result: unknown): void {
  if (typeof result !== "object" || result === null || warnedHandlers.has(handler)) return;
  const members = result as Record<string, unknown>;
  const ignored: Record<string, unknown> = {};
  try {
    // Handlers return all kinds of values; only these are meant as a result.
    if (!eventsWithResult.has(event.type) && members.block !== true && members.cancel !== true) return;
    const names = Object.keys(members);
    for (let index = 0; index < names.length; index += 1) {
      const value = members[names[index]];
      if (names[index] in event) continue;
      ignored[names[index]] = typeof value === "object" && value !== null ? {} : value;
    }
    if (Object.keys(ignored).length === 0) return;
    warnedHandlers.add(handler);
    hostSync("result.ignored", { extension, event: event.type, answer: ignored, frame: frameOf(handlers.get(handler)) });
  } catch {
    // The value may be anything.
  }
}

/** The handler for which `notify` waits, and for how many milliseconds. */
export function currentHandler(): string | undefined {
  if (!current) return undefined;
  const { extension, event, call, since } = current;
  return JSON.stringify({ extension, event, call, elapsed: now() - since });
}

/**
 * Abandons that call of a handler. Returns the source position of the handler, or nothing if it has
 * settled meanwhile.
 */
export function abandon(json: string): string | undefined {
  if (!current || current.call !== (JSON.parse(json) as number)) return undefined;
  const { handler } = current;
  markAbandoned(current);
  return frameOf(handlers.get(handler));
}

/** Resolves when an abandoned handler has settled. */
export async function whenAbandonedSettled(json: string): Promise<void> {
  await abandonedHandlers.get(JSON.parse(json) as number)?.over;
}
