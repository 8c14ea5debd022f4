// Rebuilds the message of `message_update` from deltas of the program.
import { JSON } from "ext:js_runtime/primordials.ts";

type Block = Record<string, unknown> & { type: string };

/** The payload of an update (`src/extensions/events/message_delta.rs`). */
export interface Update {
  type: "message_update";
  step: Record<string, unknown>;
  /** The message without its blocks, if it has changed. */
  around?: unknown;
  /** New blocks, or the text to append to existing ones. */
  blocks: { index: number; block?: Block; more?: string }[];
  count: number;
}

/** The message after the last update: JSON of the members outside its blocks. */
let around = "";
const blocks: (Block | string)[] = [];

/** The event for handlers, with a message of their own to change. */
export function eventOf({ type, step, ...delta }: Update) {
  applyDelta(delta);
  const partial = JSON.parse(around) as { content: Block[] };
  for (let index = 0; index < blocks.length; index += 1) {
    const block = blocks[index];
    partial.content[index] = typeof block === "string" ? JSON.parse(block) : { ...block };
  }
  return { type, message: { ...partial }, assistantMessageEvent: { ...step, partial } };
}

function applyDelta(delta: Pick<Update, "around" | "blocks" | "count">): void {
  if (delta.around) around = JSON.stringify(delta.around);
  blocks.length = delta.count;
  for (let at = 0; at < delta.blocks.length; at += 1) {
    const { index, block, more } = delta.blocks[at];
    const known = blocks[index];
    if (block) {
      blocks[index] = block.type === "toolCall" ? JSON.stringify(block) : block;
    } else if (typeof known === "object") {
      const member = known.type === "thinking" ? "thinking" : "text";
      known[member] = (known[member] as string) + more;
    }
  }
}
