// Proposals of `turn_end` and `agent_before_settle` handlers: entries for the session, and one more
// request. Each handler sees the proposals of those before it.
import { hostSync } from "ext:js_runtime/bridge/host.ts";
import { isArray, JSON, Object } from "ext:js_runtime/primordials.ts";
import { report } from "ext:js_runtime/bridge/registry.ts";
import { boundaryContext } from "pi:pi-coding-agent/session-manager/turn-end-context.ts";
import type { Preview } from "pi:pi-coding-agent/session-manager/turn-end-context.ts";

interface Told {
  type: string;
  entries?: unknown;
  continue?: unknown;
  context?: unknown;
}

const contextOf = (entries: unknown[]) =>
  boundaryContext(() => hostSync<Preview>("boundary.preview", { entries }));

export class Boundary {
  #event: Told;
  #change: number;
  #entries: unknown[] = [];
  #continue = false;

  constructor(event: Told, change: number) {
    this.#event = event;
    this.#change = change;
    // The property is not enumerable: a handler that serialises the event does not need the
    // conversation.
    Object.defineProperty(event, "context", {
      get: () => contextOf(this.#entries),
      enumerable: false,
      configurable: true,
    });
    this.#show();
  }

  /** Updates the event for the next handler. */
  #show(): void {
    // The event gets a copy, because only the result of a handler counts.
    this.#event.entries = JSON.parse(JSON.stringify(this.#entries));
    this.#event.continue = this.#continue;
  }

  /** Accepts the proposals in a result. An invalid one is reported, and the previous ones stay. */
  take(extension: number, result: unknown): void {
    const given = (typeof result === "object" ? result : null) as Partial<Told> | null;
    const entries = given?.entries ?? this.#entries;
    const goesOn = given?.continue === undefined ? this.#continue : Boolean(given.continue);
    if (entries !== this.#entries || goesOn !== this.#continue) {
      const problem = isArray(entries)
        ? hostSync<string | undefined>("boundary.propose", {
            change: this.#change,
            entries,
            continue: goesOn,
          })
        : "entries must be an array";
      if (problem) {
        report(extension, this.#event.type, new Error(`The answer was not taken: ${problem}`));
      } else {
        this.#entries = entries as unknown[];
        this.#continue = goesOn;
      }
    }
    this.#show();
  }
}
