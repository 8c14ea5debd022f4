// Lines of text that are being edited: cursor, pastes, kill ring and undo, without
// any notion of keys or screens.
import {
  expandMarkers,
  type Segment,
  segmentsOf,
  wordLength,
} from "pi:pi-tui/editor/segments.ts";

export interface Position {
  line: number;
  col: number;
}

interface State extends Position {
  lines: string[];
}

export type Target = "char" | "word" | "edge";
export type Direction = -1 | 1;

/** More than this is shown as a marker. */
const MAX_PASTED_LINES = 10;
const MAX_PASTED_CHARACTERS = 1000;

function normalize(text: string): string {
  return text.replace(/\r\n?/g, "\n").replaceAll("\t", "    ");
}

export class EditorText {
  lines: string[] = [""];
  line = 0;
  /** The offset in UTF-16 units, always between two segments. */
  col = 0;
  /** Pastes by the number in their marker. */
  pastes = new Map<number, string>();
  /** Called after every edit. */
  onEdit: () => void = () => {};
  /** Called when the cursor is placed other than by moving it up or down. */
  onPlace: () => void = () => {};
  private undoStack: State[] = [];
  private killRing: string[] = [];
  /** The last operation: typing and killing continue the previous one of their kind. */
  private last: "type" | "kill" | "yank" | undefined;

  get text(): string {
    return this.lines.join("\n");
  }

  get expandedText(): string {
    return expandMarkers(this.text, this.pastes);
  }

  get currentLine(): string {
    return this.lines[this.line];
  }

  get beforeCursor(): string {
    return this.currentLine.slice(0, this.col);
  }

  get isEmpty(): boolean {
    return this.lines.length === 1 && this.lines[0] === "";
  }

  segments(text: string): Segment[] {
    return segmentsOf(text, this.pastes);
  }

  /** The next edit begins a new step of undo, and a new entry of the kill ring. */
  breakSequence(): void {
    this.last = undefined;
  }

  private remember(): void {
    this.undoStack.push({ lines: [...this.lines], line: this.line, col: this.col });
  }

  private moveCursor({ line, col }: Position): void {
    this.line = line;
    this.col = col;
    this.onPlace();
  }

  /** Puts `text` in the place of what is there, with the cursor behind it. */
  replaceAll(text: string): void {
    this.lines = text.split("\n");
    const line = this.lines.length - 1;
    this.moveCursor({ line, col: this.lines[line].length });
    this.onEdit();
  }

  setText(text: string): void {
    this.last = undefined;
    const normalized = normalize(text);
    if (normalized !== this.text) this.remember();
    this.replaceAll(normalized);
  }

  /** Starts browsing the history: one undo leads back to the text before the first entry. */
  startBrowsing(): void {
    this.remember();
  }

  /** Replaces the lines by the result of a completion. */
  complete(state: State): void {
    this.remember();
    this.last = undefined;
    // The provider may have kept the array.
    this.lines = state.lines.length > 0 ? [...state.lines] : [""];
    const line = Math.min(Math.max(0, state.line), this.lines.length - 1);
    this.moveCursor({ line, col: Math.min(Math.max(0, state.col), this.lines[line].length) });
  }

  clear(): void {
    this.lines = [""];
    this.moveCursor({ line: 0, col: 0 });
    this.pastes.clear();
    this.undoStack = [];
    this.last = undefined;
    this.onEdit();
  }

  /** Replaces the text between two places and returns it; the cursor is put behind. */
  private replace(from: Position, to: Position, text: string): string {
    const { lines } = this;
    const removed = from.line === to.line
      ? lines[from.line].slice(from.col, to.col)
      : [
        lines[from.line].slice(from.col),
        ...lines.slice(from.line + 1, to.line),
        lines[to.line].slice(0, to.col),
      ].join("\n");
    const inserted = (lines[from.line].slice(0, from.col) + text).split("\n");
    const col = inserted[inserted.length - 1].length;
    inserted[inserted.length - 1] += lines[to.line].slice(to.col);
    this.lines = [...lines.slice(0, from.line), ...inserted, ...lines.slice(to.line + 1)];
    this.moveCursor({ line: from.line + inserted.length - 1, col });
    return removed;
  }

  private splice(text: string): void {
    this.replace(this, this, text);
    this.onEdit();
  }

  /** Typed text: what is typed without a space in between is undone together. */
  type(text: string): void {
    if (this.last !== "type" || /\s/.test(text)) this.remember();
    this.last = "type";
    this.splice(text);
  }

