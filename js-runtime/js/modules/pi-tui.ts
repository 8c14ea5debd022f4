// `@mariozechner/pi-tui`: what extensions draw with.
export { Box } from "pi:pi-tui/box.ts";
export { Container, CURSOR_MARKER, isFocusable } from "pi:pi-tui/component.ts";
export type { Component, Focusable } from "pi:pi-tui/component.ts";
export { fuzzyFilter, fuzzyMatch } from "pi:pi-tui/fuzzy.ts";
export { Input } from "pi:pi-tui/input.ts";
export {
  getKeybindings,
  // An older name that published extensions still import.
  getKeybindings as getEditorKeybindings,
  KeybindingsManager,
  setKeybindings,
  TUI_KEYBINDINGS,
} from "pi:pi-tui/keybindings.ts";
export {
  decodeKittyPrintable,
  isKeyRelease,
  isKeyRepeat,
  isKittyProtocolActive,
  Key,
  matchesKey,
  parseKey,
  setKittyProtocolActive,
} from "pi:pi-tui/keys.ts";
export { CancellableLoader, Loader } from "pi:pi-tui/loader.ts";
export { SelectList } from "pi:pi-tui/select-list.ts";
export { SettingsList } from "pi:pi-tui/settings-list.ts";
export { Spacer, Text, TruncatedText } from "pi:pi-tui/text.ts";
export { truncateToWidth, visibleWidth, wrapTextWithAnsi } from "pi:pi-tui/text-metrics.ts";
export * from "pi:pi-tui/missing.ts";

/** `text` as a link that terminals can open (OSC 8). */
export function hyperlink(text: string, url: string): string {
  return `\x1b]8;;${url}\x1b\\${text}\x1b]8;;\x1b\\`;
}
