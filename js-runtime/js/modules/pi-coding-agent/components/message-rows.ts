// Messages of a conversation as the terminal shows them.
import { Box } from "pi:pi-tui/box.ts";
import { type Component, Container } from "pi:pi-tui/component.ts";
import { Markdown, type MarkdownTheme } from "pi:pi-tui/markdown/index.ts";
import { Spacer, Text } from "pi:pi-tui/text.ts";
import { keyText } from "pi:pi-coding-agent/key-hints.ts";
import { getMarkdownTheme } from "pi:pi-coding-agent/theme/components.ts";
import { type Theme, theme } from "pi:pi-coding-agent/theme/index.ts";

/** Shell integration: terminals jump from prompt to prompt by these sequences. */
const PROMPT_START = "\x1b]133;A\x07";
const PROMPT_END = "\x1b]133;B\x07\x1b]133;C\x07";

function asPrompt(lines: string[]): string[] {
  if (lines.length === 0) return lines;
  const marked = [...lines];
  marked[0] = PROMPT_START + marked[0];
  marked[marked.length - 1] = PROMPT_END + marked[marked.length - 1];
  return marked;
}

interface Content {
  type: string;
  text?: string;
  thinking?: string;
}

interface AssistantMessage {
  content: Content[];
  stopReason?: string;
  errorMessage?: string;
}

/** The provider's error for an aborted request; the user sees a text of ours instead. */
const ABORTED = "Request was aborted";

export class AssistantMessageComponent extends Container {
  private _content = new Container();
  private hideThinkingBlock: boolean;
  private markdownTheme: MarkdownTheme;
  private hiddenThinkingLabel: string;
  private outputPad: number;
  private _message: AssistantMessage | undefined;

  constructor(
    message?: AssistantMessage,
    hideThinkingBlock = false,
    markdownTheme: MarkdownTheme = getMarkdownTheme(),
    hiddenThinkingLabel = "Thinking...",
    outputPad = 1,
  ) {
    super();
    this.hideThinkingBlock = hideThinkingBlock;
    this.markdownTheme = markdownTheme;
    this.hiddenThinkingLabel = hiddenThinkingLabel;
    this.outputPad = outputPad;
    this.addChild(this._content);
    if (message) this.updateContent(message);
  }

  setHideThinkingBlock(hide: boolean): void {
    this.hideThinkingBlock = hide;
    this._refresh();
  }

  setHiddenThinkingLabel(label: string): void {
    this.hiddenThinkingLabel = label;
    this._refresh();
  }

  /** Columns on both sides; from newer versions, as in the other messages. */
  setOutputPad(columns: number): void {
    this.outputPad = columns;
    this._refresh();
  }

  override invalidate(): void {
    super.invalidate();
    this._refresh();
  }

  private _refresh(): void {
    if (this._message) this.updateContent(this._message);
  }

  private get hasToolCalls(): boolean {
    return this._message?.content.some(({ type }) => type === "toolCall") ?? false;
  }

  override render(width: number): string[] {
    const lines = super.render(width);
    // A response with calls continues below its tools.
    return this.hasToolCalls ? lines : asPrompt(lines);
  }

  updateContent(message: AssistantMessage): void {
    this._message = message;
    this._content.clear();
    const shown = message.content.filter((part) => textOf(part) !== "");
    if (shown.length > 0) this._content.addChild(new Spacer(1));
    shown.forEach((part, i) => {
      if (part.type === "text") {
        this._content.addChild(new Markdown(textOf(part), this.outputPad, 0, this.markdownTheme));
        return;
      }
      this._content.addChild(this._thinking(textOf(part)));
      if (i < shown.length - 1) this._content.addChild(new Spacer(1));
    });
    const error = this.hasToolCalls ? undefined : errorOf(message);
    if (error === undefined) return;
    this._content.addChild(new Spacer(1));
    this._content.addChild(new Text(theme.fg("error", error), this.outputPad, 0));
  }

