// Wraps the editor's text into rows of the screen, and moves the cursor between them.
import { wrapLine } from "pi:pi-tui/editor/segments.ts";
import type { EditorText } from "pi:pi-tui/editor/text.ts";

/** The part of a line on one row of the screen. */
export interface ScreenRow {
  line: number;
  start: number;
  end: number;
  /** Whether the line continues in the next row: its end is the start of that one. */
  continued: boolean;
}

export class EditorRows {
  private text: EditorText;
  /** The column to which the cursor returns in longer rows while it moves up and down. */
  private goalColumn: number | undefined;
  /** The column where the cursor would be without a marker in the way. */
  private unsnappedColumn: number | undefined;

  constructor(text: EditorText) {
    this.text = text;
  }

  /** Called when the cursor was moved in another way. */
  forget(): void {
    this.goalColumn = undefined;
    this.unsnappedColumn = undefined;
  }

  layout(width: number): ScreenRow[] {
    return this.text.lines.flatMap((content, line) => {
      const rows = wrapLine(content, width, this.text.segments(content));
      return rows.map(({ start, end }, i) => ({
        line,
        start,
        end,
        continued: i < rows.length - 1,
      }));
    });
  }

  private find(rows: ScreenRow[], line: number, col: number): number {
    const found = rows.findIndex((row) =>
      row.line === line && col >= row.start && (row.continued ? col < row.end : col <= row.end)
    );
    return found < 0 ? rows.length - 1 : found;
  }

  /** The index of the row with the cursor. */
  current(rows: ScreenRow[]): number {
    return this.find(rows, this.text.line, this.text.col);
  }

  /** Keeps the column at the very end, so that up and down come back to it. */
  keepColumn(width: number): void {
    const rows = this.layout(width);
    this.goalColumn = this.text.col - rows[this.current(rows)].start;
  }

  /** Moves the cursor by `by` rows; a page stops at the first and the last one. */
  move(by: number, width: number): void {
    const rows = this.layout(width);
    const from = this.current(rows);
    const to = Math.min(Math.max(0, from + by), rows.length - 1);
    if (to !== from || Math.abs(by) > 1) this.moveTo(rows, from, to);
  }

  private moveTo(rows: ScreenRow[], from: number, to: number): void {
    const { text } = this;
    const target = rows[to];
    const col = this.unsnappedColumn ?? text.col;
    const origin = this.unsnappedColumn === undefined ? from : this.find(rows, rows[from].line, col);
    const column = this.column(col - rows[origin].start, rows[from], target);
    text.line = target.line;
    text.col = Math.min(target.start + column, text.currentLine.length);

    const inside = text.segments(text.currentLine).find(({ index, text: { length } }) =>
      length > 1 && index <= text.col && text.col < index + length
    );
    this.unsnappedColumn = undefined;
    if (!inside) return;
    // A marker over several rows was visited in its first one, so the cursor moves past it.
    if (inside.index < target.start && to > from) {
      const end = inside.index + inside.text.length;
      const next = rows.findIndex((row, i) =>
        i > to && (row.line !== target.line || row.start >= end)
      );
      if (next >= 0) {
        text.line = rows[from].line;
        text.col = col;
        this.moveTo(rows, from, next);
        return;
      }
    }
    this.unsnappedColumn = text.col;
    text.col = inside.index;
  }

  /** The target column: the goal column if the row is long enough, else its last one. */
  private column(current: number, source: ScreenRow, target: ScreenRow): number {
    const last = (row: ScreenRow) => Math.max(0, row.end - row.start - (row.continued ? 1 : 0));
    const [sourceEnd, targetEnd] = [last(source), last(target)];
    const wanted = this.goalColumn;
    if (wanted === undefined || current < sourceEnd) {
      this.goalColumn = targetEnd < current ? current : undefined;
      return Math.min(current, targetEnd);
    }
    if (targetEnd < current || targetEnd < wanted) return targetEnd;
    this.goalColumn = undefined;
    return wanted;
  }
}
