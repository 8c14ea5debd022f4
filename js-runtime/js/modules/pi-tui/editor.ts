// The editor for prompts: several lines, wrapped by words, with history, pastes and
// suggestions.
import { type Component, CURSOR_MARKER, type Focusable } from "pi:pi-tui/component.ts";
import { type AutocompleteProvider, EditorCompletion } from "pi:pi-tui/editor-completion.ts";
import { EditorRows } from "pi:pi-tui/editor-rows.ts";
import { EditorText } from "pi:pi-tui/editor-text.ts";
import { getKeybindings, type KeybindingsManager } from "pi:pi-tui/keybindings.ts";
import { decodeKittyPrintable, matchesKey } from "pi:pi-tui/keys.ts";
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

/** What the editor needs of the terminal it is on. */
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

function whole(value: number | undefined, otherwise: number, least: number, most: number): number {
  if (!Number.isFinite(value)) return otherwise;
  return Math.min(most, Math.max(least, Math.floor(value as number)));
}

const padding = (value: number | undefined) => whole(value, 0, 0, Infinity);
const visibleItems = (value: number | undefined) => whole(value, 5, 3, 20);

// Real private members, since extensions derive editors of their own with any names.
export class Editor implements Component, Focusable {
  focused = false;
  borderColor: Paint;
  onSubmit?: (text: string) => void;
  onChange?: (text: string) => void;
  disableSubmit = false;
  protected tui: EditorTui;
  #text = new EditorText();
  #rows = new EditorRows(this.#text);
  #completion: EditorCompletion;
  #paddingX: number;
  /** Of the last rendering: moving up and down depends on it. */
  #layoutWidth = 80;
  #firstRow = 0;
  /** The newest first. */
  #history: string[] = [];
  /** The entry that is shown, -1 for the user's own text. */
  #historyIndex = -1;
  /** What came of a paste whose end is still to come. */
  #pasted: string | undefined;
  /** The next key is the character to jump to. */
  #jump: -1 | 1 | undefined;

