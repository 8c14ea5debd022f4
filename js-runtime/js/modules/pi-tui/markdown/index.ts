// Markdown in the colours of a theme. The program parses it; this draws the blocks.
import { textOps } from "pi:host.ts";
import { getCapabilities, hyperlink } from "pi:pi-tui/image/capabilities.ts";
import { isImageLine } from "pi:pi-tui/image/index.ts";
import { renderTable } from "pi:pi-tui/markdown/table.ts";
import { fillLine, rows, wrapTextWithAnsi } from "pi:pi-tui/text-metrics.ts";
import { LINES, WrappedText } from "pi:pi-tui/wrapped-text.ts";

type Paint = (text: string) => string;

export interface DefaultTextStyle {
  color?: Paint;
  bgColor?: Paint;
  bold?: boolean;
  italic?: boolean;
  strikethrough?: boolean;
  underline?: boolean;
}

export interface MarkdownTheme {
  heading: Paint;
  link: Paint;
  linkUrl: Paint;
  code: Paint;
  codeBlock: Paint;
  codeBlockBorder: Paint;
  quote: Paint;
  quoteBorder: Paint;
  hr: Paint;
  listBullet: Paint;
  bold: Paint;
  italic: Paint;
  strikethrough: Paint;
  underline: Paint;
  highlightCode?(code: string, lang?: string): string[];
  /** Written before each line of a code block; two spaces if it is not set. */
  codeBlockIndent?: string;
}

/** See ext/src/markdown.rs. */
export interface Token {
  type: string;
  text?: string;
  tokens?: Token[];
  depth?: number;
  lang?: string;
  href?: string;
  raw?: string;
  start?: number;
  checked?: boolean;
  rows?: Token[][];
}

/** The style of text without markup at the current position. */
export interface Style {
  paint: Paint;
  /** Switches that look on again, after something else ended it. */
  prefix: string;
}

