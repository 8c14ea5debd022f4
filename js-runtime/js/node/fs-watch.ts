// Implements recursive `fs.watch` with a watcher of its own (ext/src/node/watch_tree.rs).
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { op_watch_tree, op_watch_tree_next } from "ext:core/ops";

const { PromiseResolve, SymbolAsyncIterator } = primordials;

/** Has the interface of the result of `Deno.watchFs`. */
class TreeWatcher {
  #rid: number;
  #closed = false;
  #change: Promise<unknown> | undefined;

  constructor(path: string) {
    this.#rid = op_watch_tree(path);
  }

  ref(): void {
    core.refOpPromise(this.#change);
  }

  unref(): void {
    core.unrefOpPromise(this.#change);
  }

  async next(): Promise<{ value: unknown; done: boolean }> {
    if (this.#closed) return { value: undefined, done: true };
    try {
      this.#change = op_watch_tree_next(this.#rid);
      const value = await this.#change;
      return { value: value ?? undefined, done: !value };
    } catch (error) {
      if (this.#closed) return { value: undefined, done: true };
      throw error;
    }
  }

  return(value: unknown): Promise<{ value: unknown; done: boolean }> {
    this.close();
    return PromiseResolve({ value, done: true });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    core.tryClose(this.#rid);
  }

  [SymbolAsyncIterator](): this {
    return this;
  }
}

internals.watchTree = (path: string) => new TreeWatcher(path);