  private _thinking(text: string): Component {
    if (this.hideThinkingBlock) {
      return new Text(theme.italic(theme.fg("thinkingText", this.hiddenThinkingLabel)), this.outputPad, 0);
    }
    const color = (text: string) => theme.fg("thinkingText", text);
    return new Markdown(text, this.outputPad, 0, this.markdownTheme, { color, italic: true });
  }
}

/** The readable text of a part of a message. */
function textOf({ type, text, thinking }: Content): string {
  const content = type === "text" ? text : type === "thinking" ? thinking : "";
  return (content ?? "").trim();
}

function errorOf({ stopReason, errorMessage }: AssistantMessage): string | undefined {
  if (stopReason === "error") return `Error: ${errorMessage || "Unknown error"}`;
  if (stopReason !== "aborted") return undefined;
  return errorMessage && errorMessage !== ABORTED ? errorMessage : "Operation aborted";
}

export class UserMessageComponent extends Container {
  private _show: (outputPad: number) => void;

  constructor(text: string, markdownTheme: MarkdownTheme = getMarkdownTheme(), outputPad = 1) {
    super();
    this._show = (outputPad) => {
      const box = new Box(outputPad, 1, (text) => theme.bg("userMessageBg", text));
      const color = (text: string) => theme.fg("userMessageText", text);
      box.addChild(new Markdown(text, 0, 0, markdownTheme, { color }));
      this.children = [box];
    };
    this._show(outputPad);
  }

  setOutputPad(columns: number): void {
    this._show(columns);
  }

  override render(width: number): string[] {
    return asPrompt(super.render(width));
  }
}

const customBackground = (text: string) => theme.bg("customMessageBg", text);
const customColor = (text: string) => theme.fg("customMessageText", text);

/** "[branch]", in bold. */
function label(name: string, space = ""): string {
  return theme.fg("customMessageLabel", `\x1b[1m[${name}]\x1b[22m${space}`);
}

interface CustomMessage {
  customType: string;
  content: string | Content[];
  display?: boolean;
  details?: unknown;
}

export type MessageRenderer = (
  message: CustomMessage,
  options: { expanded: boolean; outputPad?: number },
  theme: Theme,
) => Component | undefined;

/** A message of an extension, drawn by its renderer if it has one. */
export class CustomMessageComponent extends Container {
  private message: CustomMessage;
  private customRenderer?: MessageRenderer;
  private markdownTheme: MarkdownTheme;
  private _expanded = false;
  private outputPad: number;

  constructor(
    message: CustomMessage,
    customRenderer?: MessageRenderer,
    markdownTheme: MarkdownTheme = getMarkdownTheme(),
    outputPad = 1,
  ) {
    super();
    this.outputPad = outputPad;
    this.message = message;
    this.customRenderer = customRenderer;
    this.markdownTheme = markdownTheme;
    this.rebuild();
  }

  setExpanded(expanded: boolean): void {
    if (this._expanded === expanded) return;
    this._expanded = expanded;
    this.rebuild();
  }

  /** Sets the padding for the renderer; content without a renderer has a box of its own. */
  setOutputPad(columns: number): void {
    this.outputPad = columns;
    this.rebuild();
  }

  override invalidate(): void {
    super.invalidate();
    this.rebuild();
  }

  private rebuild(): void {
    this.children = [new Spacer(1), this._custom() ?? this._plain()];
  }

  private _custom(): Component | undefined {
    try {
      return this.customRenderer?.(this.message, { expanded: this._expanded, outputPad: this.outputPad }, theme);
    } catch {
      // The message must stay visible even if its renderer fails.
      return undefined;
    }
  }