  constructor(tui: EditorTui, theme: EditorTheme, options: EditorOptions = {}) {
    this.tui = tui;
    this.borderColor = theme.borderColor;
    this.#paddingX = padding(options.paddingX);
    this.#completion = new EditorCompletion(
      this.#text,
      theme.selectList,
      visibleItems(options.autocompleteMaxVisible),
      () => this.tui.requestRender(),
    );
    this.#text.onEdit = () => this.onChange?.(this.getText());
    this.#text.onPlace = () => this.#rows.forget();
  }

  getPaddingX(): number {
    return this.#paddingX;
  }

  setPaddingX(value: number): void {
    if (padding(value) === this.#paddingX) return;
    this.#paddingX = padding(value);
    this.tui.requestRender();
  }

  getAutocompleteMaxVisible(): number {
    return this.#completion.maxVisible;
  }

  setAutocompleteMaxVisible(value: number): void {
    if (visibleItems(value) === this.#completion.maxVisible) return;
    this.#completion.maxVisible = visibleItems(value);
    this.tui.requestRender();
  }

  setAutocompleteProvider(provider: AutocompleteProvider): void {
    this.#completion.cancel();
    this.#completion.provider = provider;
  }

  isShowingAutocomplete(): boolean {
    return this.#completion.isShown;
  }

  getText(): string {
    return this.#text.text;
  }

  /** With the pastes that markers stand for. */
  getExpandedText(): string {
    return this.#text.expandedText;
  }

  getLines(): string[] {
    return [...this.#text.lines];
  }

  getCursor(): { line: number; col: number } {
    return { line: this.#text.line, col: this.#text.col };
  }

  setText(text: string): void {
    this.#beginEdit();
    this.#firstRow = 0;
    this.#text.setText(text);
  }

  insertTextAtCursor(text: string): void {
    if (!text) return;
    this.#beginEdit();
    this.#text.insert(text);
  }

  /** The text is no longer one of the history, and suggestions for it are void. */
  #beginEdit(): void {
    this.#completion.cancel();
    this.#historyIndex = -1;
  }

  addToHistory(text: string): void {
    const trimmed = text.trim();
    if (!trimmed || this.#history[0] === trimmed) return;
    this.#history = [trimmed, ...this.#history].slice(0, MAX_HISTORY);
  }

  #browse(by: 1 | -1): void {
    this.#text.breakSequence();
    const index = this.#historyIndex + by;
    if (index < -1 || index >= this.#history.length) return;
    if (this.#historyIndex < 0) this.#text.startBrowsing();
    this.#historyIndex = index;
    this.#firstRow = 0;
    this.#text.replaceAll(this.#history[index] ?? "");
  }

  invalidate(): void {
    // Nothing is kept between renderings.
  }

  get #pageRows(): number {
    return Math.max(5, Math.floor(this.tui.terminal.rows * 0.3));
  }

  render(width: number): string[] {
    const paddingX = Math.min(this.#paddingX, Math.max(0, Math.floor((width - 1) / 2)));
    const room = Math.max(1, width - 2 * paddingX);
    // The cursor behind the last character takes a column, of the padding if there is one.
    this.#layoutWidth = Math.max(1, room - (paddingX > 0 ? 0 : 1));
    const rows = this.#rows.layout(this.#layoutWidth);
    const current = this.#rows.current(rows);
    const size = this.#pageRows;
    this.#firstRow = Math.min(this.#firstRow, current, Math.max(0, rows.length - size));
    this.#firstRow = Math.max(this.#firstRow, current - size + 1);
    const end = Math.min(this.#firstRow + size, rows.length);
    const margin = " ".repeat(paddingX);

    const lines = [this.#border(width, "\u2191", this.#firstRow)];
    for (let i = this.#firstRow; i < end; i++) {
      const { line, start, end: rowEnd } = rows[i];
      const text = this.#text.lines[line].slice(start, rowEnd);
      const shown = i === current ? this.#withCursor(text, this.#text.col - start) : text;
      const free = room + paddingX - visibleWidth(shown);
      lines.push(margin + shown + " ".repeat(Math.max(0, free)));
    }
    lines.push(this.#border(width, "\u2193", rows.length - end));
    for (const line of this.#completion.render(room)) {
      lines.push(margin + line + " ".repeat(Math.max(0, room - visibleWidth(line))) + margin);
    }
    return lines;
  }

  /** A horizontal line that says how many rows are hidden behind it. */
  #border(width: number, arrow: string, hidden: number): string {
    const text = hidden > 0 ? `${LINE.repeat(3)} ${arrow} ${hidden} more ` : "";
    const free = width - visibleWidth(text);
    if (!text) return this.borderColor(LINE).repeat(Math.max(0, free));
    return this.borderColor(free < 0 ? truncateToWidth(text, width) : text + LINE.repeat(free));
  }

  #withCursor(text: string, at: number): string {
    // While suggestions are shown, an input method must not cover them.
    const marker = this.focused && !this.#completion.isShown ? CURSOR_MARKER : "";
    const [under] = this.#text.segments(text.slice(at));
    const shown = under?.text ?? " ";
    return `${text.slice(0, at)}${marker}\x1b[7m${shown}\x1b[0m${text.slice(at + shown.length)}`;
  }

  handleInput(data: string): void {
    const keys = getKeybindings();
    if (this.#jump !== undefined && this.#jumpTo(data, keys)) return;
    if (this.#takePaste(data)) return;
    if (keys.matches(data, "tui.input.copy")) return;
    if (keys.matches(data, "tui.editor.undo")) {
      this.#historyIndex = -1;
      this.#text.undo();
      return;
    }
    if (this.#completion.isShown && this.#handleSuggestions(data, keys)) return;
    if (keys.matches(data, "tui.input.tab") && !this.#completion.isShown) {
      this.#completion.tab();
      return;
    }
    const edit = EDITS.find(([binding]) => keys.matches(data, binding));
    if (edit) {
      this.#historyIndex = -1;
      edit[1](this.#text);
      return;
    }
    if (keys.matches(data, "tui.editor.deleteCharBackward") || matchesKey(data, "shift+backspace")) {
      this.#removeCharacter(-1);
      return;
    }
    if (keys.matches(data, "tui.editor.deleteCharForward") || matchesKey(data, "shift+delete")) {
      this.#removeCharacter(1);
      return;
    }
    const move = YANKS_AND_MOVES.find(([binding]) => keys.matches(data, binding));
    if (move) {
      if (/yank/.test(move[0])) this.#historyIndex = -1;
      move[1](this.#text);
      return;
    }
    this.#handleEnterAndArrows(data, keys);
  }

  #handleEnterAndArrows(data: string, keys: KeybindingsManager): void {
    if (this.#isNewLine(data, keys)) {
      this.#newLine(data, keys);
    } else if (keys.matches(data, "tui.input.submit")) {
      if (this.disableSubmit) return;
      // For terminals that cannot tell Shift+Enter from Enter.
      if (this.#text.beforeCursor.endsWith("\\")) {
        this.#removeCharacter(-1);
        this.#newLine("", keys);
      } else this.#submit();
    } else if (keys.matches(data, "tui.editor.cursorUp")) this.#up();
    else if (keys.matches(data, "tui.editor.cursorDown")) this.#down();
    else if (keys.matches(data, "tui.editor.cursorRight")) this.#right();
    else if (keys.matches(data, "tui.editor.cursorLeft")) this.#text.move("char", -1);
    else if (keys.matches(data, "tui.editor.pageUp")) this.#page(-1);
    else if (keys.matches(data, "tui.editor.pageDown")) this.#page(1);
    else if (keys.matches(data, "tui.editor.jumpForward")) this.#jump = 1;
    else if (keys.matches(data, "tui.editor.jumpBackward")) this.#jump = -1;
    else if (matchesKey(data, "shift+space")) this.#type(" ");
    else {
      const text = decodeKittyPrintable(data) ?? data;
      // Control characters and sequences that nobody bound are not text.
      if (text.charCodeAt(0) >= 32) this.#type(text);
    }
  }

  #type(text: string): void {
    this.#historyIndex = -1;
    this.#text.type(text);
    this.#completion.afterTyping(text);
  }

  #removeCharacter(direction: -1 | 1): void {
    this.#historyIndex = -1;
    this.#text.remove(direction);
    this.#completion.afterDeleting();
  }

  /** Returns whether the key was the character to jump to, or ended the jump. */
  #jumpTo(data: string, keys: KeybindingsManager): boolean {
    const direction = this.#jump ?? 1;
    this.#jump = undefined;
    if (keys.matches(data, "tui.editor.jumpForward")) return true;
    if (keys.matches(data, "tui.editor.jumpBackward")) return true;
    if (!(data.charCodeAt(0) >= 32)) return false;
    this.#text.jumpTo(data, direction);
    return true;
  }

  /** Returns whether the data belongs to a bracketed paste. */
  #takePaste(data: string): boolean {
    if (data.includes(PASTE_START)) {
      this.#pasted = "";
      data = data.replace(PASTE_START, "");
    }
    if (this.#pasted === undefined) return false;
    this.#pasted += data;
    const end = this.#pasted.indexOf(PASTE_END);
    if (end < 0) return true;
    const text = this.#pasted.slice(0, end);
    const rest = this.#pasted.slice(end + PASTE_END.length);
    this.#pasted = undefined;
    if (text) {
      this.#beginEdit();
      this.#text.paste(text);
    }
    if (rest) this.handleInput(rest);
    return true;
  }

  /** Returns whether the key was for the list of suggestions alone. */
  #handleSuggestions(data: string, keys: KeybindingsManager): boolean {
    if (keys.matches(data, "tui.select.cancel")) {
      this.#completion.cancel();
      return true;
    }
    if (keys.matches(data, "tui.select.up") || keys.matches(data, "tui.select.down")) {
      this.#completion.moveSelection(data);
      return true;
    }
    if (keys.matches(data, "tui.input.tab")) {
      if (this.#completion.accept() !== undefined) this.#text.onEdit();
      return true;
    }
    if (!keys.matches(data, "tui.select.confirm")) return false;
    const replaced = this.#completion.accept();
    // A command is submitted with the same key.
    if (replaced === undefined || replaced.startsWith("/")) return false;
    this.#text.onEdit();
    return true;
  }

  #isNewLine(data: string, keys: KeybindingsManager): boolean {
    return keys.matches(data, "tui.input.newLine") || data.startsWith("\n") ||
      // Shift+Enter and Alt+Enter of older terminals, whatever their form.
      data === "\x1b[13;2~" || (data.includes("\x1b") && data.includes("\r"));
  }

  #newLine(data: string, keys: KeybindingsManager): void {
    const submits = keys.getKeys("tui.input.submit");
    const swapped = submits.includes("shift+enter") || submits.includes("shift+return");
    const escaped = this.#text.beforeCursor.endsWith("\\");
    if (swapped && escaped && !this.disableSubmit && matchesKey(data, "enter")) {
      this.#removeCharacter(-1);
      this.#submit();
      return;
    }
    this.#beginEdit();
    this.#text.newLine();
  }

  #submit(): void {
    this.#beginEdit();
    const text = this.getExpandedText().trim();
    this.#firstRow = 0;
    this.#text.clear();
    this.onSubmit?.(text);
  }

  #up(): void {
    const rows = this.#rows.layout(this.#layoutWidth);
    const first = this.#rows.current(rows) === 0;
    if (this.#text.isEmpty || (first && this.#historyIndex >= 0)) this.#browse(1);
    else if (first) this.#text.move("edge", -1);
    else this.#vertical(-1);
  }

  #down(): void {
    const rows = this.#rows.layout(this.#layoutWidth);
    const last = this.#rows.current(rows) === rows.length - 1;
    if (last && this.#historyIndex >= 0) this.#browse(-1);
    else if (last) this.#text.move("edge", 1);
    else this.#vertical(1);
  }

  #right(): void {
    const { line, col } = this.#text;
    this.#text.move("char", 1);
    const stuck = this.#text.line === line && this.#text.col === col;
    if (stuck) this.#rows.keepColumn(this.#layoutWidth);
  }

  #page(direction: -1 | 1): void {
    this.#vertical(direction * this.#pageRows);
  }

  #vertical(by: number): void {
    this.#text.breakSequence();
    this.#rows.move(by, this.#layoutWidth);
  }
}
