// Events that setters of a session emit to its listeners before they return.
import type { AgentSession } from "pi:pi-coding-agent/agent-session/index.ts";
import type { SessionEvent } from "pi:pi-coding-agent/agent-session/agent.ts";

export class SetterEvents {
  #session: AgentSession;
  #emit: (event: SessionEvent) => void;
  /** The level before the setter ran. */
  #level: string | undefined;

  constructor(session: AgentSession, emit: (event: SessionEvent) => void) {
    this.#session = session;
    this.#emit = emit;
  }

  /** Runs a setter of the level or of the model, because another model may have another level. */
  emitLevelChange<T>(set: () => T): T {
    this.#level = this.#session.thinkingLevel;
    const done = set();
    if (!(done instanceof Promise)) {
      this.#emitLevel();
      return done;
    }
    return done.then((value) => {
      this.#emitLevel();
      return value;
    }) as T;
  }

  #emitLevel(): void {
    const level = this.#session.thinkingLevel;
    if (level === this.#level) return;
    this.#level = level;
    this.#emit({ type: "thinking_level_changed", level });
  }

  /** Emitted at every call, even if the name has not changed. */
  emitName(): void {
    this.#emit({ type: "session_info_changed", name: this.#session.sessionName });
  }
}
