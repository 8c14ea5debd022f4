// The editor for prompts: several lines, wrapped by words, with history, pastes and
// suggestions.
import { type Component, CURSOR_MARKER, type Focusable } from "pi:pi-tui/component.ts";
import { type AutocompleteProvider, EditorCompletion } from "pi:pi-tui/editor/completion.ts";
import { EditorRows } from "pi:pi-tui/editor/rows.ts";
import { EditorText } from "pi:pi-tui/editor/text.ts";
import { getKeybindings, type KeybindingsManager } from "pi:pi-tui/keys/keybindings.ts";
import { decodeKittyPrintable, matchesKey } from "pi:pi-tui/keys/index.ts";
import type { SelectListTheme } from "pi:pi-tui/select-list.ts";
import { truncateToWidth, visibleWidth } from "pi:pi-tui/text-metrics.ts";

type Paint = (text: string) => string;

export interface EditorTheme {
  borderColor: Paint;
  selectList: SelectListTheme;
}

export interface EditorOptions {
  paddingX?: number;
  autocompleteMaxVisible?: number;
}

/** The members of the terminal that the editor uses. */
export interface EditorTui {
  requestRender(): void;
  readonly terminal: { readonly rows: number };
}

const PASTE_START = "\x1b[200~";
const PASTE_END = "\x1b[201~";
const MAX_HISTORY = 100;
const LINE = "\u2500";

/** The first binding that matches wins. */
const EDITS: readonly [string, (editor: EditorText) => void][] = [
  ["tui.editor.deleteToLineEnd", (text) => text.kill("edge", 1)],
  ["tui.editor.deleteToLineStart", (text) => text.kill("edge", -1)],
  ["tui.editor.deleteWordBackward", (text) => text.kill("word", -1)],
  ["tui.editor.deleteWordForward", (text) => text.kill("word", 1)],
];
const YANKS_AND_MOVES: readonly [string, (editor: EditorText) => void][] = [
  ["tui.editor.yank", (text) => text.yank()],
  ["tui.editor.yankPop", (text) => text.yankPop()],
  ["tui.editor.cursorLineStart", (text) => text.move("edge", -1)],
  ["tui.editor.cursorLineEnd", (text) => text.move("edge", 1)],
  ["tui.editor.cursorWordLeft", (text) => text.move("word", -1)],
  ["tui.editor.cursorWordRight", (text) => text.move("word", 1)],
];

function clampedInteger(value: number | undefined, otherwise: number, least: number, most: number): number {
  if (!Number.isFinite(value)) return otherwise;
  return Math.min(most, Math.max(least, Math.floor(value as number)));
}

const padding = (value: number | undefined) => clampedInteger(value, 0, 0, Infinity);
const visibleItems = (value: number | undefined) => clampedInteger(value, 5, 3, 20);

// Real private members, because extensions derive editors with arbitrary member names.
export class Editor implements Component, Focusable {
  focused = false;
  borderColor: Paint;
  onSubmit?: (text: string) => void;
  onChange?: (text: string) => void;
  disableSubmit = false;
  protected tui: EditorTui;
  private _text = new EditorText();
  private _rows = new EditorRows(this._text);
  private _completion: EditorCompletion;
  private _paddingX: number;
  /** The size of the last rendering, on which moving up and down depends. */
  private _layoutWidth = 80;
  private _firstRow = 0;
  /** The history, newest first. */
  private _history: string[] = [];
  /** The index of the displayed entry, -1 for the user's own text. */
  private _historyIndex = -1;
  /** The beginning of a paste whose end is still missing. */
  private _pasted: string | undefined;
  /** Set while the next key is the character to jump to. */
  private _jump: -1 | 1 | undefined;

  constructor(tui: EditorTui, theme: EditorTheme, options: EditorOptions = {}) {
    this.tui = tui;
    this.borderColor = theme.borderColor;
    this._paddingX = padding(options.paddingX);
    this._completion = new EditorCompletion(
      this._text,
      theme.selectList,
      visibleItems(options.autocompleteMaxVisible),
      () => this.tui.requestRender(),
    );
    this._text.onEdit = () => this.onChange?.(this.getText());
    this._text.onPlace = () => this._rows.forget();
  }

