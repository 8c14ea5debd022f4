// Draws calls of grep, find and ls.
import type { Theme } from "pi:pi-coding-agent/theme/index.ts";
import {
  type Args,
  byteLimit,
  invalid,
  moreLines,
  type RenderContext,
  type RenderOptions,
  resultText,
  shortPath,
  textArgument,
  textRow,
  title,
  type ToolRenderers,
  type ToolResult,
  type Truncation,
} from "pi:pi-coding-agent/tools/rows/rendering.ts";

interface Details {
  matchLimitReached?: number;
  resultLimitReached?: number;
  entryLimitReached?: number;
  truncation?: Truncation;
  linesTruncated?: boolean;
}

function folder(args: Args, theme: Theme): string {
  const path = textArgument(args?.path);
  return path === undefined ? invalid(theme) : shortPath(path || ".");
}

/** Draws the lines of the result: the first `shown` ones, or all if the row is expanded. */
function result(shown: number, limit: (details: Details) => string | 0 | undefined) {
  return (result: ToolResult, options: RenderOptions, theme: Theme, context: RenderContext) => {
    const output = resultText(result, context.showImages).trim();
    const details = (result.details ?? {}) as Details;
    const lines = output ? output.split("\n") : [];
    const visible = options.expanded ? lines : lines.slice(0, shown);
    let text = visible.map((line) => `\n${theme.fg("toolOutput", line)}`).join("");
    const hidden = lines.length - visible.length;
    if (hidden > 0) text += moreLines(`${hidden} more lines`, theme);
    const limits = [
      limit(details),
      details.truncation?.truncated && byteLimit(details.truncation),
      details.linesTruncated && "some lines truncated",
    ].filter(Boolean);
    if (limits.length > 0) {
      text += `\n${theme.fg("warning", `[Truncated: ${limits.join(", ")}]`)}`;
    }
    return textRow(text, context);
  };
}

function call(format: (args: Args, theme: Theme) => string): ToolRenderers["renderCall"] {
  return (args, theme, context) => textRow(format(args as Args, theme), context);
}

export const grepRenderers: ToolRenderers = {
  renderCall: call((args, theme) => {
    const pattern = textArgument(args?.pattern);
    const glob = textArgument(args?.glob);
    const shown = pattern === undefined ? invalid(theme) : theme.fg("accent", `/${pattern}/`);
    const output = (text: string) => theme.fg("toolOutput", text);
    return `${title("grep", theme)} ${shown}${output(` in ${folder(args, theme)}`)}` +
      (glob ? output(` (${glob})`) : "") +
      (args?.limit === undefined ? "" : output(` limit ${args.limit}`));
  }),
  renderResult: result(15, ({ matchLimitReached: limit }) => limit && `${limit} matches limit`),
};

const limited = (args: Args, theme: Theme): string =>
  args?.limit === undefined ? "" : theme.fg("toolOutput", ` (limit ${args.limit})`);

export const findRenderers: ToolRenderers = {
  renderCall: call((args, theme) => {
    const pattern = textArgument(args?.pattern);
    const shown = pattern === undefined ? invalid(theme) : theme.fg("accent", pattern);
    const where = theme.fg("toolOutput", ` in ${folder(args, theme)}`);
    return `${title("find", theme)} ${shown}${where}${limited(args, theme)}`;
  }),
  renderResult: result(20, ({ resultLimitReached: limit }) => limit && `${limit} results limit`),
};

export const lsRenderers: ToolRenderers = {
  renderCall: call((args, theme) => {
    const path = textArgument(args?.path);
    const shown = path === undefined ? invalid(theme) : theme.fg("accent", folder(args, theme));
    return `${title("ls", theme)} ${shown}${limited(args, theme)}`;
  }),
  renderResult: result(20, ({ entryLimitReached: limit }) => limit && `${limit} entries limit`),
};
