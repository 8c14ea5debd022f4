// `@mariozechner/pi-tui`: the components with which extensions draw.
export { CombinedAutocompleteProvider } from "pi:pi-tui/autocomplete.ts";
export { Box } from "pi:pi-tui/box.ts";
export {
  detectCapabilities,
  getCapabilities,
  getCellDimensions,
  hyperlink,
  resetCapabilitiesCache,
  setCapabilities,
  setCellDimensions,
} from "pi:pi-tui/image/capabilities.ts";
export { Container, CURSOR_MARKER, isFocusable } from "pi:pi-tui/component.ts";
export type { Component, Focusable } from "pi:pi-tui/component.ts";
export { Editor } from "pi:pi-tui/editor/index.ts";
export { isViewportTUI, TuiAltScreen } from "pi:pi-tui/full-screen.ts";
export { fuzzyFilter, fuzzyMatch } from "pi:pi-tui/fuzzy.ts";
export {
  allocateImageId,
  calculateImageRows,
  deleteAllKittyImages,
  deleteKittyImage,
  encodeITerm2,
  encodeKitty,
  Image,
  imageFallback,
  renderImage,
} from "pi:pi-tui/image/index.ts";
export {
  getGifDimensions,
  getImageDimensions,
  getJpegDimensions,
  getPngDimensions,
  getWebpDimensions,
} from "pi:pi-tui/image/size.ts";
export { Input } from "pi:pi-tui/input.ts";
export {
  getKeybindings,
  // Published extensions still import this older name.
  getKeybindings as getEditorKeybindings,
  KeybindingsManager,
  setKeybindings,
  TUI_KEYBINDINGS,
} from "pi:pi-tui/keys/keybindings.ts";
export {
  decodeKittyPrintable,
  isKeyRelease,
  isKeyRepeat,
  isKittyProtocolActive,
  Key,
  matchesKey,
  parseKey,
  setKittyProtocolActive,
} from "pi:pi-tui/keys/index.ts";
export { CancellableLoader, Loader } from "pi:pi-tui/loader.ts";
export { Markdown } from "pi:pi-tui/markdown/index.ts";
export { ScrollView } from "pi:pi-tui/scroll-view.ts";
export { SelectList } from "pi:pi-tui/select-list.ts";
export { SettingsList } from "pi:pi-tui/settings-list.ts";
export { HStack, VStack } from "pi:pi-tui/stacks.ts";
export { StdinBuffer } from "pi:pi-tui/keys/stdin-buffer.ts";
export { ProcessTerminal } from "pi:pi-tui/terminal.ts";
export { Spacer, Text, TruncatedText } from "pi:pi-tui/text.ts";
export {
  sliceByColumn,
  stripTerminalSequences,
  truncateToWidth,
  visibleWidth,
  wrapTextWithAnsi,
} from "pi:pi-tui/text-metrics.ts";
export { TUI } from "pi:pi-tui/tui.ts";
