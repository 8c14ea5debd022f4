// The messages of a session that an extension runs, as a list that can be changed. The
// program has its own: it is told of changes before it does anything with them, and says
// of its own only what is new since it was asked last.
import type { Reach } from "pi:pi-coding-agent/session-agent.ts";

const texts = (messages: unknown[]) => messages.map((message) => JSON.stringify(message));

export class LiveMessages {
  #reach: Reach;
  /** Since somebody asked for it. Its messages stay the same objects. */
  #list: unknown[] | undefined;
  /** The texts of the list as it was when the program had the same. */
  #own: string[] = [];
  /** So many the program had then; those up to `#same` it has as they were. */
  #known = 0;
  #same = 0;
  /** What the program has. */
  #program: unknown[] = [];

  constructor(reach: Reach) {
    this.#reach = reach;
  }

  list(): unknown[] {
    const list = this.#list ??= [];
    if (list.length > 0 && this.#reach.over()) return list;
    this.#hear();
    if (this.#same === this.#known) {
      const added = this.#program.slice(this.#known);
      // A change is told when somebody begins something with it, who hears what is wrong.
      if (added.length > 0 && list.length === this.#own.length) this.#take(list, added);
    } else if (!this.#isChanged(list)) {
      this.#replace(list, this.#same);
    }
    return list;
  }

  /** The list that was handed out before has nothing to do with it any more. */
  set(messages: readonly unknown[]): void {
    this.#reach.ask("setMessages", { messages });
    this.#keep(this.#list = [...messages]);
  }

  /** The program learns what was done to the list. */
  tell(): void {
    const list = this.#list;
    if (!list || !this.#isChanged(list)) return;
    this.#hear();
    // A compaction, say, has put others in their place: it is newer than the change.
    if (this.#same < this.#known) return this.#replace(list, 0);
    this.#reach.ask("changeMessages", { known: this.#known, messages: list });
    this.#keep(list);
  }

  /** A list that somebody holds grows with the conversation. */
  follow(): void {
    if (this.#list && !this.#reach.over()) this.list();
  }

  #hear(): void {
    const { same, messages } = this.#reach.ask<{ same: number; messages: unknown[] }>("messages");
    this.#program.splice(same, this.#program.length, ...messages);
    this.#same = Math.min(this.#same, same);
  }

  #isChanged(list: unknown[]): boolean {
    const own = this.#own;
    return list.length !== own.length || texts(list).some((text, index) => text !== own[index]);
  }

  /** The program has what is in the list, in words of its own, and perhaps more. */
  #keep(list: unknown[]): void {
    this.#hear();
    this.#own = texts(list);
    this.#take(list, this.#program.slice(list.length));
  }

  /** What the program has instead of the list from `start` on. */
  #replace(list: unknown[], start: number): void {
    list.length = start;
    this.#own.length = start;
    this.#take(list, this.#program.slice(start));
  }

  /** With these at its end the list is what the program has. */
  #take(list: unknown[], added: unknown[]): void {
    list.push(...added);
    this.#own.push(...texts(added));
    this.#known = this.#same = this.#program.length;
  }
}
