// Splits lines into the units that the editor treats as one character, and wraps long lines.
import { graphemes, type Kind, kindOf } from "pi:pi-tui/editor/line-buffer.ts";
import { visibleWidth } from "pi:pi-tui/text-metrics.ts";

/** Matches the marker of a paste that is too long to show. */
const MARKER = /\[paste #(\d+)(?: (?:\+\d+ lines|\d+ chars))?\]/g;

/** A grapheme, or a marker of a paste: the cursor passes and deletes either as a unit. */
export interface Segment {
  text: string;
  /** The offset in UTF-16 units. */
  index: number;
  kind: Kind | "marker";
}

export type Pastes = ReadonlyMap<number, string>;

/** Splits `text`; only markers of existing pastes count as such. */
export function segmentsOf(text: string, pastes: Pastes): Segment[] {
  const segments: Segment[] = [];
  const plain = (from: number, to: number) => {
    let index = from;
    for (const grapheme of graphemes(text.slice(from, to))) {
      segments.push({ text: grapheme, index, kind: kindOf(grapheme) });
      index += grapheme.length;
    }
  };
  let at = 0;
  if (pastes.size > 0) {
    for (const match of text.matchAll(MARKER)) {
      if (!pastes.has(Number(match[1]))) continue;
      plain(at, match.index);
      segments.push({ text: match[0], index: match.index, kind: "marker" });
      at = match.index + match[0].length;
    }
  }
  plain(at, text.length);
  return segments;
}

/** Replaces the markers in `text` by their pastes. */
export function expandMarkers(text: string, pastes: Pastes): string {
  return text.replace(MARKER, (marker, id) => pastes.get(Number(id)) ?? marker);
}

/** The offsets of the part of a line that stands on one row. */
export interface Row {
  start: number;
  end: number;
}

/**
 * Wraps a line into rows of at most `width` columns, between words where that is possible. Spaces
 * stay at the end of the row.
 */
export function wrapLine(line: string, width: number, segments: Segment[]): Row[] {
  if (width <= 0 || visibleWidth(line) <= width) return [{ start: 0, end: line.length }];
  const starts = [0];
  /** The columns of the row so far. */
  let used = 0;
  /** The last place between words, and the columns before it. */
  let gap: { index: number; used: number } | undefined;
  segments.forEach((segment, i) => {
    const columns = visibleWidth(segment.text);
    if (used + columns > width) {
      if (gap && used - gap.used + columns <= width) {
        starts.push(gap.index);
        used -= gap.used;
      } else if (segment.index > (starts.at(-1) ?? 0)) {
        starts.push(segment.index);
        used = 0;
      }
      gap = undefined;
    }
    if (columns > width && segment.kind === "marker") {
      const inner = segmentsOf(segment.text, new Map());
      const rows = wrapLine(segment.text, width, inner);
      starts.push(...rows.slice(1).map(({ start }) => segment.index + start));
      used = visibleWidth(segment.text.slice(rows.at(-1)?.start));
      return;
    }
    used += columns;
    const next = segments[i + 1];
    if (segment.kind === "space" && next && next.kind !== "space") {
      gap = { index: next.index, used };
    }
  });
  return starts.map((start, i) => ({ start, end: starts[i + 1] ?? line.length }));
}

/** The length of the word at the start of `segments`, with the spaces before it. */
export function wordLength(segments: Segment[]): number {
  const length = (until: number) =>
    segments.slice(0, until < 0 ? undefined : until).reduce((sum, { text }) => sum + text.length, 0);
  const start = segments.findIndex(({ kind }) => kind !== "space");
  if (start < 0) return length(-1);
  const { kind } = segments[start];
  // A marker is a word of its own.
  const end = segments.findIndex((segment, i) =>
    i > start && (kind === "marker" || segment.kind !== kind)
  );
  return length(end);
}