  getPaddingX(): number {
    return this._paddingX;
  }

  setPaddingX(value: number): void {
    if (padding(value) === this._paddingX) return;
    this._paddingX = padding(value);
    this.tui.requestRender();
  }

  getAutocompleteMaxVisible(): number {
    return this._completion.maxVisible;
  }

  setAutocompleteMaxVisible(value: number): void {
    if (visibleItems(value) === this._completion.maxVisible) return;
    this._completion.maxVisible = visibleItems(value);
    this.tui.requestRender();
  }

  setAutocompleteProvider(provider: AutocompleteProvider): void {
    this._completion.cancel();
    this._completion.provider = provider;
  }

  isShowingAutocomplete(): boolean {
    return this._completion.isShown;
  }

  getText(): string {
    return this._text.text;
  }

  /** The text with pastes in place of their markers. */
  getExpandedText(): string {
    return this._text.expandedText;
  }

  getLines(): string[] {
    return [...this._text.lines];
  }

  getCursor(): { line: number; col: number } {
    return { line: this._text.line, col: this._text.col };
  }

  setText(text: string): void {
    this._beginEdit();
    this._firstRow = 0;
    this._text.setText(text);
  }

  insertTextAtCursor(text: string): void {
    if (!text) return;
    this._beginEdit();
    this._text.insert(text);
  }

  /** Called before an edit: the text is no longer a history entry, and its suggestions are void. */
  private _beginEdit(): void {
    this._completion.cancel();
    this._historyIndex = -1;
  }

  addToHistory(text: string): void {
    const trimmed = text.trim();
    if (!trimmed || this._history[0] === trimmed) return;
    this._history = [trimmed, ...this._history].slice(0, MAX_HISTORY);
  }

  private _browse(by: 1 | -1): void {
    this._text.breakSequence();
    const index = this._historyIndex + by;
    if (index < -1 || index >= this._history.length) return;
    if (this._historyIndex < 0) this._text.startBrowsing();
    this._historyIndex = index;
    this._firstRow = 0;
    this._text.replaceAll(this._history[index] ?? "");
  }

  invalidate(): void {
    // No state is kept between renderings.
  }

  private get _pageRows(): number {
    return Math.max(5, Math.floor(this.tui.terminal.rows * 0.3));
  }

  render(width: number): string[] {
    const paddingX = Math.min(this._paddingX, Math.max(0, Math.floor((width - 1) / 2)));
    const room = Math.max(1, width - 2 * paddingX);
    // The cursor after the last character needs a column, taken from the padding if there is one.
    this._layoutWidth = Math.max(1, room - (paddingX > 0 ? 0 : 1));
    const rows = this._rows.layout(this._layoutWidth);
    const current = this._rows.current(rows);
    const size = this._pageRows;
    this._firstRow = Math.min(this._firstRow, current, Math.max(0, rows.length - size));
    this._firstRow = Math.max(this._firstRow, current - size + 1);
    const end = Math.min(this._firstRow + size, rows.length);
    const margin = " ".repeat(paddingX);

    const lines = [this._border(width, "\u2191", this._firstRow)];
    for (let i = this._firstRow; i < end; i++) {
      const { line, start, end: rowEnd } = rows[i];
      const text = this._text.lines[line].slice(start, rowEnd);
      const shown = i === current ? this._withCursor(text, this._text.col - start) : text;
      const free = room + paddingX - visibleWidth(shown);
      lines.push(margin + shown + " ".repeat(Math.max(0, free)));
    }
    lines.push(this._border(width, "\u2193", rows.length - end));
    for (const line of this._completion.render(room)) {
      lines.push(margin + line + " ".repeat(Math.max(0, room - visibleWidth(line))) + margin);
    }
    return lines;
  }

