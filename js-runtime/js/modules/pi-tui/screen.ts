// Brings lines onto a terminal and writes only what has changed.
import { env } from "pi:node.ts";
import { isImageLine } from "pi:pi-tui/image/index.ts";
import { sliceByColumn, visibleWidth } from "pi:pi-tui/text-metrics.ts";
import type { Terminal } from "pi:pi-tui/terminal.ts";

const SYNC_START = "\x1b[?2026h";
const SYNC_END = "\x1b[?2026l";
const CLEAR_ALL = "\x1b[2J\x1b[H\x1b[3J";
const CLEAR_LINE = "\x1b[2K";

/** Up or down by `rows`. */
function moveRows(rows: number): string {
  if (rows === 0) return "";
  return rows > 0 ? `\x1b[${rows}B` : `\x1b[${-rows}A`;
}

export interface CursorPosition {
  row: number;
  col: number;
}

export class Screen {
  fullRedraws = 0;
  clearOnShrink = env("PI_CLEAR_ON_SHRINK") === "1";
  showHardwareCursor = env("PI_HARDWARE_CURSOR") === "1";
  private terminal: Terminal;
  private lines: string[] = [];
  /** The size at the last drawing; 0 before the first. */
  private width = 0;
  private height = 0;
  /** The line that the terminal's cursor is in. */
  private cursorRow = 0;
  /** The first line that is on the screen. */
  private top = 0;
  /** The most lines since the screen was cleared. */
  private most = 0;

  constructor(terminal: Terminal) {
    this.terminal = terminal;
  }

  /** Forgets the content of the screen, which is no longer known. */
  forget(): void {
    this.lines = [];
    this.width = -1;
    this.height = -1;
    this.cursorRow = 0;
    this.top = 0;
    this.most = 0;
  }

  /** Leaves the cursor below everything. */
  leave(): void {
    if (this.lines.length === 0) return;
    this.write(moveRows(this.lines.length - this.cursorRow));
    this.write("\r\n");
  }

  private write(data: string): void {
    if (data) this.terminal.write(data);
  }

  draw(wanted: string[], cursor: CursorPosition | undefined, hasOverlays: boolean): void {
    const { columns: width, rows: height } = this.terminal;
    // A component that is too wide would scroll the screen out of step.
    const lines = wanted.map((line) =>
      isImageLine(line) || visibleWidth(line) <= width ? line : sliceByColumn(line, 0, width, true)
    );
    const first = this.lines.length === 0 && this.width === 0;
    const widthChanged = this.width !== 0 && this.width !== width;
    const heightChanged = this.height !== 0 && this.height !== height;
    // On phones the keyboard changes the height all the time.
    const resized = widthChanged || (heightChanged && !env("TERMUX_VERSION"));
    const shrunk = this.clearOnShrink && lines.length < this.most && !hasOverlays;
    if (heightChanged) this.top = Math.max(0, this.top + Math.max(0, this.height) - height);
    if (first || (this.lines.length === 0 && !resized)) this.redraw(lines, false);
    else if (resized || shrunk || !this.update(lines, height)) this.redraw(lines, true);
    this.lines = lines;
    this.width = width;
    this.height = height;
    this.placeCursor(cursor);
  }

  private redraw(lines: string[], clear: boolean): void {
    this.fullRedraws += 1;
    this.write(SYNC_START + (clear ? CLEAR_ALL : "") + lines.join("\r\n") + SYNC_END);
    this.cursorRow = Math.max(0, lines.length - 1);
    this.most = clear ? lines.length : Math.max(this.most, lines.length);
    this.top = Math.max(0, lines.length - this.terminal.rows);
  }

  /** Writes what has changed; returns false if that is out of reach. */
  private update(lines: string[], height: number): boolean {
    const old = this.lines;
    const changed = (i: number) => (old[i] ?? "") !== (lines[i] ?? "");
    const count = Math.max(old.length, lines.length);
    let from = 0;
    while (from < count && !changed(from)) from += 1;
    // Lines that were appended are written even if they are empty.
    const appended = lines.length > old.length;
    if (appended) from = Math.min(from, old.length);
    if (from >= count) return true;
    if (from >= lines.length) return this.removeBelow(lines, height);
    if (from < this.top) return false;
    let to = appended ? lines.length - 1 : count - 1;
    while (!appended && !changed(to)) to -= 1;
    to = Math.min(to, lines.length - 1);

    // Behind the last line only a line feed leads.
    const startsNewLine = appended && from === old.length && from > 0;
    const target = startsNewLine ? from - 1 : from;
    let output = SYNC_START;
    const bottom = this.top + height - 1;
    if (target > bottom) {
      const row = Math.max(0, Math.min(height - 1, this.cursorRow - this.top));
      output += moveRows(height - 1 - row) + "\r\n".repeat(target - bottom);
      this.top += target - bottom;
      this.cursorRow = target;
    }
    output += moveRows(target - this.cursorRow) + (startsNewLine ? "\r\n" : "\r");
    output += lines.slice(from, to + 1).map((line) => CLEAR_LINE + line).join("\r\n");
    let row = to;
    const extra = old.length - lines.length;
    if (extra > 0) {
      output += moveRows(lines.length - 1 - row);
      row = lines.length - 1;
      output += `\r\n${CLEAR_LINE}`.repeat(extra) + moveRows(-extra);
    }
    this.write(output + SYNC_END);
    this.cursorRow = row;
    this.most = Math.max(this.most, lines.length);
    this.top = Math.max(this.top, row - height + 1);
    return true;
  }

  /** Removes lines at the end when nothing else has changed. */
  private removeBelow(lines: string[], height: number): boolean {
    const target = Math.max(0, lines.length - 1);
    const extra = this.lines.length - lines.length;
    if (target < this.top || extra > height) return false;
    const output = moveRows(target - this.cursorRow) + "\r\x1b[1B" +
      Array<string>(extra).fill(`\r${CLEAR_LINE}`).join("\x1b[1B") + moveRows(-extra);
    this.write(SYNC_START + output + SYNC_END);
    this.cursorRow = target;
    return true;
  }

  /** Places the terminal's cursor where text is typed, for input methods. */
  private placeCursor(cursor: CursorPosition | undefined): void {
    if (!cursor || this.lines.length === 0) {
      this.terminal.hideCursor();
      return;
    }
    const row = Math.max(0, Math.min(cursor.row, this.lines.length - 1));
    this.write(`${moveRows(row - this.cursorRow)}\x1b[${Math.max(0, cursor.col) + 1}G`);
    this.cursorRow = row;
    if (this.showHardwareCursor) this.terminal.showCursor();
    else this.terminal.hideCursor();
  }
}
