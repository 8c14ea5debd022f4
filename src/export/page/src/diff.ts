// Shows the changes of an edit, line by line.

import { button, element } from "./dom.js";
import { count } from "./format.js";
import { list, members, text } from "./values.js";

const SHOWN_LINES = 40;
/** The number of lines that are shown; the file has all. */
const MAX_LINES = 5_000;

const KINDS: Record<string, string> = { "+": "added", "-": "removed" };

/** `+12 new`, `-12 old`, ` 12 same`: the lines that the tool `edit` keeps in its result. */
export function diff(source: string): HTMLElement {
  const lines = source.trimEnd().split("\n");
  const pre = element("pre", { class: "diff" });
  const show = (from: number, to: number): void => {
    for (const line of lines.slice(from, to)) {
      pre.appendChild(element("span", { class: KINDS[line.charAt(0)] ?? "same" }, `${line}\n`));
    }
  };
  show(0, SHOWN_LINES);
  const box = element("div", { class: "output" }, pre);
  if (lines.length > SHOWN_LINES) {
    const more = button(`show ${count(lines.length - SHOWN_LINES, "more line")}`, "Show more", () => {
      more.remove();
      show(SHOWN_LINES, MAX_LINES);
      if (lines.length > MAX_LINES) pre.append(`\u2026 ${count(lines.length - MAX_LINES, "more line")} in the session file`);
    });
    more.className = "more";
    box.appendChild(more);
  }
  return box;
}

/** The intended changes, for an edit without a result. */
export function requestedEdits(args: Record<string, unknown>): string {
  const edits = list(args.edits).map(members);
  if (typeof args.oldText === "string") edits.push(args);
  const prefixed = (sign: string, value: unknown): string =>
    text(value)
      .split("\n")
      .map((line) => `${sign} ${line}`)
      .join("\n");
  return edits.map((edit) => `${prefixed("-", edit.oldText)}\n${prefixed("+", edit.newText)}`).join("\n  ...\n");
}
