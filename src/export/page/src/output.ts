// Shows long texts: the first lines, and the rest on request, a piece at a time, because a browser
// takes seconds to lay out megabytes.

import { button, element } from "./dom.js";
import { bytes, count, withoutEscapes } from "./format.js";
import { highlight } from "./highlight.js";

const PIECE_LENGTH = 200_000;
const WIDTH = 4_000;

export interface Clip {
  lines: number;
  language?: string;
  class?: string;
  /** Shows the last lines instead of the first: the end of a command's output matters most. */
  tail?: boolean;
}

export function output(source: string, { lines, language = "", class: name = "output", tail }: Clip): HTMLElement {
  const text = withoutEscapes(source).trimEnd();
  const box = element("div", { class: name });
  const pre = box.appendChild(element("pre"));
  const shown = tail ? text.slice(startOfLines(text, lines)) : text.slice(0, endOfLines(text, lines));
  highlight(pre, shown, language);
  if (shown.length < text.length) {
    const hidden = countLines(text) - countLines(shown);
    const rest = hidden > 0 ? count(hidden, tail ? "earlier line" : "more line") : "the rest";
    const more = button(`show ${rest} (${bytes(text.length)} in all)`, "Show more", () => {
      more.remove();
      if (text.length <= PIECE_LENGTH) highlight(pre, text, language);
      else pieces(box, pre, text, 0);
    });
    more.className = "more";
    if (tail) box.prepend(more);
    else box.append(more);
  }
  return box;
}

/** Shows one more piece, with a button for the next. */
function pieces(box: HTMLElement, pre: HTMLElement, text: string, from: number): void {
  if (from === 0) pre.textContent = "";
  let to = Math.min(from + PIECE_LENGTH, text.length);
  const lineEnd = text.lastIndexOf("\n", to);
  if (to < text.length && lineEnd > from) to = lineEnd + 1;
  pre.append(text.slice(from, to));
  if (to >= text.length) return;
  const more = button(`show more (${bytes(text.length - to)} left)`, "Show more", () => {
    more.remove();
    pieces(box, pre, text, to);
  });
  more.className = "more";
  box.appendChild(more);
}

/** The offset at which the first lines end; a very long line is cut. */
function endOfLines(text: string, lines: number): number {
  let end = -1;
  for (let line = 0; line < lines; line++) {
    end = text.indexOf("\n", end + 1);
    if (end < 0 || end > WIDTH) break;
  }
  if (end < 0) end = text.length;
  if (end > WIDTH) end = WIDTH;
  // A short remainder is shown without a button.
  return text.length - end < 200 && countLines(text.slice(end)) <= 2 ? text.length : end;
}

/** The offset at which the last lines begin. */
function startOfLines(text: string, lines: number): number {
  let start = text.length;
  for (let line = 0; line < lines && start > 0; line++) {
    start = text.lastIndexOf("\n", start - 1);
    if (start < 0 || text.length - start > WIDTH) break;
  }
  if (text.length - start > WIDTH || (start < 0 && text.length > WIDTH)) return text.length - WIDTH;
  if (start < 200 && countLines(text.slice(0, Math.max(start, 0))) <= 2) return 0;
  return start + 1;
}

function countLines(text: string): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}
