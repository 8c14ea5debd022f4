// Rebuilds the message of `message_update` from deltas of the program.
import { isArray, JSON, Object } from "ext:js_runtime/primordials.ts";

type Block = Record<string, unknown> & { type: string };
type Members = Record<string, unknown>;

/** A change of the arguments of a call at their open end (`ValueEdit` in `src/ai/stream/partial_json.rs`). */
type ValueEdit =
  | "close"
  | {
    open?: { key: string | null; array: boolean };
    add?: { key: string | null; value: unknown };
    append?: string;
    replace?: unknown;
  };

/** The payload of an update (`src/extensions/events/message_delta.rs`). */
export interface Update {
  type: "message_update";
  step: Record<string, unknown>;
  /** The message without its blocks, if it has changed. */
  around?: unknown;
  /** New blocks, and the text to append to new or existing ones. */
  blocks: { index: number; block?: Block; more?: string; edits?: ValueEdit[] }[];
  count: number;
}

/** An open container of arguments, with the key of the member that was added last. */
interface Container {
  value: Members | unknown[];
  last: string | number;
}

/** The message after the last update: JSON of the members outside its blocks. */
let around = "";
const blocks: Block[] = [];
/** The open containers of the arguments in each block, outermost first. */
const openContainers: Container[][] = [];

/** The event for handlers, with a message of their own to change. */
export function eventOf({ type, step, ...delta }: Update) {
  applyDelta(delta);
  const partial = JSON.parse(around) as { content: Block[] };
  for (let index = 0; index < blocks.length; index += 1) partial.content[index] = copyOf(blocks[index]) as Block;
  return { type, message: { ...partial }, assistantMessageEvent: { ...step, partial } };
}

function applyDelta(delta: Pick<Update, "around" | "blocks" | "count">): void {
  if (delta.around) around = JSON.stringify(delta.around);
  blocks.length = delta.count;
  for (let at = 0; at < delta.blocks.length; at += 1) {
    const { index, block, more, edits } = delta.blocks[at];
    if (block) {
      blocks[index] = block;
      openContainers[index] = [];
    }
    const known = blocks[index];
    if (more !== undefined) {
      const member = known.type === "toolCall" ? "partialJson" : known.type === "thinking" ? "thinking" : "text";
      known[member] = (known[member] as string) + more;
    }
    if (edits) applyEdits(known, openContainers[index], edits);
  }
}

function applyEdits(call: Block, open: Container[], edits: ValueEdit[]): void {
  for (let at = 0; at < edits.length; at += 1) {
    const edit = edits[at];
    const innermost = open[open.length - 1];
    if (edit === "close") {
      open.length -= 1;
    } else if (edit.open) {
      const value = edit.open.array ? [] : {};
      if (innermost) add(innermost, edit.open.key, value);
      else call.arguments = value;
      open[open.length] = { value, last: "" };
    } else if (edit.add) {
      add(innermost, edit.add.key, edit.add.value);
    } else if (edit.append !== undefined) {
      set(innermost.value, innermost.last, ((innermost.value as Members)[innermost.last] as string) + edit.append);
    } else {
      set(innermost.value, innermost.last, edit.replace);
    }
  }
}

function add(container: Container, key: string | null, value: unknown): void {
  container.last = key ?? (container.value as unknown[]).length;
  set(container.value, container.last, value);
}

/** Sets a member as `JSON.parse` does: `__proto__` is a name like others. */
function set(target: Members | unknown[], key: string | number, value: unknown): void {
  Object.defineProperty(target, key, {
    __proto__: null,
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  } as PropertyDescriptor);
}

/** Copies objects and lists; the copy shares the texts. */
function copyOf(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (isArray(value)) {
    const copy: unknown[] = [];
    for (let index = 0; index < value.length; index += 1) set(copy, index, copyOf(value[index]));
    return copy;
  }
  const copy: Members = {};
  const keys = Object.keys(value);
  for (let index = 0; index < keys.length; index += 1) {
    set(copy, keys[index], copyOf((value as Members)[keys[index]]));
  }
  return copy;
}
