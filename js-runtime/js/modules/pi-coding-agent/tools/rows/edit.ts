// Draws calls of edit: a preview of the changes, then the changes made.
import { host } from "pi:host.ts";
import { Box } from "pi:pi-tui/box.ts";
import { type Component, Container } from "pi:pi-tui/component.ts";
import { Spacer, Text } from "pi:pi-tui/text.ts";
import { renderDiff } from "pi:pi-coding-agent/theme/highlight.ts";
import type { Theme } from "pi:pi-coding-agent/theme/index.ts";
import {
  type Args,
  pathTitle,
  plainResultText,
  type RenderContext,
  title,
  type ToolRenderers,
} from "pi:pi-coding-agent/tools/rows/rendering.ts";

interface Edit {
  oldText: string;
  newText: string;
}

interface Preview {
  diff?: string;
  error?: string;
}

/** The state of the row of one call. */
interface State {
  /** The arguments to which the preview belongs. */
  key?: string;
  preview?: Preview;
  isRequested?: boolean;
  failed?: boolean;
}

/** The edits, if the arguments are complete enough for a preview. */
function editsOf(args: Args): { path: string; edits: Edit[] } | undefined {
  const path = [args?.path, args?.file_path].find((path) => typeof path === "string") as string;
  if (!path) return undefined;
  const isEdit = (edit: unknown): edit is Edit => {
    const { oldText, newText } = (edit ?? {}) as Partial<Edit>;
    return typeof oldText === "string" && typeof newText === "string";
  };
  const list = args?.edits;
  if (Array.isArray(list) && list.length > 0 && list.every(isEdit)) return { path, edits: list };
  return isEdit(args) ? { path, edits: [{ oldText: args.oldText, newText: args.newText }] } : undefined;
}

function stateOf(context: RenderContext, args: Args): State {
  const state = context.state as State;
  const key = JSON.stringify(editsOf(args));
  if (state.key !== key) Object.assign(state, { key, preview: undefined, asked: false, failed: false });
  return state;
}

export const editRenderers: ToolRenderers = {
  renderShell: "self",
  renderCall(rawArguments, theme, context) {
    const args = rawArguments as Args;
    const state = stateOf(context, args);
    const edits = editsOf(args);
    if (context.argsComplete && edits && !state.preview && !state.isRequested) {
      state.isRequested = true;
      const { key } = state;
      host<Preview>("tools.previewEdit", { ...edits, cwd: context.cwd })
        .catch((error): Preview => ({ error: error instanceof Error ? error.message : String(error) }))
        .then((preview) => {
          // The result may have arrived first.
          if (state.key !== key || state.preview) return;
          state.preview = preview;
          context.invalidate();
        });
    }
    return callRow(args, state, theme);
  },
  renderResult(result, _options, theme, context) {
    const args = context.args as Args;
    const state = stateOf(context, args);
    const shown = state.preview;
    const { diff } = (result.details ?? {}) as { diff?: string };
    const failed = context.isError;
    const changed = failed !== (state.failed ?? false) ||
      (!failed && diff !== undefined && diff !== shown?.diff);
    state.failed = failed;
    if (!failed && diff !== undefined) state.preview = { diff };
    // The row of the call was drawn before.
    if (changed) context.invalidate();
    const row = new Container();
    const error = failed ? plainResultText(result) : "";
    if (error && error !== shown?.error) {
      row.addChild(new Spacer(1));
      row.addChild(new Text(theme.fg("error", error), 1, 0));
    }
    return row;
  },
};

function callRow(args: Args, { preview, failed }: State, theme: Theme): Component {
  let background = "toolPendingBg";
  if (preview) background = preview.error === undefined ? "toolSuccessBg" : "toolErrorBg";
  else if (failed) background = "toolErrorBg";
  const row = new Box(1, 1, (text) => theme.bg(background, text));
  row.addChild(new Text(`${title("edit", theme)} ${pathTitle(args, theme)}`, 0, 0));
  if (!preview) return row;
  const { diff = "", error } = preview;
  row.addChild(new Spacer(1));
  row.addChild(new Text(error === undefined ? renderDiff(diff) : theme.fg("error", error), 0, 0));
  return row;
}
