// Themes: colours by purpose.
import type { SourceInfo } from "../extension/api.js";
import type { MarkdownTheme, SelectListTheme, SettingsListTheme } from "../pi-tui.js";

/** From newer versions; a theme without them gets other colours in their place. */
type OptionalBg = "searchMatchBg";
type OptionalColor = "scrollbarTrack" | "scrollbarThumb" | "searchMatchText" | "thinkingMax";
type ThemeBg =
  | OptionalBg | "selectedBg" | "userMessageBg" | "customMessageBg" | "toolPendingBg" | "toolSuccessBg" | "toolErrorBg";
type ThemeColor =
  | OptionalColor
  | "accent" | "border" | "borderAccent" | "borderMuted" | "success" | "error" | "warning" | "muted" | "dim"
  | "text" | "thinkingText" | "userMessageText" | "customMessageText" | "customMessageLabel" | "toolTitle"
  | "toolOutput" | "mdHeading" | "mdLink" | "mdLinkUrl" | "mdCode" | "mdCodeBlock" | "mdCodeBlockBorder"
  | "mdQuote" | "mdQuoteBorder" | "mdHr" | "mdListBullet" | "toolDiffAdded" | "toolDiffRemoved"
  | "toolDiffContext" | "syntaxComment" | "syntaxKeyword" | "syntaxFunction" | "syntaxVariable" | "syntaxString"
  | "syntaxNumber" | "syntaxType" | "syntaxOperator" | "syntaxPunctuation" | "thinkingOff" | "thinkingMinimal"
  | "thinkingLow" | "thinkingMedium" | "thinkingHigh" | "thinkingXhigh" | "bashMode";
type Paint = (text: string) => string;
type Values<K extends string, O extends K> = Record<Exclude<K, O>, string | number> & Partial<Record<O, string | number>>;

export type { ThemeBg, ThemeColor };

export class Theme {
  readonly name?: string;
  readonly sourcePath?: string;
  sourceInfo?: SourceInfo;
  constructor(
    fgColors: Values<ThemeColor, OptionalColor>,
    bgColors: Values<ThemeBg, OptionalBg>,
    mode: "truecolor" | "256color",
    options?: { name?: string; sourcePath?: string; sourceInfo?: SourceInfo },
  );
  fg(color: ThemeColor, text: string): string;
  bg(color: ThemeBg, text: string): string;
  bold(text: string): string;
  italic(text: string): string;
  underline(text: string): string;
  inverse(text: string): string;
  strikethrough(text: string): string;
  getFgAnsi(color: ThemeColor): string;
  getBgAnsi(color: ThemeBg): string;
  getColorMode(): "truecolor" | "256color";
  getThinkingBorderColor(level: string): Paint;
  getBashModeBorderColor(): Paint;
}

/** Changes of the theme's file take effect at the next reload; the second argument is ignored. */
export function initTheme(themeName?: string, enableWatcher?: boolean): void;
export function getSelectListTheme(): SelectListTheme;
export function getSettingsListTheme(): SettingsListTheme;
export function getMarkdownTheme(): MarkdownTheme;

// Without this line every declaration would be exported.
export {};
