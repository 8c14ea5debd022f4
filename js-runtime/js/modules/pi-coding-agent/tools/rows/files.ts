// Draws calls of read and write.
import { Container } from "pi:pi-tui/component.ts";
import { highlightCode } from "pi:pi-coding-agent/theme/highlight.ts";
import { getLanguageFromPath } from "pi:pi-coding-agent/theme/languages.ts";
import type { Theme } from "pi:pi-coding-agent/theme/index.ts";
import {
  type Args,
  byteLimit,
  filePath,
  moreLines,
  pathTitle,
  plainResultText,
  resultText,
  textArgument,
  textRow,
  title,
  type ToolRenderers,
  type Truncation,
} from "pi:pi-coding-agent/tools/rows/rendering.ts";
import { DEFAULT_MAX_LINES } from "pi:pi-coding-agent/tools/truncate.ts";

const SHOWN_LINES = 10;

/** The coloured lines of a file, without empty ones at its end. */
function fileLines(text: string, path: string | undefined, theme: Theme): string[] {
  const language = path ? getLanguageFromPath(path) : undefined;
  const source = text.replaceAll("\t", "   ");
  const lines = language ? highlightCode(source, language) : source.split("\n");
  const end = lines.findLastIndex((line) => line !== "") + 1;
  return lines
    .slice(0, end)
    .map((line) => (language ? line : theme.fg("toolOutput", line)));
}

export const readRenderers: ToolRenderers = {
  renderCall(rawArguments, theme, context) {
    const args = rawArguments as Args;
    let text = `${title("read", theme)} ${pathTitle(args, theme)}`;
    if (args?.offset !== undefined || args?.limit !== undefined) {
      const start = Number(args.offset ?? 1);
      const end = args.limit === undefined ? 0 : start + Number(args.limit) - 1;
      text += theme.fg("warning", `:${start}${end ? `-${end}` : ""}`);
    }
    return textRow(text, context);
  },
  renderResult(result, { expanded }, theme, context) {
    const output = resultText(result, context.showImages);
    const lines = fileLines(output, filePath(context.args as Args), theme);
    const shown = expanded ? lines : lines.slice(0, SHOWN_LINES);
    const hidden = lines.length - shown.length;
    const { truncation } = (result.details ?? {}) as { truncation?: Truncation };
    const text = `\n${shown.join("\n")}` +
      (hidden > 0 ? moreLines(`${hidden} more lines`, theme) : "") +
      (truncation?.truncated ? `\n${theme.fg("warning", truncationNote(truncation))}` : "");
    return textRow(text, context);
  },
};

function truncationNote(truncation: Truncation): string {
  const { firstLineExceedsLimit, truncatedBy, outputLines, totalLines, maxLines } = truncation;
  if (firstLineExceedsLimit) return `[First line exceeds ${byteLimit(truncation)}]`;
  if (truncatedBy !== "lines") {
    return `[Truncated: ${outputLines} lines shown (${byteLimit(truncation)})]`;
  }
  const limit = `${maxLines ?? DEFAULT_MAX_LINES} line limit`;
  return `[Truncated: showing ${outputLines} of ${totalLines} lines (${limit})]`;
}

export const writeRenderers: ToolRenderers = {
  renderCall(rawArguments, theme, context) {
    const args = rawArguments as Args;
    const content = textArgument(args?.content);
    let text = `${title("write", theme)} ${pathTitle(args, theme)}`;
    if (content === undefined) {
      text += `\n\n${theme.fg("error", "[invalid content arg - expected string]")}`;
    } else if (content) {
      const lines = fileLines(content.replaceAll("\r", ""), filePath(args), theme);
      const shown = context.expanded ? lines : lines.slice(0, SHOWN_LINES);
      const hidden = lines.length - shown.length;
      text += `\n\n${shown.join("\n")}`;
      if (hidden > 0) text += moreLines(`${hidden} more lines, ${lines.length} total`, theme);
    }
    return textRow(text, context);
  },
  renderResult(result, _options, theme, context) {
    const error = context.isError ? plainResultText(result) : "";
    return error ? textRow(`\n${theme.fg("error", error)}`, context) : new Container();
  },
};
