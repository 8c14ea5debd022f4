// What setters of a session tell its listeners, before they return.
import type { AgentSession } from "pi:pi-coding-agent/agent-session/index.ts";
import type { Heard } from "pi:pi-coding-agent/agent-session/agent.ts";

export class SessionChanges {
  #session: AgentSession;
  #hear: (event: Heard) => void;
  /** As listeners know it, of those that setters set. */
  #level: string | undefined;

  constructor(session: AgentSession, hear: (event: Heard) => void) {
    this.#session = session;
    this.#hear = hear;
  }

  /** What sets the level, or the model: another one may not think as hard. */
  around<T>(set: () => T): T {
    this.#level = this.#session.thinkingLevel;
    const done = set();
    if (!(done instanceof Promise)) {
      this.#tell();
      return done;
    }
    return done.then((value) => {
      this.#tell();
      return value;
    }) as T;
  }

  #tell(): void {
    const level = this.#session.thinkingLevel;
    if (level === this.#level) return;
    this.#level = level;
    this.#hear({ type: "thinking_level_changed", level });
  }

  /** Every time: also of the name that it had. */
  name(): void {
    this.#hear({ type: "session_info_changed", name: this.#session.sessionName });
  }
}
