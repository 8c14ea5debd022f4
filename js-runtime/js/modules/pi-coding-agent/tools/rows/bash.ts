// Draws calls of bash: the command, the end of its output, and its duration.
import { Container } from "pi:pi-tui/component.ts";
import { Text } from "pi:pi-tui/text.ts";
import { truncateToWidth } from "pi:pi-tui/text-metrics.ts";
import { keyHint } from "pi:pi-coding-agent/key-hints.ts";
import type { Theme } from "pi:pi-coding-agent/theme/index.ts";
import {
  type Args,
  byteLimit,
  invalid,
  type RenderContext,
  resultText,
  textArgument,
  textRow,
  type ToolRenderers,
  type Truncation,
} from "pi:pi-coding-agent/tools/rows/rendering.ts";
import { truncateToVisualLines } from "pi:pi-coding-agent/text/visual-lines.ts";

const ROW_PREVIEW_LINES = 5;
const TICK_MILLISECONDS = 1000;

interface State {
  startedAt?: number;
  endedAt?: number;
  /** Updates the elapsed time while there is no output. */
  ticking?: ReturnType<typeof setInterval>;
}

interface Details {
  truncation?: Truncation;
  fullOutputPath?: string;
}

export const bashRenderers: ToolRenderers = {
  renderCall(rawArguments, theme, context) {
    const args = rawArguments as Args;
    const state = context.state as State;
    if (context.executionStarted) state.startedAt ??= Date.now();
    const command = textArgument(args?.command);
    const shown = command === undefined
      ? invalid(theme)
      : command || theme.fg("toolOutput", "...");
    const timeout = args?.timeout ? theme.fg("muted", ` (timeout ${args.timeout}s)`) : "";
    return textRow(theme.fg("toolTitle", theme.bold(`$ ${shown}`)) + timeout, context);
  },
  renderResult(result, { expanded, isPartial }, theme, context) {
    const state = context.state as State;
    keepTime(state, isPartial && !context.isError, context);
    const row = new Container();
    const output = resultText(result, context.showImages).trim();
    if (output) {
      const styled = output.split("\n").map((line) => theme.fg("toolOutput", line)).join("\n");
      row.addChild(expanded ? new Text(`\n${styled}`, 0, 0) : preview(styled, theme));
    }
    const note = limits((result.details ?? {}) as Details);
    if (note) row.addChild(new Text(`\n${theme.fg("warning", `[${note}]`)}`, 0, 0));
    if (state.startedAt !== undefined) {
      const seconds = ((state.endedAt ?? Date.now()) - state.startedAt) / 1000;
      const time = `${isPartial ? "Elapsed" : "Took"} ${seconds.toFixed(1)}s`;
      row.addChild(new Text(`\n${theme.fg("muted", time)}`, 0, 0));
    }
    return row;
  },
};

function keepTime(state: State, isRunning: boolean, { invalidate }: RenderContext): void {
  if (isRunning) {
    if (state.startedAt !== undefined) {
      state.ticking ??= setInterval(invalidate, TICK_MILLISECONDS);
    }
    return;
  }
  state.endedAt ??= Date.now();
  clearInterval(state.ticking);
  state.ticking = undefined;
}

/** The last rows; their number depends on the width. */
function preview(styled: string, theme: Theme) {
  return {
    render(width: number): string[] {
      const { visualLines, skippedCount } = truncateToVisualLines(styled, ROW_PREVIEW_LINES, width);
      if (skippedCount === 0) return ["", ...visualLines];
      const earlier = theme.fg("muted", `... (${skippedCount} earlier lines,`);
      const hint = `${earlier} ${keyHint("app.tools.expand", "to expand")})`;
      return ["", truncateToWidth(hint, width), ...visualLines];
    },
    invalidate(): void {
      // No state is kept between renderings.
    },
  };
}

function limits({ truncation, fullOutputPath }: Details): string {
  const notes = fullOutputPath ? [`Full output: ${fullOutputPath}`] : [];
  if (truncation?.truncated) {
    const { truncatedBy, outputLines, totalLines } = truncation;
    notes.push(
      truncatedBy === "lines"
        ? `Truncated: showing ${outputLines} of ${totalLines} lines`
        : `Truncated: ${outputLines} lines shown (${byteLimit(truncation)})`,
    );
  }
  return notes.join(". ");
}
