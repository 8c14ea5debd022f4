// The built-in themes as data, and the names that a theme has to define.

/** `#rrggbb`, an index of the 256 colours, a name from `vars`, or "" for the terminal's own. */
export type ColorValue = string | number;

export interface ThemeFile {
  name: string;
  vars?: Record<string, ColorValue>;
  colors: Record<ColorName, ColorValue>;
}

/** Background colours; all others are text colours. */
export const BACKGROUNDS: ReadonlySet<string> = new Set([
  "selectedBg",
  "searchMatchBg",
  "userMessageBg",
  "customMessageBg",
  "toolPendingBg",
  "toolSuccessBg",
  "toolErrorBg",
]);

// prettier-ignore
const BUILT_IN_COLORS = {
  //                   dark        light
  accent:              ["#8abeb7", "#5a8080"],
  border:              ["#5f87ff", "#547da7"],
  borderAccent:        ["#00d7ff", "#5a8080"],
  borderMuted:         ["#505050", "#b0b0b0"],
  success:             ["#b5bd68", "#588458"],
  error:               ["#cc6666", "#aa5555"],
  warning:             ["#ffff00", "#9a7326"],
  muted:               ["#808080", "#6c6c6c"],
  dim:                 ["#666666", "#767676"],
  text:                ["",        ""],
  thinkingText:        ["#808080", "#6c6c6c"],
  selectedBg:          ["#3a3a4a", "#d0d0e0"],
  userMessageBg:       ["#343541", "#e8e8e8"],
  userMessageText:     ["",        ""],
  customMessageBg:     ["#2d2838", "#ede7f6"],
  customMessageText:   ["",        ""],
  customMessageLabel:  ["#9575cd", "#7e57c2"],
  toolPendingBg:       ["#282832", "#e8e8f0"],
  toolSuccessBg:       ["#283228", "#e8f0e8"],
  toolErrorBg:         ["#3c2828", "#f0e8e8"],
  toolTitle:           ["",        ""],
  toolOutput:          ["#808080", "#6c6c6c"],
  mdHeading:           ["#f0c674", "#9a7326"],
  mdLink:              ["#81a2be", "#547da7"],
  mdLinkUrl:           ["#666666", "#767676"],
  mdCode:              ["#8abeb7", "#5a8080"],
  mdCodeBlock:         ["#b5bd68", "#588458"],
  mdCodeBlockBorder:   ["#808080", "#6c6c6c"],
  mdQuote:             ["#808080", "#6c6c6c"],
  mdQuoteBorder:       ["#808080", "#6c6c6c"],
  mdHr:                ["#808080", "#6c6c6c"],
  mdListBullet:        ["#8abeb7", "#588458"],
  toolDiffAdded:       ["#b5bd68", "#588458"],
  toolDiffRemoved:     ["#cc6666", "#aa5555"],
  toolDiffContext:     ["#808080", "#6c6c6c"],
  syntaxComment:       ["#6A9955", "#008000"],
  syntaxKeyword:       ["#569CD6", "#0000FF"],
  syntaxFunction:      ["#DCDCAA", "#795E26"],
  syntaxVariable:      ["#9CDCFE", "#001080"],
  syntaxString:        ["#CE9178", "#A31515"],
  syntaxNumber:        ["#B5CEA8", "#098658"],
  syntaxType:          ["#4EC9B0", "#267F99"],
  syntaxOperator:      ["#D4D4D4", "#000000"],
  syntaxPunctuation:   ["#D4D4D4", "#000000"],
  thinkingOff:         ["#505050", "#b0b0b0"],
  thinkingMinimal:     ["#6e6e6e", "#767676"],
  thinkingLow:         ["#5f87af", "#547da7"],
  thinkingMedium:      ["#81a2be", "#5a8080"],
  thinkingHigh:        ["#b294bb", "#875f87"],
  thinkingXhigh:       ["#d183e8", "#8b008b"],
  bashMode:            ["#b5bd68", "#588458"],
} as const;

export type ColorName = keyof typeof BUILT_IN_COLORS;

/** Colours of newer versions, and the older colour that replaces each one in a theme without it. */
export const FALLBACKS: readonly [newer: string, older: ColorName][] = [
  ["scrollbarTrack", "muted"],
  ["scrollbarThumb", "text"],
  ["searchMatchText", "text"],
  ["thinkingMax", "thinkingXhigh"],
  ["searchMatchBg", "selectedBg"],
];

function column(index: 0 | 1): Pick<ThemeFile, "colors"> {
  const colors = Object.entries(BUILT_IN_COLORS).map(([name, values]) => [name, values[index]]);
  return { colors: Object.fromEntries(colors) as ThemeFile["colors"] };
}

export const BUILT_IN = { dark: column(0), light: column(1) };