  /** A horizontal line with the number of rows hidden behind it. */
  private _border(width: number, arrow: string, hidden: number): string {
    const text = hidden > 0 ? `${LINE.repeat(3)} ${arrow} ${hidden} more ` : "";
    const free = width - visibleWidth(text);
    if (!text) return this.borderColor(LINE).repeat(Math.max(0, free));
    return this.borderColor(free < 0 ? truncateToWidth(text, width) : text + LINE.repeat(free));
  }

  private _withCursor(text: string, at: number): string {
    // While suggestions are shown, an input method must not cover them.
    const marker = this.focused && !this._completion.isShown ? CURSOR_MARKER : "";
    const [under] = this._text.segments(text.slice(at));
    const shown = under?.text ?? " ";
    return `${text.slice(0, at)}${marker}\x1b[7m${shown}\x1b[0m${text.slice(at + shown.length)}`;
  }

  handleInput(data: string): void {
    const keys = getKeybindings();
    if (this._jump !== undefined && this._jumpTo(data, keys)) return;
    if (this._takePaste(data)) return;
    if (keys.matches(data, "tui.input.copy")) return;
    if (keys.matches(data, "tui.editor.undo")) {
      this._historyIndex = -1;
      this._text.undo();
      return;
    }
    if (this._completion.isShown && this._handleSuggestions(data, keys)) return;
    if (keys.matches(data, "tui.input.tab") && !this._completion.isShown) {
      this._completion.tab();
      return;
    }
    const edit = EDITS.find(([binding]) => keys.matches(data, binding));
    if (edit) {
      this._historyIndex = -1;
      edit[1](this._text);
      return;
    }
    if (keys.matches(data, "tui.editor.deleteCharBackward") || matchesKey(data, "shift+backspace")) {
      this._removeCharacter(-1);
      return;
    }
    if (keys.matches(data, "tui.editor.deleteCharForward") || matchesKey(data, "shift+delete")) {
      this._removeCharacter(1);
      return;
    }
    const move = YANKS_AND_MOVES.find(([binding]) => keys.matches(data, binding));
    if (move) {
      if (/yank/.test(move[0])) this._historyIndex = -1;
      move[1](this._text);
      return;
    }
    this._handleEnterAndArrows(data, keys);
  }

  private _handleEnterAndArrows(data: string, keys: KeybindingsManager): void {
    if (this._isNewLine(data, keys)) {
      this._newLine(data, keys);
    } else if (keys.matches(data, "tui.input.submit")) {
      if (this.disableSubmit) return;
      // Supports terminals that cannot tell Shift+Enter from Enter.
      if (this._text.beforeCursor.endsWith("\\")) {
        this._removeCharacter(-1);
        this._newLine("", keys);
      } else this._submit();
    } else if (keys.matches(data, "tui.editor.cursorUp")) this._up();
    else if (keys.matches(data, "tui.editor.cursorDown")) this._down();
    else if (keys.matches(data, "tui.editor.cursorRight")) this._right();
    else if (keys.matches(data, "tui.editor.cursorLeft")) this._text.move("char", -1);
    else if (keys.matches(data, "tui.editor.pageUp")) this._page(-1);
    else if (keys.matches(data, "tui.editor.pageDown")) this._page(1);
    else if (keys.matches(data, "tui.editor.jumpForward")) this._jump = 1;
    else if (keys.matches(data, "tui.editor.jumpBackward")) this._jump = -1;
    else if (matchesKey(data, "shift+space")) this._type(" ");
    else {
      const text = decodeKittyPrintable(data) ?? data;
      // Control characters and sequences without a binding are not text.
      if (text.charCodeAt(0) >= 32) this._type(text);
    }
  }

  private _type(text: string): void {
    this._historyIndex = -1;
    this._text.type(text);
    this._completion.afterTyping(text);
  }

  private _removeCharacter(direction: -1 | 1): void {
    this._historyIndex = -1;
    this._text.remove(direction);
    this._completion.afterDeleting();
  }

