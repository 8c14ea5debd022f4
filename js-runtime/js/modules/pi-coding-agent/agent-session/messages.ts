// The messages of a child session as a list that extensions can change. The program has a list of
// its own: it gets changes before it next uses the messages, and returns only those that are new
// since the previous query.
import type { SessionCalls } from "pi:pi-coding-agent/agent-session/agent.ts";

const texts = (messages: unknown[]) => messages.map((message) => JSON.stringify(message));

export class LiveMessages {
  #calls: SessionCalls;
  /** The list that was handed out, once it was read. Its messages stay the same objects. */
  #list: unknown[] | undefined;
  /** The JSON of the messages when both lists were equal. */
  #texts: string[] = [];
  /** The length of the program's list then. Up to `#same` its messages are unchanged. */
  #known = 0;
  #same = 0;
  /** The list of the program. */
  #program: unknown[] = [];

  constructor(calls: SessionCalls) {
    this.#calls = calls;
  }

  /** In a run the list grows by events and is never ahead of them. */
  list(inRun: boolean): unknown[] {
    const list = this.#list;
    if (list && (inRun || (list.length > 0 && this.#calls.isDisposed()))) return list;
    return this.#catchUp(this.#list ??= []);
  }

  /**
   * Replaces the list; the one that was handed out before is detached. The program may be ahead of
   * the events of a run: messages without an event yet are not replaced.
   */
  set(messages: readonly unknown[], inRun: boolean): void {
    const follows = this.#list && this.#same === this.#known;
    const list = this.#list = [...messages];
    if (!inRun || !follows) {
      this.#calls.query("setMessages", { messages });
      return this.#keepList(list);
    }
    this.#calls.query("changeMessages", { known: this.#known, messages });
    this.#fetch();
    this.#texts = texts(list);
    this.#append(list, [], list.length);
  }

  /** Sends changes of the list to the program. */
  send(): void {
    const list = this.#list;
    if (!list || !this.#isChanged(list)) return;
    this.#fetch();
    // The messages were replaced after the change, by a compaction for example, so the change is
    // dropped.
    if (this.#same < this.#known) return this.#replace(list, 0);
    this.#calls.query("changeMessages", { known: this.#known, messages: list });
    this.#keepList(list);
  }

  /** Extends a list that was handed out: by `message`, or by everything that is new. */
  grow(message?: unknown): void {
    const list = this.#list;
    if (!list || this.#calls.isDisposed()) return;
    if (!message) return void this.#catchUp(list);
    this.#fetch();
    const known = this.#known;
    if (this.#same < known) return void this.#catchUp(list);
    const text = JSON.stringify(message);
    const at = this.#program.findIndex((message, index) => index >= known && JSON.stringify(message) === text);
    if (at >= 0) this.#append(list, [...this.#program.slice(known, at), message], at + 1);
  }

  #catchUp(list: unknown[]): unknown[] {
    this.#fetch();
    // A change is sent with the next action, whose caller gets the error for an invalid one.
    if (this.#same === this.#known) this.#append(list, this.#program.slice(this.#known));
    else if (!this.#isChanged(list)) this.#replace(list, this.#same);
    return list;
  }

  #fetch(): void {
    const { same, messages } = this.#calls.query<{ same: number; messages: unknown[] }>("messages");
    this.#program.splice(same, this.#program.length, ...messages);
    this.#same = Math.min(this.#same, same);
  }

  #isChanged(list: unknown[]): boolean {
    const own = this.#texts;
    return list.length !== own.length || texts(list).some((text, index) => text !== own[index]);
  }

  /** Called when the program has the messages of the list, in its own form, and perhaps more. */
  #keepList(list: unknown[]): void {
    this.#fetch();
    this.#texts = texts(list);
    this.#append(list, this.#program.slice(list.length));
  }

  /** Replaces the list from `start` on by the program's. */
  #replace(list: unknown[], start: number): void {
    list.length = start;
    this.#texts.length = start;
    this.#append(list, this.#program.slice(start));
  }

  /** Appends messages. The list then has the first `known` messages of the program. */
  #append(list: unknown[], added: unknown[], known = this.#program.length): void {
    list.push(...added);
    this.#texts.push(...texts(added));
    this.#known = this.#same = known;
  }
}
