// The editor with its completions, and Markdown.
import type { Component, Focusable, SelectListTheme } from "../pi-tui.js";
import type { TUI } from "./terminal.js";

type Paint = (text: string) => string;

export interface AutocompleteItem {
  value: string;
  label: string;
  description?: string;
}
export interface AutocompleteSuggestions {
  items: AutocompleteItem[];
  /** The part of it that has been typed. */
  prefix: string;
}
interface Completed {
  lines: string[];
  cursorLine: number;
  cursorCol: number;
}
export interface AutocompleteProvider {
  /** Characters that start a completion in newer versions; ignored. */
  triggerCharacters?: string[];
  getSuggestions(
    lines: string[],
    cursorLine: number,
    cursorCol: number,
    options: { signal: AbortSignal; force?: boolean },
  ): Promise<AutocompleteSuggestions | null>;
  applyCompletion(
    lines: string[],
    cursorLine: number,
    cursorCol: number,
    item: AutocompleteItem,
    prefix: string,
  ): Completed;
  /** `false`: Tab does not query files there. */
  shouldTriggerFileCompletion?(lines: string[], cursorLine: number, cursorCol: number): boolean;
}
export interface SlashCommand {
  name: string;
  description?: string;
  argumentHint?: string;
  getArgumentCompletions?(
    argumentPrefix: string,
  ): AutocompleteItem[] | null | Promise<AutocompleteItem[] | null>;
}
/** Completes commands and files. */
export class CombinedAutocompleteProvider implements AutocompleteProvider {
  constructor(commands?: (SlashCommand | AutocompleteItem)[], basePath?: string, fdPath?: string | null);
  getSuggestions(
    lines: string[],
    cursorLine: number,
    cursorCol: number,
    options: { signal: AbortSignal; force?: boolean },
  ): Promise<AutocompleteSuggestions | null>;
  applyCompletion(
    lines: string[],
    cursorLine: number,
    cursorCol: number,
    item: AutocompleteItem,
    prefix: string,
  ): Completed;
  shouldTriggerFileCompletion(lines: string[], cursorLine: number, cursorCol: number): boolean;
}

/** A component that may replace the editor (`ctx.ui.setEditorComponent`). */
export interface EditorComponent extends Component {
  getText(): string;
  setText(text: string): void;
  handleInput(data: string): void;
  onSubmit?: (text: string) => void;
  onChange?: (text: string) => void;
  addToHistory?(text: string): void;
  insertTextAtCursor?(text: string): void;
  /** The text with pasted texts in full. */
  getExpandedText?(): string;
  setAutocompleteProvider?(provider: AutocompleteProvider): void;
  borderColor?: Paint;
  setPaddingX?(padding: number): void;
  setAutocompleteMaxVisible?(maxVisible: number): void;
}
export interface EditorTheme {
  borderColor: Paint;
  selectList: SelectListTheme;
}
export interface EditorOptions {
  paddingX?: number;
  autocompleteMaxVisible?: number;
}
export class Editor implements EditorComponent, Focusable {
  focused: boolean;
  protected tui: TUI;
  borderColor: Paint;
  onSubmit?: (text: string) => void;
  onChange?: (text: string) => void;
  disableSubmit: boolean;
  constructor(tui: TUI, theme: EditorTheme, options?: EditorOptions);
  getText(): string;
  setText(text: string): void;
  getExpandedText(): string;
  getLines(): string[];
  getCursor(): { line: number; col: number };
  insertTextAtCursor(text: string): void;
  addToHistory(text: string): void;
  getPaddingX(): number;
  setPaddingX(padding: number): void;
  getAutocompleteMaxVisible(): number;
  setAutocompleteMaxVisible(maxVisible: number): void;
  setAutocompleteProvider(provider: AutocompleteProvider): void;
  isShowingAutocomplete(): boolean;
  handleInput(data: string): void;
  invalidate(): void;
  render(width: number): string[];
}

export interface DefaultTextStyle {
  color?: Paint;
  bgColor?: Paint;
  bold?: boolean;
  italic?: boolean;
  strikethrough?: boolean;
  underline?: boolean;
}
export type MarkdownTheme =
  & Record<
    | "heading" | "link" | "linkUrl" | "code" | "codeBlock" | "codeBlockBorder" | "quote" | "quoteBorder" | "hr"
    | "listBullet" | "bold" | "italic" | "strikethrough" | "underline",
    Paint
  >
  & { highlightCode?(code: string, lang?: string): string[]; codeBlockIndent?: string };
/** From newer versions, ignored. */
export interface MarkdownOptions {
  preserveOrderedListMarkers?: boolean;
  preserveBackslashEscapes?: boolean;
  renderLatex?: boolean;
  transform?(markdown: string, availableWidth: number): string;
}
export class Markdown implements Component {
  constructor(
    text: string,
    paddingX: number,
    paddingY: number,
    theme: MarkdownTheme,
    defaultTextStyle?: DefaultTextStyle,
    options?: MarkdownOptions,
  );
  setText(text: string): void;
  invalidate(): void;
  render(width: number): string[];
}

// Without this line every declaration would be exported.
export {};