  /** Returns whether the key was the character to jump to, or ended the jump. */
  private _jumpTo(data: string, keys: KeybindingsManager): boolean {
    const direction = this._jump ?? 1;
    this._jump = undefined;
    if (keys.matches(data, "tui.editor.jumpForward")) return true;
    if (keys.matches(data, "tui.editor.jumpBackward")) return true;
    if (!(data.charCodeAt(0) >= 32)) return false;
    this._text.jumpTo(data, direction);
    return true;
  }

  /** Returns whether the data belongs to a bracketed paste. */
  private _takePaste(data: string): boolean {
    if (data.includes(PASTE_START)) {
      this._pasted = "";
      data = data.replace(PASTE_START, "");
    }
    if (this._pasted === undefined) return false;
    this._pasted += data;
    const end = this._pasted.indexOf(PASTE_END);
    if (end < 0) return true;
    const text = this._pasted.slice(0, end);
    const rest = this._pasted.slice(end + PASTE_END.length);
    this._pasted = undefined;
    if (text) {
      this._beginEdit();
      this._text.paste(text);
    }
    if (rest) this.handleInput(rest);
    return true;
  }

  /** Returns whether the list of suggestions handled the key. */
  private _handleSuggestions(data: string, keys: KeybindingsManager): boolean {
    if (keys.matches(data, "tui.select.cancel")) {
      this._completion.cancel();
      return true;
    }
    if (keys.matches(data, "tui.select.up") || keys.matches(data, "tui.select.down")) {
      this._completion.moveSelection(data);
      return true;
    }
    if (keys.matches(data, "tui.input.tab")) {
      if (this._completion.accept() !== undefined) this._text.onEdit();
      return true;
    }
    if (!keys.matches(data, "tui.select.confirm")) return false;
    const replaced = this._completion.accept();
    // A command is submitted with the same key.
    if (replaced === undefined || replaced.startsWith("/")) return false;
    this._text.onEdit();
    return true;
  }

  private _isNewLine(data: string, keys: KeybindingsManager): boolean {
    return keys.matches(data, "tui.input.newLine") || data.startsWith("\n") ||
      // Older terminals send Shift+Enter and Alt+Enter in these forms.
      data === "\x1b[13;2~" || (data.includes("\x1b") && data.includes("\r"));
  }

  private _newLine(data: string, keys: KeybindingsManager): void {
    const submits = keys.getKeys("tui.input.submit");
    const swapped = submits.includes("shift+enter") || submits.includes("shift+return");
    const escaped = this._text.beforeCursor.endsWith("\\");
    if (swapped && escaped && !this.disableSubmit && matchesKey(data, "enter")) {
      this._removeCharacter(-1);
      this._submit();
      return;
    }
    this._beginEdit();
    this._text.newLine();
  }

  private _submit(): void {
    this._beginEdit();
    const text = this.getExpandedText().trim();
    this._firstRow = 0;
    this._text.clear();
    this.onSubmit?.(text);
  }

  private _up(): void {
    const rows = this._rows.layout(this._layoutWidth);
    const first = this._rows.current(rows) === 0;
    if (this._text.isEmpty || (first && this._historyIndex >= 0)) this._browse(1);
    else if (first) this._text.move("edge", -1);
    else this._vertical(-1);
  }

  private _down(): void {
    const rows = this._rows.layout(this._layoutWidth);
    const last = this._rows.current(rows) === rows.length - 1;
    if (last && this._historyIndex >= 0) this._browse(-1);
    else if (last) this._text.move("edge", 1);
    else this._vertical(1);
  }

  private _right(): void {
    const { line, col } = this._text;
    this._text.move("char", 1);
    const stuck = this._text.line === line && this._text.col === col;
    if (stuck) this._rows.keepColumn(this._layoutWidth);
  }

  private _page(direction: -1 | 1): void {
    this._vertical(direction * this._pageRows);
  }

  private _vertical(by: number): void {
    this._text.breakSequence();
    this._rows.move(by, this._layoutWidth);
  }
}
