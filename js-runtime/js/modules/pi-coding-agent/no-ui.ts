// `ctx.ui` without a user: dialogs resolve to their defaults, and nothing is shown.
import { theme } from "pi:pi-coding-agent/theme/index.ts";

const nothing = () => {};
const unanswered = () => Promise.resolve(undefined);

export const noUi = Object.freeze({
  select: unanswered,
  confirm: () => Promise.resolve(false),
  input: unanswered,
  editor: unanswered,
  custom: unanswered,
  notify: nothing,
  onTerminalInput: () => nothing,
  setStatus: nothing,
  setWorkingMessage: nothing,
  setWorkingIndicator: nothing,
  setWorkingVisible: nothing,
  setHiddenThinkingLabel: nothing,
  setWidget: nothing,
  setFooter: nothing,
  setHeader: nothing,
  setTitle: nothing,
  pasteToEditor: nothing,
  setEditorText: nothing,
  getEditorText: () => "",
  setEditorComponent: nothing,
  addAutocompleteProvider: nothing,
  theme,
  getAllThemes: () => [],
  getTheme: () => undefined,
  setTheme: () => ({ success: false, error: "There is no user interface here" }),
  getToolsExpanded: () => false,
  setToolsExpanded: nothing,
});
