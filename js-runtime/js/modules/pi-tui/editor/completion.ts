// Suggestions while text is typed: queries the provider, drops late results, and shows the list.
import type { EditorText } from "pi:pi-tui/editor/text.ts";
import { type SelectItem, SelectList, type SelectListTheme } from "pi:pi-tui/select-list.ts";

export type AutocompleteItem = SelectItem;

export interface AutocompleteSuggestions {
  items: AutocompleteItem[];
  /** The text before the cursor that a suggestion replaces. */
  prefix: string;
}

export interface AutocompleteProvider {
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
  ): { lines: string[]; cursorLine: number; cursorCol: number };
  shouldTriggerFileCompletion?(lines: string[], cursorLine: number, cursorCol: number): boolean;
}

interface Request {
  /** Whether files are searched whatever the text is. */
  force: boolean;
  /** The user pressed Tab: a single suggestion is accepted at once. */
  byTab: boolean;
}

/** Files are searched by a separate program, so not for every letter. */
const FILE_DELAY_MILLISECONDS = 20;
const FILE = /(?:^|[ \t])@(?:"[^"]*|[^\s]*)$/;
const FILE_WORD = /(?:^|\s)@\S*$/;
const COMMAND_LAYOUT = { minPrimaryColumnWidth: 12, maxPrimaryColumnWidth: 32 };

export class EditorCompletion {
  provider?: AutocompleteProvider;
  maxVisible: number;
  private text: EditorText;
  private theme: SelectListTheme;
  private requestRender: () => void;
  private shown?: { list: SelectList; prefix: string; force: boolean };
  private timer?: ReturnType<typeof setTimeout>;
  private controller?: AbortController;
  /** Runs the queries of providers one after the other. */
  private queue: Promise<void> = Promise.resolve();

  constructor(
    text: EditorText,
    theme: SelectListTheme,
    maxVisible: number,
    requestRender: () => void,
  ) {
    this.text = text;
    this.theme = theme;
    this.maxVisible = maxVisible;
    this.requestRender = requestRender;
  }

  get isShown(): boolean {
    return this.shown !== undefined;
  }

  /** Slash commands exist on the first line only. */
  private get inCommand(): boolean {
    return this.text.line === 0 && this.text.beforeCursor.trimStart().startsWith("/");
  }

  render(width: number): string[] {
    return this.shown?.list.render(width) ?? [];
  }

  moveSelection(data: string): void {
    this.shown?.list.handleInput(data);
  }

  cancel(): void {
    this.abort();
    this.shown = undefined;
  }

  private abort(): void {
    clearTimeout(this.timer);
    this.controller?.abort();
    this.controller = undefined;
  }

  /** Accepts the selected suggestion; returns the text that it replaced. */
  accept(): string | undefined {
    const item = this.shown?.list.getSelectedItem();
    if (!this.shown || !item || !this.provider) return undefined;
    const { prefix } = this.shown;
    this.apply(item, prefix);
    this.cancel();
    return prefix;
  }

  private apply(item: AutocompleteItem, prefix: string): void {
    const { lines, line, col } = this.text;
    const result = this.provider?.applyCompletion(lines, line, col, item, prefix);
    if (!result) return;
    this.text.complete({ lines: result.lines, line: result.cursorLine, col: result.cursorCol });
  }

  /** Called after `typed` was typed. */
  afterTyping(typed: string): void {
    if (this.shown) {
      this.request({ force: this.shown.force, byTab: false });
      return;
    }
    const before = this.text.beforeCursor;
    const starts = typed === "/"
      ? this.text.line === 0 && ["", "/"].includes(before.trim())
      : typed === "@"
      ? /(?:^|[ \t])@$/.test(before)
      : /[a-zA-Z0-9.\-_]/.test(typed) && (this.inCommand || FILE_WORD.test(before));
    if (starts) this.request({ force: false, byTab: false });
  }

  afterDeleting(): void {
    if (this.shown) this.request({ force: this.shown.force, byTab: false });
    else if (this.inCommand || FILE_WORD.test(this.text.beforeCursor)) {
      this.request({ force: false, byTab: false });
    }
  }

  tab(): void {
    const command = this.inCommand && !this.text.beforeCursor.trimStart().includes(" ");
    this.request({ force: !command, byTab: true });
  }

  private request(request: Request): void {
    const { provider } = this;
    if (!provider) return;
    const { lines, line, col } = this.text;
    if (request.force && provider.shouldTriggerFileCompletion?.(lines, line, col) === false) return;
    this.abort();
    const controller = new AbortController();
    this.controller = controller;
    const start = () => {
      this.queue = this.queue.then(() => this.query(request, controller.signal));
    };
    const slow = !request.byTab && !request.force && FILE.test(this.text.beforeCursor);
    if (slow) this.timer = setTimeout(start, FILE_DELAY_MILLISECONDS);
    else start();
  }

  private async query(request: Request, signal: AbortSignal): Promise<void> {
    if (signal.aborted || !this.provider) return;
    const { text, lines, line, col } = this.text;
    let suggestions: AutocompleteSuggestions | null;
    try {
      suggestions = await this.provider.getSuggestions(lines, line, col, {
        signal,
        force: request.force,
      });
    } catch {
      // A provider that fails has no suggestions; typing continues.
      suggestions = null;
    }
    const now = this.text;
    if (signal.aborted || now.text !== text || now.line !== line || now.col !== col) return;
    if (!Array.isArray(suggestions?.items) || suggestions.items.length === 0) this.cancel();
    else if (request.force && request.byTab && suggestions.items.length === 1) {
      this.apply(suggestions.items[0], suggestions.prefix);
      this.text.onEdit();
    } else this.show(suggestions, request.force);
    this.requestRender();
  }

  private show({ items, prefix }: AutocompleteSuggestions, force: boolean): void {
    const layout = prefix.startsWith("/") ? COMMAND_LAYOUT : undefined;
    const list = new SelectList(items, this.maxVisible, this.theme, layout);
    const exact = items.findIndex(({ value }) => value === prefix);
    const begins = items.findIndex(({ value }) => value.startsWith(prefix));
    if (prefix) list.setSelectedIndex(Math.max(0, exact >= 0 ? exact : begins));
    this.shown = { list, prefix, force };
  }
}
