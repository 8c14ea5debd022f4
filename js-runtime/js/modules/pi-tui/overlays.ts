// Components above the others: where they are, and how they are drawn over lines.
import type { Component } from "pi:pi-tui/component.ts";
import { isImageLine } from "pi:pi-tui/image/index.ts";
import { aroundColumns, sliceByColumn, visibleWidth } from "pi:pi-tui/text-metrics.ts";

export type SizeValue = number | `${number}%`;
export type OverlayAnchor =
  | "center"
  | "top-left"
  | "top-right"
  | "bottom-left"
  | "bottom-right"
  | "top-center"
  | "bottom-center"
  | "left-center"
  | "right-center";

export interface OverlayMargin {
  top?: number;
  right?: number;
  bottom?: number;
  left?: number;
}

export interface OverlayOptions {
  width?: SizeValue;
  minWidth?: number;
  maxHeight?: SizeValue;
  anchor?: OverlayAnchor;
  offsetX?: number;
  offsetY?: number;
  row?: SizeValue;
  col?: SizeValue;
  margin?: OverlayMargin | number;
  visible?(termWidth: number, termHeight: number): boolean;
  /** Does not take the focus when it is shown. */
  nonCapturing?: boolean;
}

export interface OverlayHandle {
  hide(): void;
  setHidden(hidden: boolean): void;
  isHidden(): boolean;
  focus(): void;
  unfocus(): void;
  isFocused(): boolean;
}

export interface Overlay {
  component: Component;
  options?: OverlayOptions;
  /** The component that had the focus before. */
  before: Component | null;
  hidden: boolean;
  /** The highest is in front. */
  order: number;
}

/** Ends styles and links at the edges of an overlay and of each line. */
export const RESET = "\x1b[0m\x1b]8;;\x07";

const PERCENT = /^(\d+(?:\.\d+)?)%$/;

function percentage(value: SizeValue | undefined): number | undefined {
  const match = typeof value === "string" ? PERCENT.exec(value) : null;
  return match ? Number(match[1]) / 100 : undefined;
}

function sizeOf(value: SizeValue | undefined, whole: number): number | undefined {
  if (typeof value === "number") return value;
  const share = percentage(value);
  return share === undefined ? undefined : Math.floor(whole * share);
}

/** One dimension of the screen, without the margins. */
interface Side {
  start: number;
  size: number;
}

/** The position of `size` columns or rows. */
function placeOn(
  side: Side,
  size: number,
  place: SizeValue | undefined,
  anchor: "start" | "middle" | "end",
  offset = 0,
): number {
  const free = side.size - size;
  const share = percentage(place) ?? (typeof place === "string" ? 0.5 : undefined);
  let at: number;
  if (typeof place === "number") at = place;
  else if (share !== undefined && PERCENT.test(String(place))) {
    at = side.start + Math.floor(Math.max(0, free) * share);
  } else {
    const shift = share !== undefined ? "middle" : anchor;
    at = side.start + { start: 0, middle: Math.floor(free / 2), end: free }[shift];
  }
  return Math.max(side.start, Math.min(at + offset, side.start + free));
}

function anchorOf(anchor: OverlayAnchor, start: RegExp, end: RegExp): "start" | "middle" | "end" {
  if (start.test(anchor)) return "start";
  return end.test(anchor) ? "end" : "middle";
}

function layout(options: OverlayOptions, columns: number, rows: number) {
  const { margin = {}, anchor = "center", minWidth = 0 } = options;
  const marginOf = (side: keyof OverlayMargin) =>
    Math.max(0, (typeof margin === "number" ? margin : margin[side]) ?? 0);
  const across = { start: marginOf("left"), size: Math.max(1, columns - marginOf("left") - marginOf("right")) };
  const down = { start: marginOf("top"), size: Math.max(1, rows - marginOf("top") - marginOf("bottom")) };
  const wanted = sizeOf(options.width, columns) ?? Math.min(80, across.size);
  const width = Math.max(1, Math.min(Math.max(wanted, minWidth), across.size));
  const most = sizeOf(options.maxHeight, rows);
  return {
    width,
    maxHeight: most === undefined ? Infinity : Math.max(1, Math.min(most, down.size)),
    col: placeOn(across, width, options.col, anchorOf(anchor, /left/, /right/), options.offsetX),
    row: (height: number) =>
      placeOn(down, height, options.row, anchorOf(anchor, /^top/, /^bottom/), options.offsetY),
  };
}

/** Draws `overlays`, the front one last, over the last `rows` of `lines`. */
export function drawOverlays(
  lines: string[],
  overlays: Overlay[],
  columns: number,
  rows: number,
): string[] {
  const drawn = [...overlays]
    .sort((a, b) => a.order - b.order)
    .map(({ component, options = {} }) => {
      const { width, maxHeight, col, row } = layout(options, columns, rows);
      const content = component.render(width).slice(0, maxHeight);
      return { content, width, col, row: row(content.length) };
    });
  const height = Math.max(lines.length, rows, ...drawn.map(({ row, content }) => row + content.length));
  const result = [...lines, ...Array<string>(height - lines.length).fill("")];
  const top = Math.max(0, height - rows);
  for (const { content, width, col, row } of drawn) {
    content.forEach((line, i) => {
      const at = top + row + i;
      if (at < result.length) result[at] = drawOver(result[at], line, col, width, columns);
    });
  }
  return result;
}

/** Replaces `width` columns of `base` from column `col`. */
export function drawOver(base: string, line: string, col: number, width: number, columns: number): string {
  if (isImageLine(base)) return base;
  const spaces = (count: number) => " ".repeat(Math.max(0, count));
  const over = sliceByColumn(line, 0, width, true);
  const overWidth = visibleWidth(over);
  const end = col + width;
  const { before, beforeWidth, after, afterWidth } = aroundColumns(base, col, end, columns - end);
  const used = Math.max(col, beforeWidth) + Math.max(width, overWidth);
  const result = before + spaces(col - beforeWidth) + RESET + over + spaces(width - overWidth) +
    RESET + after + spaces(Math.max(0, columns - used) - afterWidth);
  return visibleWidth(result) <= columns ? result : sliceByColumn(result, 0, columns, true);
}
