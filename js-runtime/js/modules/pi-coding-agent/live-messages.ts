// The messages of a session that an extension runs, as a list that can be changed. The
// program has its own: it is told of changes before it does anything with them.
import type { Reach } from "pi:pi-coding-agent/session-agent.ts";

const texts = (messages: unknown[]) => messages.map((message) => JSON.stringify(message));

export class LiveMessages {
  #reach: Reach;
  /** Since somebody asked for it. Its messages stay the same objects. */
  #list: unknown[] | undefined;
  /** The texts of the list, and of what the program has for it, as they were last seen. */
  #own: string[] = [];
  #known: string[] = [];

  constructor(reach: Reach) {
    this.#reach = reach;
  }

  list(): unknown[] {
    const list = this.#list ??= [];
    if (list.length > 0 && this.#reach.over()) return list;
    // A change is told when somebody begins something with it, who hears what is wrong.
    if (!this.#isChanged(list)) this.#fetch(list, this.#program());
    return list;
  }

  /** The list that was handed out before has nothing to do with it any more. */
  set(messages: readonly unknown[]): void {
    this.#reach.ask("setMessages", { messages });
    const list = this.#list = [...messages];
    this.#keep(list, this.#program());
  }

  /** The program learns what was done to the list. */
  tell(): void {
    const list = this.#list;
    if (!list || !this.#isChanged(list)) return;
    const program = this.#program();
    const now = texts(program);
    // A compaction, say, has put others in their place: it is newer than the change.
    if (this.#known.some((text, index) => text !== now[index])) {
      list.length = 0;
      return this.#keep(list, program);
    }
    this.#reach.ask("changeMessages", { known: this.#known.length, messages: list });
    this.#keep(list, this.#program());
  }

  /** A list that somebody holds grows with the conversation. */
  follow(): void {
    const list = this.#list;
    if (list && !this.#reach.over() && !this.#isChanged(list)) this.#fetch(list, this.#program());
  }

  #program(): unknown[] {
    return this.#reach.ask<unknown[]>("messages");
  }

  #isChanged(list: unknown[]): boolean {
    const own = this.#own;
    return list.length !== own.length || texts(list).some((text, index) => text !== own[index]);
  }

  /** The program has what is in the list, in words of its own, and perhaps more. */
  #keep(list: unknown[], program: unknown[]): void {
    list.push(...program.slice(list.length));
    this.#known = texts(program);
    this.#own = texts(list);
  }

  /** What the program has now; what is as it was is left alone. */
  #fetch(list: unknown[], program: unknown[]): void {
    const now = texts(program);
    const known = this.#known;
    const differs = now.findIndex((text, index) => text !== known[index]);
    const same = Math.min(differs < 0 ? now.length : differs, list.length);
    list.splice(same, list.length, ...program.slice(same));
    this.#known = now;
    this.#own = texts(list);
  }
}
