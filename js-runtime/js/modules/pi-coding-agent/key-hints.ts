// Key hints such as "ctrl+o to expand", with the keys that the user has chosen.
import { platform } from "pi:node.ts";
import {
  getKeybindings,
  type KeybindingDefinitions,
  KeybindingsManager,
  setInitialKeybindings,
  TUI_KEYBINDINGS,
} from "pi:pi-tui/keys/keybindings.ts";
import { theme } from "pi:pi-coding-agent/theme/index.ts";

/** The actions of pi itself: id, keys, description. */
const APP_ACTIONS: readonly [string, string | string[], string][] = [
  ["app.interrupt", "escape", "Cancel or abort"],
  ["app.clear", "ctrl+c", "Clear editor"],
  ["app.exit", "ctrl+d", "Exit when editor is empty"],
  ["app.suspend", "ctrl+z", "Suspend to background"],
  ["app.thinking.cycle", "shift+tab", "Cycle thinking level"],
  ["app.model.cycleForward", "ctrl+p", "Cycle to next model"],
  ["app.model.cycleBackward", "shift+ctrl+p", "Cycle to previous model"],
  ["app.model.select", "ctrl+l", "Open model selector"],
  ["app.tools.expand", "ctrl+o", "Toggle tool output"],
  ["app.thinking.toggle", "ctrl+t", "Toggle thinking blocks"],
  ["app.session.toggleNamedFilter", "ctrl+n", "Toggle named session filter"],
  ["app.editor.external", "ctrl+g", "Open external editor"],
  ["app.message.followUp", "alt+enter", "Queue follow-up message"],
  ["app.message.dequeue", "alt+up", "Restore queued messages"],
  ["app.clipboard.pasteImage", "ctrl+v", "Paste image from clipboard"],
  ["app.session.new", [], "Start a new session"],
  ["app.session.tree", [], "Open session tree"],
  ["app.session.fork", [], "Fork current session"],
  ["app.session.resume", [], "Resume a session"],
  ["app.tree.foldOrUp", ["ctrl+left", "alt+left"], "Fold tree branch or move up"],
  ["app.tree.unfoldOrDown", ["ctrl+right", "alt+right"], "Unfold tree branch or move down"],
  ["app.tree.editLabel", "shift+l", "Edit tree label"],
  ["app.tree.toggleLabelTimestamp", "shift+t", "Toggle tree label timestamps"],
  ["app.session.togglePath", "ctrl+p", "Toggle session path display"],
  ["app.session.toggleSort", "ctrl+s", "Toggle session sort mode"],
  ["app.session.rename", "ctrl+r", "Rename session"],
  ["app.session.delete", "ctrl+d", "Delete session"],
  ["app.session.deleteNoninvasive", "ctrl+backspace", "Delete session when query is empty"],
];

const WINDOWS_KEYS: Readonly<Record<string, string | string[]>> = {
  "app.suspend": [],
  "app.clipboard.pasteImage": "alt+v",
};

// Evaluated on first use: while the snapshot is made, the platform is that of the build.
setInitialKeybindings(() => {
  const definitions: KeybindingDefinitions = { ...TUI_KEYBINDINGS };
  for (const [id, keys, description] of APP_ACTIONS) {
    const own = platform() === "win32" ? WINDOWS_KEYS[id] : undefined;
    definitions[id] = { defaultKeys: own ?? keys, description };
  }
  return new KeybindingsManager(definitions);
});

export function keyText(keybinding: string): string {
  return getKeybindings().getKeys(keybinding).join("/");
}

export function rawKeyHint(key: string, description: string): string {
  return theme.fg("dim", key) + theme.fg("muted", ` ${description}`);
}

export function keyHint(keybinding: string, description: string): string {
  return rawKeyHint(keyText(keybinding), description);
}
