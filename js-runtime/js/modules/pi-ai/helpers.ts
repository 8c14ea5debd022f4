// Functions of later versions that packages import.
import { hostSync } from "pi:host.ts";

interface Block {
  type: string;
  text?: string;
}

/** The texts of a content, without images and calls. */
export function contentText(content: string | readonly Block[], separator = "\n"): string {
  if (typeof content === "string") return content;
  return content.flatMap(({ type, text }) => (type === "text" ? [text] : [])).join(separator);
}

/** An id that sorts by time. */
export function uuidv7(timestampMs?: number): string {
  const isTime = Number.isInteger(timestampMs ?? 0) && (timestampMs ?? 0) >= 0;
  if (!isTime || (timestampMs ?? 0) >= 2 ** 48) {
    throw new RangeError(`uuidv7: ${timestampMs} is no time in whole milliseconds`);
  }
  return hostSync("uuid.v7", { timestamp: timestampMs });
}
