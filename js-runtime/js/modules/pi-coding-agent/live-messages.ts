// The messages of a session that an extension runs, as a list that can be changed. The
// program has its own: it is told of changes before it does anything with them.
import type { Reach } from "pi:pi-coding-agent/session-agent.ts";

const texts = (messages: unknown[]) => messages.map((message) => JSON.stringify(message));

export class LiveMessages {
  #reach: Reach;
  /** Since somebody asked for it. */
  #list: unknown[] | undefined;
  /** What the program has, as far as is known here. */
  #known: string[] = [];

  constructor(reach: Reach) {
    this.#reach = reach;
  }

  list(): unknown[] {
    const list = this.#list ??= [];
    if (list.length > 0 && this.#reach.over()) return list;
    try {
      this.tell();
    } catch {
      // To be mended; whoever begins a run with it hears of the error.
      return list;
    }
    this.#fetch(list);
    return list;
  }

  /** The list that was handed out has nothing to do with it any more. */
  set(messages: readonly unknown[]): void {
    this.#list = undefined;
    this.#known = [];
    this.#reach.ask("setMessages", { messages });
  }

  /** What a run has added to the program's is kept after what is here. */
  tell(): void {
    const list = this.#list;
    if (!list || !this.#isChanged(list)) return;
    const known = this.#known.length;
    this.#reach.ask("changeMessages", { known, messages: list });
    this.#fetch(list);
  }

  /** A list that somebody holds grows with the conversation. */
  follow(): void {
    const list = this.#list;
    if (list && !this.#reach.over() && !this.#isChanged(list)) this.#fetch(list);
  }

  #isChanged(list: unknown[]): boolean {
    const known = this.#known;
    return list.length !== known.length || texts(list).some((text, index) => text !== known[index]);
  }

  /** Messages that are as they were stay the same objects. */
  #fetch(list: unknown[]): void {
    const messages = this.#reach.ask<unknown[]>("messages");
    const now = texts(messages);
    const known = this.#known;
    const differs = now.findIndex((text, index) => text !== known[index]);
    const same = differs < 0 ? now.length : differs;
    list.splice(same, list.length, ...messages.slice(same));
    this.#known = now;
  }
}
