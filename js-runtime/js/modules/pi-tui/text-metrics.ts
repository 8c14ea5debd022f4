// Width, truncation and wrapping of text with escape sequences. The program does the work; plain
// ASCII, the most frequent case, does not cross the bridge.
import { textOps } from "pi:host.ts";

const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

/** A width that is no number means no limit (`process.stdout.columns` without a terminal). */
const isUnlimited = (columns: number): boolean => Number.isNaN(Number(columns));

function columns(value: number): number {
  if (isUnlimited(value)) return Infinity;
  return value > 0 ? Math.floor(value) : 0;
}

/** Repeats `row` `count` times, rounded up. */
export function rows(count: number, row = ""): string[] {
  return Array<string>(Math.max(0, Math.ceil(Number(count)) || 0)).fill(row);
}

/** The columns that `text` occupies. Escape sequences count nothing, a tab three. */
export function visibleWidth(text: string): number {
  return PRINTABLE_ASCII.test(text) ? text.length : textOps().width(text);
}

/** Shortens `text` to `maxWidth` columns, with `ellipsis` where something is cut off. */
export function truncateToWidth(
  text: string,
  maxWidth: number,
  ellipsis = "...",
  pad = false,
): string {
  if (isUnlimited(maxWidth)) return text;
  const width = columns(maxWidth);
  if (width === 0) return "";
  if (text.length <= width && PRINTABLE_ASCII.test(text)) return pad ? text.padEnd(width) : text;
  return textOps().truncate(text, width, ellipsis, pad);
}

/** Breaks `text` into lines of at most `width` columns; styles go on in the next line. */
export function wrapTextWithAnsi(text: string, width: number): string[] {
  if (!text) return [""];
  if (text.length <= width && PRINTABLE_ASCII.test(text)) return [text];
  return textOps().wrap(text, columns(width)).split("\n");
}

/**
 * The part of `line` in `length` columns from column `start`. With `strict`, a wide character that
 * crosses the end is left out.
 */
export function sliceByColumn(line: string, start: number, length: number, strict = false): string {
  const end = start + length;
  const from = Math.max(0, start);
  return end > from ? textOps().slice(line, columns(from), columns(end - from), strict) : "";
}

/** Removes colours, links and other escape sequences. */
export function stripTerminalSequences(text: string): string {
  return text.includes("\x1b") ? textOps().strip(text) : text;
}

/** The parts of `line` before and after the columns from `start` to `end`, for an overlay. */
export function aroundColumns(line: string, start: number, end: number, length: number) {
  const [before, after] = textOps().around(line, columns(start), columns(end), columns(length));
  return { before, beforeWidth: visibleWidth(before), after, afterWidth: visibleWidth(after) };
}

/** Pads `line` to `width` columns and colours all of it. */
export function fillLine(line: string, width: number, color?: (text: string) => string): string {
  const filled = line + " ".repeat(Math.max(0, width - visibleWidth(line)));
  return color ? color(filled) : filled;
}
