// Proposals of `turn_end` and `agent_before_settle` handlers: entries for the session, and one more
// request. Each handler sees the proposals of those before it.
import { hostSync } from "ext:js_runtime/bridge/host.ts";
import { isArray, JSON, Object } from "ext:js_runtime/primordials.ts";
import { report } from "ext:js_runtime/bridge/registry.ts";
import { turnEndContext } from "pi:pi-coding-agent/session-manager/turn-end-context.ts";
import type { Preview } from "pi:pi-coding-agent/session-manager/turn-end-context.ts";

interface TurnEndEvent {
  type: string;
  entries?: unknown;
  continue?: unknown;
  context?: unknown;
}

const contextWith = (entries: unknown[]) =>
  turnEndContext(() => hostSync<Preview>("turnEnd.preview", { entries }));

export class TurnEndProposals {
  #event: TurnEndEvent;
  #change: number;
  #entries: unknown[] = [];
  #continue = false;

  constructor(event: TurnEndEvent, change: number) {
    this.#event = event;
    this.#change = change;
    // The property is not enumerable: a handler that serialises the event does not need the
    // conversation.
    Object.defineProperty(event, "context", {
      get: () => contextWith(this.#entries),
      enumerable: false,
      configurable: true,
    });
    this.#updateEvent();
  }

  /** Updates the event for the next handler. */
  #updateEvent(): void {
    // The event gets a copy, because only the result of a handler counts.
    this.#event.entries = JSON.parse(JSON.stringify(this.#entries));
    this.#event.continue = this.#continue;
  }

  /** Accepts the proposals in a result. An invalid one is reported, and the previous ones stay. */
  accept(extension: number, result: unknown): void {
    const proposed = (typeof result === "object" ? result : null) as Partial<TurnEndEvent> | null;
    const entries = proposed?.entries ?? this.#entries;
    const goesOn = proposed?.continue === undefined ? this.#continue : Boolean(proposed.continue);
    if (entries !== this.#entries || goesOn !== this.#continue) {
      const problem = isArray(entries)
        ? hostSync<string | undefined>("turnEnd.propose", {
            change: this.#change,
            entries,
            continue: goesOn,
          })
        : "entries must be an array";
      if (problem) {
        report(extension, this.#event.type, new Error(`The result was not accepted: ${problem}`));
      } else {
        this.#entries = entries as unknown[];
        this.#continue = goesOn;
      }
    }
    this.#updateEvent();
  }
}
