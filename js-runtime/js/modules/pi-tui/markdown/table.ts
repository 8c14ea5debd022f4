// Fits tables into a width: columns shrink in proportion to their excess.
import type { Token } from "pi:pi-tui/markdown/index.ts";
import { visibleWidth, wrapTextWithAnsi } from "pi:pi-tui/text-metrics.ts";

/** Words up to this width are not broken if it can be helped. */
const MAX_WORD = 30;

const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
const longest = (values: number[]) => values.reduce((most, value) => Math.max(most, value), 0);

function longestWord(text: string): number {
  return longest(text.split(/\s+/).map(visibleWidth));
}

/** Shares `extra` columns out, weighted; what rounding leaves goes to the first ones. */
function share(extra: number, weights: number[]): number[] {
  const total = sum(weights);
  return weights.map((weight) => (total > 0 ? Math.floor((weight / total) * extra) : 0));
}

/** The least that each column needs, or what there is of it. */
function leastWidths(words: number[], room: number): number[] {
  if (sum(words) <= room) return words;
  const extra = room - words.length;
  const shares = share(extra, words.map((word) => word - 1));
  let left = extra - sum(shares);
  return shares.map((width) => 1 + width + (left-- > 0 ? 1 : 0));
}

function columnWidths(natural: number[], words: number[], room: number): number[] {
  const least = leastWidths(words, room);
  if (sum(natural) <= room) return natural.map((width, i) => Math.max(width, least[i]));
  const wanted = natural.map((width, i) => Math.max(0, width - least[i]));
  const shares = share(Math.max(0, room - sum(least)), wanted);
  const widths = least.map((width, i) => width + shares[i]);
  let left = room - sum(widths);
  while (left > 0) {
    const narrow = widths.map((_, i) => i).filter((i) => widths[i] < natural[i]).slice(0, left);
    if (narrow.length === 0) break;
    for (const i of narrow) widths[i] += 1;
    left -= narrow.length;
  }
  return widths;
}

export function renderTable(
  table: Token,
  width: number,
  inline: (tokens: Token[]) => string,
  bold: (text: string) => string,
): string[] {
  const rows = (table.rows ?? []).map((row) => row.map((cell) => inline(cell.tokens ?? [])));
  const columns = rows[0]?.length ?? 0;
  if (columns === 0) return [];
  // A border and two spaces for each column, and the last border.
  const room = width - (3 * columns + 1);
  if (room < columns) return table.raw ? wrapTextWithAnsi(table.raw, width) : [];
  const column = (i: number) => rows.map((row) => row[i] ?? "");
  const indexes = rows[0].map((_, i) => i);
  const natural = indexes.map((i) => longest(column(i).map(visibleWidth)));
  const words = indexes.map((i) => Math.max(1, Math.min(MAX_WORD, longest(column(i).map(longestWord)))));
  const widths = columnWidths(natural, words, room);

  const rule = (left: string, cross: string, right: string) =>
    `${left}\u2500${widths.map((width) => "\u2500".repeat(width)).join(`\u2500${cross}\u2500`)}\u2500${right}`;
  const line = (parts: string[]) => `\u2502 ${parts.join(" \u2502 ")} \u2502`;
  const between = rule("\u251c", "\u253c", "\u2524");
  const drawn = rows.map((row, at) => {
    const cells = indexes.map((i) => wrapTextWithAnsi(row[i] ?? "", Math.max(1, widths[i])));
    return Array.from({ length: longest(cells.map(({ length }) => length)) }, (_, y) =>
      line(cells.map((cell, i) => {
        const text = cell[y] ?? "";
        const filled = text + " ".repeat(Math.max(0, widths[i] - visibleWidth(text)));
        return at === 0 ? bold(filled) : filled;
      })));
  });
  return [
    rule("\u250c", "\u252c", "\u2510"),
    ...drawn.flatMap((lines, at) => (at === 0 ? lines : [between, ...lines])),
    // A table without rows still has the line below its header.
    ...(drawn.length === 1 ? [between] : []),
    rule("\u2514", "\u2534", "\u2518"),
  ];
}
