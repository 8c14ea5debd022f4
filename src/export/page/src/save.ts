// Saves the session file from the page, so that the reader can continue the session.

import type { Session } from "./session.js";
import { text } from "./values.js";

/** `source` is the data of the page, whose second line is not part of the file. */
export function save(source: string, { header }: Session): void {
  const lines = source.trim().split("\n");
  lines.splice(1, 1);
  const file = new Blob([`${lines.join("\n")}\n`], { type: "application/x-ndjson" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = fileName(text(header.timestamp), text(header.id));
  link.click();
  // The address must stay valid until the browser has begun to read it.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** The name that pi gives the file. */
function fileName(timestamp: string, id: string): string {
  return `${timestamp.replace(/[:.]/g, "-")}_${id}`.replace(/[^\w-]/g, "") + ".jsonl";
}
