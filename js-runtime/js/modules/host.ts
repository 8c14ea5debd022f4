// Connects the modules that extensions import with the program. The bridge, which may import ops,
// supplies the functions while the snapshot is made; none of them is called before an extension
// runs.

export interface EventBus {
  emit(channel: string, data: unknown): void;
  on(channel: string, listener: (data: unknown) => unknown): () => void;
}

/** The text functions of the program (ext/src/text.rs). */
export interface TextOps {
  width(text: string): number;
  truncate(text: string, columns: number, ellipsis: string, pad: boolean): string;
  /** Returns the lines joined with line feeds. */
  wrap(text: string, columns: number): string;
  slice(line: string, start: number, columns: number, strict: boolean): string;
  strip(text: string): string;
  /** Returns the text before column `start`, and `columns` columns from `end` on. */
  around(line: string, start: number, end: number, columns: number): [string, string];
  /** Returns tokens as JSON (markdown.rs). */
  markdown(source: string): string;
  /** Returns lines of [kind, text] as JSON, `null` for an unknown language (highlight.rs). */
  highlight(code: string, language: string): string;
  /** A diff by words: -1 is only in the old text, 1 only in the new one, 0 in both. */
  diffWords(oldText: string, newText: string): [change: number, text: string][];
}

export interface Link {
  host(method: string, args?: unknown): Promise<unknown>;
  hostSync(method: string, args?: unknown): unknown;
  createEventBus(): EventBus & { clear(): void };
  text: TextOps;
  /** The npm package, loaded by the first call because most sessions never need it. */
  yaml(): { parse(text: string): unknown };
  onEvaluated(listener: () => void): void;
}

let link: Link | undefined;

export function connect(to: Link): void {
  link = to;
}

function requireLink(): Link {
  if (!link) throw new Error("pi's modules are not connected to the program");
  return link;
}

/** Calls a method of the program that responds at once. */
export function hostSync<T = unknown>(method: string, args?: unknown): T {
  return requireLink().hostSync(method, args) as T;
}

/** Calls a method of the program that takes time. */
export function host<T = unknown>(method: string, args?: unknown): Promise<T> {
  return requireLink().host(method, args) as Promise<T>;
}

export function textOps(): TextOps {
  return requireLink().text;
}

export function createEventBus(): EventBus & { clear(): void } {
  return requireLink().createEventBus();
}

export function yaml(): { parse(text: string): unknown } {
  return requireLink().yaml();
}

/** Calls the listener once the main module of a script is evaluated. */
export function onEvaluated(listener: () => void): void {
  requireLink().onEvaluated(listener);
}
