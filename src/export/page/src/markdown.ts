// Markdown as elements. marked splits the text into tokens; each token becomes an element, so that
// HTML in a text stays text and a link leads to allowed addresses only.

import { getDefaults, Lexer, type Token, type Tokens } from "marked";
import { append, element } from "./dom.js";
import { highlight } from "./highlight.js";
import { fromAddress, picture } from "./pictures.js";

/** Longer texts are shown as they are. */
const MAX_LENGTH = 100_000;
/**
 * Limits the markup characters of a paragraph: marked examines them in pairs, which takes minutes
 * for many.
 */
const MAX_SIGNS = 1_000;
const SIGN = /[*_~`![<]|:\/\//g;
/** marked is also slow with these. */
const WIDE = /[ \t]{2000}/;
/** Limits nested quotations, which no author means to be this deep. */
const DEPTH = 60;

export function markdown(source: string): HTMLElement {
  const target = element("div", { class: "markdown" });
  try {
    if (source.length > MAX_LENGTH || WIDE.test(source)) throw new Error("too long");
    blocks(target, new Careful({ ...getDefaults(), gfm: true, breaks: true }).lex(source), 0);
  } catch {
    target.replaceChildren(element("pre", { class: "plain" }, source));
  }
  return target;
}

class Careful extends Lexer {
  override inlineTokens(source: string, tokens: Token[] = []): Token[] {
    if ((source.match(SIGN)?.length ?? 0) <= MAX_SIGNS) return super.inlineTokens(source, tokens);
    for (const line of source.split("\n")) {
      if (tokens.length > 0) tokens.push({ type: "br", raw: "\n" });
      tokens.push({ type: "escape", raw: line, text: line });
    }
    return tokens;
  }
}

function blocks(target: HTMLElement, tokens: Token[], depth: number): void {
  if (depth > DEPTH) throw new Error("too deep");
  for (const token of tokens) block(target, token, depth + 1);
}

function block(target: HTMLElement, token: Token, depth: number): void {
  switch (token.type) {
    case "space":
    case "def":
    case "checkbox":
      return;
    case "heading":
      // The page itself uses the headings above.
      return inline(into(target, `h${Math.min(token.depth + 2, 6)}` as "h3"), token, depth);
    case "paragraph":
      return inline(into(target, "p"), token, depth);
    case "text":
      return inline(target, token, depth);
    case "code":
      return code(target, token as Tokens.Code);
    case "blockquote":
      return blocks(into(target, "blockquote"), token.tokens ?? [], depth);
    case "hr":
      into(target, "hr");
      return;
    case "list":
      return listing(target, token as Tokens.List, depth);
    case "table":
      return table(target, token as Tokens.Table, depth);
    default:
      return append(target, token.raw);
  }
}

function into<K extends keyof HTMLElementTagNameMap>(target: HTMLElement, name: K): HTMLElementTagNameMap[K] {
  return target.appendChild(element(name));
}

function code(target: HTMLElement, token: Tokens.Code): void {
  const language = /^[\w+#.-]*/.exec(token.lang ?? "")?.[0].toLowerCase() ?? "";
  const inner = element("code");
  highlight(inner, token.text, language);
  target.appendChild(element("pre", { class: "code", "data-language": language || undefined }, inner));
}

function listing(target: HTMLElement, token: Tokens.List, depth: number): void {
  const made = into(target, token.ordered ? "ol" : "ul");
  if (token.ordered && token.start !== 1 && token.start !== "") made.setAttribute("start", String(token.start));
  for (const item of token.items) {
    const line = into(made, "li");
    if (item.task) {
      line.className = "task";
      append(line, element("input", { type: "checkbox", disabled: true, checked: item.checked === true }), " ");
    }
    blocks(line, item.tokens, depth);
  }
}

function table(target: HTMLElement, token: Tokens.Table, depth: number): void {
  const made = element("table");
  const row = (cells: Tokens.TableCell[], name: "th" | "td"): void => {
    const line = into(made, "tr");
    for (const cell of cells) {
      const made = into(line, name);
      if (cell.align) made.className = `align-${cell.align}`;
      inlines(made, cell.tokens, depth);
    }
  };
  row(token.header, "th");
  for (const cells of token.rows) row(cells, "td");
  target.appendChild(element("div", { class: "table" }, made));
}

function inline(target: HTMLElement, token: Token, depth: number): void {
  if ("tokens" in token && token.tokens) inlines(target, token.tokens, depth);
  else append(target, plain(token));
}

function inlines(target: HTMLElement, tokens: Token[], depth: number): void {
  if (depth > DEPTH) throw new Error("too deep");
  for (const token of tokens) {
    switch (token.type) {
      case "strong":
      case "em":
      case "del":
        inlines(into(target, token.type), token.tokens ?? [], depth + 1);
        break;
      case "codespan":
        append(into(target, "code"), token.text as string);
        break;
      case "br":
        into(target, "br");
        break;
      case "link":
        link(target, token as Tokens.Link, depth + 1);
        break;
      case "image":
        image(target, token as Tokens.Image);
        break;
      case "checkbox":
        break;
      case "escape":
        append(target, token.text as string);
        break;
      case "text":
        inline(target, token, depth + 1);
        break;
      default:
        append(target, token.raw);
    }
  }
}

/** The address, if a click may open it. */
function address(href: string): string | null {
  try {
    const { protocol } = new URL(href);
    return ["http:", "https:", "mailto:"].includes(protocol) ? href : null;
  } catch {
    // A relative path names a file of the project, which is not next to this page.
    return null;
  }
}

function link(target: HTMLElement, token: Tokens.Link, depth: number): void {
  const href = address(token.href);
  const attributes = href
    ? { href, target: "_blank", rel: "noopener noreferrer", title: token.title ?? href }
    : { class: "no-link", title: token.href };
  const made = target.appendChild(element(href ? "a" : "span", attributes));
  inlines(made, token.tokens, depth);
}

function image(target: HTMLElement, token: Tokens.Image): void {
  const inside = fromAddress(token.href);
  if (inside) {
    append(target, picture(inside, token.text || "picture"));
    return;
  }
  // Images from the network are not loaded by this page.
  const href = address(token.href);
  const label = token.text || token.href;
  const attributes = href ? { href, target: "_blank", rel: "noopener noreferrer" } : { class: "no-link" };
  append(target, element(href ? "a" : "span", { ...attributes, title: token.href }, `\u{1f5bc} ${label}`));
}

const ENTITY = /&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z][a-z\d]{1,31});/gi;
const decoder = document.createElement("textarea");

/** The text of a token with its entities decoded, which marked leaves to its HTML output. */
function plain(token: Token): string {
  const text = "text" in token ? String(token.text) : token.raw;
  return text.replace(ENTITY, (entity) => {
    decoder.innerHTML = entity;
    return decoder.value;
  });
}
