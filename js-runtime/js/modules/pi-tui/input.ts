// A single line to type into; scrolls sideways.
import { type Component, CURSOR_MARKER, type Focusable } from "pi:pi-tui/component.ts";
import { getKeybindings } from "pi:pi-tui/keys/keybindings.ts";
import { decodeKittyPrintable } from "pi:pi-tui/keys/index.ts";
import { graphemes, LineBuffer } from "pi:pi-tui/editor/line-buffer.ts";
import { sliceByColumn, visibleWidth } from "pi:pi-tui/text-metrics.ts";

const PROMPT = "> ";
const PASTE_START = "\x1b[200~";
const PASTE_END = "\x1b[201~";

/** The first binding that matches wins. */
const EDITS: readonly [string, (line: LineBuffer) => void][] = [
  ["tui.editor.deleteCharBackward", (line) => line.remove("left")],
  ["tui.editor.deleteCharForward", (line) => line.remove("right")],
  ["tui.editor.deleteWordBackward", (line) => line.kill("wordLeft")],
  ["tui.editor.deleteWordForward", (line) => line.kill("wordRight")],
  ["tui.editor.deleteToLineStart", (line) => line.kill("start")],
  ["tui.editor.deleteToLineEnd", (line) => line.kill("end")],
  ["tui.editor.yank", (line) => line.yank()],
  ["tui.editor.yankPop", (line) => line.yankPop()],
  ["tui.editor.cursorLeft", (line) => line.move("left")],
  ["tui.editor.cursorRight", (line) => line.move("right")],
  ["tui.editor.cursorLineStart", (line) => line.move("start")],
  ["tui.editor.cursorLineEnd", (line) => line.move("end")],
  ["tui.editor.cursorWordLeft", (line) => line.move("wordLeft")],
  ["tui.editor.cursorWordRight", (line) => line.move("wordRight")],
];

export class Input implements Component, Focusable {
  focused = false;
  onSubmit?: (value: string) => void;
  onEscape?: () => void;
  private _line = new LineBuffer();
  /** The beginning of a paste whose end is still missing. */
  private _pasted: string | undefined;

  getValue(): string {
    return this._line.value;
  }

  setValue(value: string): void {
    this._line.value = value;
    this._line.cursor = Math.min(this._line.cursor, value.length);
  }

  invalidate(): void {
    // Nothing is kept between renderings.
  }

  handleInput(data: string): void {
    if (this._pasted === undefined && data.includes(PASTE_START)) {
      this._pasted = "";
      data = data.replace(PASTE_START, "");
    }
    if (this._pasted === undefined) {
      this._handleKey(data);
      return;
    }
    this._pasted += data;
    const end = this._pasted.indexOf(PASTE_END);
    if (end < 0) return;
    const text = this._pasted.slice(0, end);
    const rest = this._pasted.slice(end + PASTE_END.length);
    this._pasted = undefined;
    this._line.paste(text.replace(/[\r\n]/g, "").replaceAll("\t", "    "));
    if (rest) this.handleInput(rest);
  }

  private _handleKey(data: string): void {
    const keys = getKeybindings();
    if (keys.matches(data, "tui.select.cancel")) {
      this.onEscape?.();
      return;
    }
    if (keys.matches(data, "tui.editor.undo")) {
      this._line.undo();
      return;
    }
    if (keys.matches(data, "tui.input.submit") || data === "\n") {
      this.onSubmit?.(this._line.value);
      return;
    }
    const edit = EDITS.find(([binding]) => keys.matches(data, binding));
    if (edit) {
      edit[1](this._line);
      return;
    }
    const text = decodeKittyPrintable(data) ?? data;
    // Sequences without a binding are not text.
    if (!/[\x00-\x1f\x7f-\x9f]/.test(text)) this._line.type(text);
  }

  render(width: number): string[] {
    const room = width - PROMPT.length;
    if (room <= 0) return [PROMPT];
    const { text, cursor } = this._visible(room);
    const [under = " "] = graphemes(text.slice(cursor));
    const marker = this.focused ? CURSOR_MARKER : "";
    const shown = text.slice(0, cursor) + marker + `\x1b[7m${under}\x1b[27m` +
      text.slice(cursor + under.length);
    return [PROMPT + shown + " ".repeat(Math.max(0, room - visibleWidth(shown)))];
  }

  /** The part of the line that fits, and where the cursor is in it. */
  private _visible(room: number): { text: string; cursor: number } {
    const { value, cursor } = this._line;
    const total = visibleWidth(value);
    if (total < room) return { text: value, cursor };
    // Behind the last character the cursor takes a column of its own.
    const columns = cursor === value.length ? room - 1 : room;
    if (columns <= 0) return { text: "", cursor: 0 };
    const column = visibleWidth(value.slice(0, cursor));
    const half = Math.floor(columns / 2);
    let start = Math.max(0, column - half);
    if (column < half) start = 0;
    else if (column > total - half) start = Math.max(0, total - columns);
    return {
      text: sliceByColumn(value, start, columns, true),
      cursor: sliceByColumn(value, start, Math.max(0, column - start), true).length,
    };
  }
}