  newLine(): void {
    this.insert("\n");
  }

  /** Inserts `text` as one step of undo. */
  insert(text: string): void {
    this.last = undefined;
    this.remember();
    this.splice(normalize(text));
  }

  paste(pasted: string): void {
    let text = normalize(pasted).replace(/[\x00-\x09\x0b-\x1f]/g, "");
    // A file that is dropped into the middle of a sentence.
    if (/^[/~.]/.test(text) && /\w$/.test(this.beforeCursor)) text = ` ${text}`;
    const lines = text.split("\n").length;
    if (lines > MAX_PASTED_LINES || text.length > MAX_PASTED_CHARACTERS) {
      const id = Math.max(0, ...this.pastes.keys()) + 1;
      this.pastes.set(id, text);
      const size = lines > MAX_PASTED_LINES ? `+${lines} lines` : `${text.length} chars`;
      text = `[paste #${id} ${size}]`;
    }
    this.insert(text);
  }

  undo(): void {
    const state = this.undoStack.pop();
    if (!state) return;
    this.lines = state.lines;
    this.moveCursor(state);
    this.last = undefined;
    this.onEdit();
  }

  /** The place that one step away from the cursor is; over the edge is the next line. */
  private target(target: Target, direction: Direction): Position {
    const { line, col } = this;
    const rest = direction < 0 ? this.beforeCursor : this.currentLine.slice(col);
    if (rest === "") {
      const next = line + direction;
      if (next < 0 || next >= this.lines.length) return { line, col };
      return { line: next, col: direction < 0 ? this.lines[next].length : 0 };
    }
    if (target === "edge") return { line, col: direction < 0 ? 0 : this.currentLine.length };
    const segments = this.segments(rest);
    if (direction < 0) segments.reverse();
    const length = target === "char" ? segments[0].text.length : wordLength(segments);
    return { line, col: col + direction * length };
  }

  move(target: Target, direction: Direction): void {
    this.last = undefined;
    // Home and End stay on their line.
    if (target === "edge") this.moveCursor({ line: this.line, col: direction < 0 ? 0 : this.currentLine.length });
    else this.moveCursor(this.target(target, direction));
  }

  /** Removes up to the target and returns what was there. */
  private cut(target: Target, direction: Direction): string {
    const place = this.target(target, direction);
    if (place.line === this.line && place.col === this.col) return "";
    this.remember();
    const here = { line: this.line, col: this.col };
    return direction < 0 ? this.replace(place, here, "") : this.replace(here, place, "");
  }

  /** Removes a character for good. */
  remove(direction: Direction): void {
    this.last = undefined;
    this.cut("char", direction);
    this.onEdit();
  }

  /** Removes a word or the rest of the line; `yank` brings it back. */
  kill(target: "word" | "edge", direction: Direction): void {
    const text = this.cut(target, direction);
    if (text) {
      const earlier = this.last === "kill" ? (this.killRing.pop() ?? "") : "";
      this.killRing.push(direction < 0 ? text + earlier : earlier + text);
      this.last = "kill";
    }
    this.onEdit();
  }

  yank(): void {
    const text = this.killRing.at(-1);
    if (text === undefined) return;
    this.remember();
    this.splice(text);
    this.last = "yank";
  }

  /** Replaces what has just been yanked by what was killed before it. */
  yankPop(): void {
    const yanked = this.killRing.at(-1);
    if (this.last !== "yank" || yanked === undefined || this.killRing.length < 2) return;
    this.remember();
    this.killRing.unshift(this.killRing.pop() ?? "");
    const lines = yanked.split("\n");
    const line = this.line - lines.length + 1;
    const end = lines.length === 1 ? this.col : this.lines[line].length;
    this.replace({ line, col: end - lines[0].length }, this, this.killRing.at(-1) ?? "");
    this.onEdit();
    this.last = "yank";
  }

  /** Goes to the next `text`, on this line or a later one. */
  jumpTo(text: string, direction: Direction): void {
    this.last = undefined;
    for (let line = this.line; line >= 0 && line < this.lines.length; line += direction) {
      const here = line === this.line;
      const content = this.lines[line];
      let col: number;
      if (direction > 0) col = content.indexOf(text, here ? this.col + 1 : 0);
      else if (here && this.col === 0) col = -1;
      else col = content.lastIndexOf(text, here ? this.col - 1 : undefined);
      if (col < 0) continue;
      this.moveCursor({ line, col });
      return;
    }
  }
}
