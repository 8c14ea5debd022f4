// Draws source code and diffs in the colours of the theme. The program finds tokens and changes;
// this module colours them.
import { textOps } from "pi:host.ts";
import { theme } from "pi:pi-coding-agent/theme/index.ts";

/** Colours by the program's name for a kind of code. */
const TOKEN_COLORS: Readonly<Record<string, string>> = {
  keyword: "syntaxKeyword",
  built_in: "syntaxType",
  type: "syntaxType",
  literal: "syntaxNumber",
  number: "syntaxNumber",
  string: "syntaxString",
  comment: "syntaxComment",
  title: "syntaxFunction",
  attr: "syntaxVariable",
  params: "syntaxVariable",
  addition: "toolDiffAdded",
  deletion: "toolDiffRemoved",
};

type Span = [kind: string, text: string];

function paint([kind, text]: Span): string {
  const color = TOKEN_COLORS[kind];
  // Blank text has no colour, and occurs at the end of many lines.
  return color && text.trim() ? theme.fg(color, text) : text;
}

/** The lines of `code`, without colours if the language is unknown. */
export function highlightCode(code: string, lang?: string): string[] {
  const lines = lang ? (JSON.parse(textOps().highlight(code, lang)) as Span[][] | null) : null;
  if (!lines) return code.split("\n").map((line) => theme.fg("mdCodeBlock", line));
  return lines.map((spans) => spans.map(paint).join(""));
}

/** "+12 text", "-12 text" or " 12 text". */
const DIFF_LINE = /^([+\-\s])(\s*\d*)\s(.*)$/;

interface DiffLine {
  sign: string;
  number: string;
  text: string;
}

function parse(line: string): DiffLine | undefined {
  const match = DIFF_LINE.exec(line);
  if (!match) return undefined;
  return { sign: match[1], number: match[2], text: match[3].replaceAll("\t", "   ") };
}

const SIGN_COLORS: Readonly<Record<string, string>> = {
  "+": "toolDiffAdded",
  "-": "toolDiffRemoved",
};

function paintLine({ sign, number, text }: DiffLine): string {
  const color = SIGN_COLORS[sign];
  return theme.fg(color ?? "toolDiffContext", `${color ? sign : " "}${number} ${text}`);
}

/** Marks the words that occur in only one of two lines. */
function markWords(removed: DiffLine, added: DiffLine): [DiffLine, DiffLine] {
  const parts = textOps().diffWords(removed.text, added.text);
  const side = (own: number) => {
    let first = true;
    return parts
      .filter(([change]) => change === 0 || change === own)
      .map(([change, text]) => {
        if (change === 0) return text;
        // The indentation is not marked.
        const [, indent, rest] = /^(\s*)([^]*)$/.exec(text) as RegExpExecArray;
        const lead = first ? indent : "";
        first = false;
        const marked = lead ? rest : text;
        return marked ? lead + theme.inverse(marked) : lead;
      })
      .join("");
  };
  return [{ ...removed, text: side(-1) }, { ...added, text: side(1) }];
}

/** The number of lines from `at` on that have the sign. */
function runLength(lines: (DiffLine | undefined)[], at: number, sign: string): number {
  let length = 0;
  while (lines[at + length]?.sign === sign) length += 1;
  return length;
}

/** Colours a diff of the edit tool. */
export function renderDiff(diffText: string, _options: { filePath?: string } = {}): string {
  const raw = diffText.split("\n");
  const lines = raw.map(parse);
  const painted: string[] = [];
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    if (!line) {
      painted.push(theme.fg("toolDiffContext", raw[at]));
      continue;
    }
    const next = lines[at + 1];
    // One removed line followed by one added line is a change within the line.
    const alone = line.sign === "-" && lines[at - 1]?.sign !== "-" && next?.sign === "+" &&
      runLength(lines, at + 1, "+") === 1;
    if (alone && next) {
      painted.push(...markWords(line, next).map(paintLine));
      at += 1;
    } else painted.push(paintLine(line));
  }
  return painted.join("\n");
}