  private _plain(): Component {
    const { content, customType } = this.message;
    const text = typeof content === "string"
      ? content
      : content.filter(({ type }) => type === "text").map(({ text }) => text).join("\n");
    const box = new Box(1, 1, customBackground);
    box.addChild(new Text(label(customType), 0, 0));
    box.addChild(new Spacer(1));
    box.addChild(new Markdown(text, 0, 0, this.markdownTheme, { color: customColor }));
    return box;
  }
}

// Symbols cannot clash with names in subclasses of extensions.
const REBUILD = Symbol("rebuild");
const OPEN = Symbol("open");
const FOLDED = Symbol("folded");

function titled(title: string, text: string, markdownTheme: MarkdownTheme): Component {
  return new Markdown(`**${title}**\n\n${text}`, 0, 0, markdownTheme, { color: customColor });
}

/** "what (ctrl+o to expand)" */
function hint(what: string): Component {
  const key = theme.fg("dim", keyText("app.tools.expand"));
  return new Text(`${customColor(`${what} (`)}${key}${customColor(" to expand)")}`, 0, 0);
}

/** A box with a title that expands into a text. */
abstract class FoldedMessage extends Box {
  protected markdownTheme: MarkdownTheme;
  private expanded = false;

  constructor(markdownTheme: MarkdownTheme) {
    super(1, 1, customBackground);
    this.markdownTheme = markdownTheme;
  }

  setExpanded(expanded: boolean): void {
    this.expanded = expanded;
    this[REBUILD]();
  }

  override invalidate(): void {
    super.invalidate();
    this[REBUILD]();
  }

  [REBUILD](): void {
    this.children = this.expanded ? this[OPEN]() : this[FOLDED]();
  }

  abstract [OPEN](): Component[];
  abstract [FOLDED](): Component[];
}

export class BranchSummaryMessageComponent extends FoldedMessage {
  private message: { summary: string };

  constructor(message: { summary: string }, markdownTheme: MarkdownTheme = getMarkdownTheme()) {
    super(markdownTheme);
    this.message = message;
    this[REBUILD]();
  }

  [OPEN](): Component[] {
    const body = titled("Branch Summary", this.message.summary, this.markdownTheme);
    return [new Text(label("branch"), 0, 0), new Spacer(1), body];
  }

  [FOLDED](): Component[] {
    return [new Text(label("branch"), 0, 0), new Spacer(1), hint("Branch summary")];
  }
}

export class CompactionSummaryMessageComponent extends FoldedMessage {
  private message: { summary: string; tokensBefore: number };

  constructor(
    message: { summary: string; tokensBefore: number },
    markdownTheme: MarkdownTheme = getMarkdownTheme(),
  ) {
    super(markdownTheme);
    this.message = message;
    this[REBUILD]();
  }

  private get _title(): string {
    return `Compacted from ${this.message.tokensBefore.toLocaleString()} tokens`;
  }

  [OPEN](): Component[] {
    const body = titled(this._title, this.message.summary, this.markdownTheme);
    return [new Text(label("compaction"), 0, 0), new Spacer(1), body];
  }

  [FOLDED](): Component[] {
    return [new Text(label("compaction"), 0, 0), new Spacer(1), hint(this._title)];
  }
}

export interface SkillBlock {
  name: string;
  location?: string;
  content: string;
  userMessage?: string;
}

export class SkillInvocationMessageComponent extends FoldedMessage {
  private skillBlock: SkillBlock;

  constructor(skillBlock: SkillBlock, markdownTheme: MarkdownTheme = getMarkdownTheme()) {
    super(markdownTheme);
    this.skillBlock = skillBlock;
    this[REBUILD]();
  }

  [OPEN](): Component[] {
    const { name, content } = this.skillBlock;
    return [new Text(label("skill"), 0, 0), titled(name, content, this.markdownTheme)];
  }

  [FOLDED](): Component[] {
    const hint = theme.fg("dim", ` (${keyText("app.tools.expand")} to expand)`);
    return [new Text(label("skill", " ") + customColor(this.skillBlock.name) + hint, 0, 0)];
  }
}
