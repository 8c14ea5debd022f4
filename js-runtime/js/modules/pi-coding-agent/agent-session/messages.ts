// The messages of a session that an extension runs, as a list that can be changed. The
// program has its own: it is told of changes before it does anything with them, and says
// of its own only what is new since it was asked last.
import type { Reach } from "pi:pi-coding-agent/agent-session/agent.ts";

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

  /** In a run it grows by what events tell, and is not ahead of them. */
  list(inRun: boolean): unknown[] {
    const list = this.#list;
    if (list && (inRun || (list.length > 0 && this.#reach.over()))) return list;
    return this.#catchUp(this.#list ??= []);
  }

  /**
   * The list that was handed out before has nothing to do with it any more. The program
   * may be ahead of what its events have told of a run: that is not what is replaced.
   */
  set(messages: readonly unknown[], inRun: boolean): void {
    const follows = this.#list && this.#same === this.#known;
    const list = this.#list = [...messages];
    if (!inRun || !follows) {
      this.#reach.ask("setMessages", { messages });
      return this.#keep(list);
    }
    this.#reach.ask("changeMessages", { known: this.#known, messages });
    this.#hear();
    this.#own = texts(list);
    this.#take(list, [], list.length);
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

  /** A list that somebody holds grows with the conversation: by `message`, or by all that there is. */
  follow(message?: unknown): void {
    const list = this.#list;
    if (!list || this.#reach.over()) return;
    if (!message) return void this.#catchUp(list);
    this.#hear();
    const known = this.#known;
    if (this.#same < known) return void this.#catchUp(list);
    const text = JSON.stringify(message);
    const at = this.#program.findIndex((one, index) => index >= known && JSON.stringify(one) === text);
    if (at >= 0) this.#take(list, [...this.#program.slice(known, at), message], at + 1);
  }

  #catchUp(list: unknown[]): unknown[] {
    this.#hear();
    // A change is told when somebody begins something with it, who hears what is wrong.
    if (this.#same === this.#known) this.#take(list, this.#program.slice(this.#known));
    else if (!this.#isChanged(list)) this.#replace(list, this.#same);
    return list;
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

  /** With these at its end the list has so many that the program has. */
  #take(list: unknown[], added: unknown[], known = this.#program.length): void {
    list.push(...added);
    this.#own.push(...texts(added));
    this.#known = this.#same = known;
  }
}
