// Events that setters of a session emit to its listeners before they return.
import type { AgentSession } from "pi:pi-coding-agent/agent-session/index.ts";
import type { Heard } from "pi:pi-coding-agent/agent-session/agent.ts";

export class SessionChanges {
  #session: AgentSession;
  #hear: (event: Heard) => void;
  /** The level before the setter ran. */
  #level: string | undefined;

  constructor(session: AgentSession, hear: (event: Heard) => void) {
    this.#session = session;
    this.#hear = hear;
  }

  /** Runs a setter of the level or of the model, because another model may have another level. */
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