const MAX_RULE = 80;
/** Quotations in deeper ones have no border of their own: each level is wrapped again. */
const MAX_QUOTES = 10;
/** Terminals' cyan: lines of lists that such a theme marked are indented already. */
const CYAN_ITEM = /^\s+\x1b\[36m[-\d]/;

/** The escape sequences that `paint` writes before a text. */
function prefixOf(paint: Paint): string {
  const painted = paint("\0");
  return painted.slice(0, Math.max(0, painted.indexOf("\0")));
}

export class Markdown extends WrappedText {
  private theme: MarkdownTheme;
  private defaultTextStyle?: DefaultTextStyle;

  constructor(
    text: string,
    paddingX: number,
    paddingY: number,
    theme: MarkdownTheme,
    defaultTextStyle?: DefaultTextStyle,
  ) {
    super(text, paddingX, paddingY);
    this.theme = theme;
    this.defaultTextStyle = defaultTextStyle;
  }

  [LINES](width: number): string[] {
    if (!this.text?.trim()) return [];
    const room = Math.max(1, width - 2 * this.paddingX);
    const source = this.text.replaceAll("\t", "   ");
    const tokens = JSON.parse(textOps().markdown(source)) as Token[];
    const blocks = new Blocks(this.theme, this._defaultStyle());
    const content = blocks.render(tokens, room)
      .flatMap((line) => (isImageLine(line) ? [line] : wrapTextWithAnsi(line, room)));
    const margin = " ".repeat(this.paddingX);
    const background = this.defaultTextStyle?.bgColor;
    const empty = rows(this.paddingY, fillLine("", width, background));
    const lines = content.map((line) =>
      isImageLine(line) ? line : fillLine(margin + line + margin, width, background)
    );
    return [...empty, ...lines, ...empty];
  }

  private _defaultStyle(): Style {
    const style = this.defaultTextStyle;
    if (!style) return { paint: (text) => text, prefix: "" };
    const { theme } = this;
    const paints = [
      style.color,
      style.bold && theme.bold,
      style.italic && theme.italic,
      style.strikethrough && theme.strikethrough,
      style.underline && theme.underline,
    ];
    const paint = (text: string) =>
      paints.reduce((painted: string, paint) => (paint ? paint(painted) : painted), text);
    return { paint, prefix: prefixOf(paint) };
  }
}

/** Draws the tokens of one text. */
class Blocks {
  private theme: MarkdownTheme;
  private defaultStyle: Style;
  /** The depth of nested quotations. */
  private quotes = 0;

  constructor(theme: MarkdownTheme, defaultStyle: Style) {
    this.theme = theme;
    this.defaultStyle = defaultStyle;
  }

  render(tokens: Token[], width: number, style = this.defaultStyle): string[] {
    return tokens.flatMap((token, i) => {
      const next = tokens[i + 1]?.type;
      const lines = this.block(token, width, style);
      // Blocks that no blank line of the source separates get one here.
      const joined = ["list", "space", "html", "text", "def"].includes(token.type) ||
        (token.type === "paragraph" && next === "list");
      return next && next !== "space" && !joined ? [...lines, ""] : lines;
    });
  }

  private block(token: Token, width: number, style: Style): string[] {
    const { theme } = this;
    const { tokens = [] } = token;
    switch (token.type) {
      case "heading":
        return [this.heading(token)];
      case "paragraph":
        return [this.inline(tokens, style)];
      case "code":
        return this.code(token);
      case "list":
        return this.list(token, 0, width, style);
      case "table":
        return renderTable(token, width, (tokens) => this.inline(tokens, style), theme.bold);
      case "blockquote":
        return this.quote(tokens, width);
      case "hr":
        return [theme.hr("\u2500".repeat(Math.min(width, MAX_RULE)))];
      case "html":
        return [this.defaultStyle.paint((token.raw ?? "").trim())];
      case "space":
        return [""];
      // The address of a link that is elsewhere.
      case "def":
        return [];
      default:
        return [this.inline([token], style)];
    }
  }

  private heading({ depth = 1, tokens = [] }: Token): string {
    const { theme } = this;
    const paint = (text: string) =>
      theme.heading(theme.bold(depth === 1 ? theme.underline(text) : text));
    const text = this.inline(tokens, { paint, prefix: prefixOf(paint) });
    return depth < 3 ? text : paint(`${"#".repeat(depth)} `) + text;
  }

  private code({ text = "", lang }: Token): string[] {
    const { theme } = this;
    const indent = theme.codeBlockIndent ?? "  ";
    const lines = theme.highlightCode
      ? theme.highlightCode(text, lang)
      : text.split("\n").map((line) => theme.codeBlock(line));
    return [
      theme.codeBlockBorder("```" + (lang ?? "")),
      ...lines.map((line) => indent + line),
      theme.codeBlockBorder("```"),
    ];
  }

  private quote(tokens: Token[], width: number): string[] {
    const { theme } = this;
    const room = width - 2;
    // Wrapped with its border, every line would become several, on every level.
    if (room < 1 || this.quotes >= MAX_QUOTES) return this.render(tokens, width);
    const paint = (text: string) => theme.quote(theme.italic(text));
    const prefix = prefixOf(paint);
    this.quotes += 1;
    const lines = this.render(tokens, room, { paint: (text) => text, prefix });
    this.quotes -= 1;
    while (lines.at(-1) === "") lines.pop();
    return lines.flatMap((line) => {
      const whole = paint(prefix ? line.replaceAll("\x1b[0m", `\x1b[0m${prefix}`) : line);
      return wrapTextWithAnsi(whole, room).map((row) => theme.quoteBorder("\u2502 ") + row);
    });
  }

  private list(list: Token, depth: number, width: number, style: Style): string[] {
    const indent = "  ".repeat(depth);
    return (list.tokens ?? []).flatMap((item, i) => {
      let bullet = list.start === undefined ? "- " : `${list.start + i}. `;
      if (item.checked !== undefined) bullet += item.checked ? "[x] " : "[ ] ";
      const marked = indent + this.theme.listBullet(bullet);
      const lines = this.item(item, depth, width, style);
      if (lines.length === 0) return [marked];
      return lines.map((line, at) => {
        if (CYAN_ITEM.test(line)) return line;
        return at === 0 ? marked + line : `${indent}  ${line}`;
      });
    });
  }

  private item({ tokens = [] }: Token, depth: number, width: number, style: Style): string[] {
    return tokens.flatMap((token) =>
      token.type === "list"
        ? this.list(token, depth + 1, width, style)
        : this.block(token, Math.max(1, width - 2 * (depth + 1)), style)
    );
  }

  /** Text with its marks; lines are separated by line feeds. */
  private inline(tokens: Token[], style: Style): string {
    let result = tokens.map((token) => this.mark(token, style)).join("");
    while (style.prefix && result.endsWith(style.prefix)) {
      result = result.slice(0, -style.prefix.length);
    }
    return result;
  }

  private mark(token: Token, style: Style): string {
    const { theme } = this;
    const plain = (text: string) => text.split("\n").map(style.paint).join("\n");
    const inner = () => this.inline(token.tokens ?? [], style);
    switch (token.type) {
      case "strong":
        return theme.bold(inner()) + style.prefix;
      case "em":
        return theme.italic(inner()) + style.prefix;
      case "del":
        return theme.strikethrough(inner()) + style.prefix;
      case "codespan":
        return theme.code(token.text ?? "") + style.prefix;
      case "link":
        return this.link(token, inner()) + style.prefix;
      case "br":
        return "\n";
      case "html":
        return plain(token.raw ?? "");
      default:
        return token.tokens ? inner() : plain(token.text ?? "");
    }
  }

  private link({ text, href = "" }: Token, inner: string): string {
    const { theme } = this;
    const styled = theme.link(theme.underline(inner));
    if (getCapabilities().hyperlinks) return hyperlink(styled, href);
    // The address is written out unless the text is the address.
    const same = text === href || text === href.replace(/^mailto:/, "");
    return same ? styled : styled + theme.linkUrl(` (${href})`);
  }
}
