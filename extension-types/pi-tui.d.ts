// `@mariozechner/pi-tui`: the components with which extensions draw.
import type { AppAction, TuiAction } from "./extension/keybindings.js";
import type { TUI } from "./tui/terminal.js";

export * from "./tui/editor.js";
export * from "./tui/terminal.js";

export interface Component {
  /** The lines of the component, none wider than `width` columns. */
  render(width: number): string[];
  handleInput?(data: string): void;
  /** Whether the component needs key releases as well (Kitty protocol). */
  wantsKeyRelease?: boolean;
  /** Drops rendered lines, because the theme or the size has changed. */
  invalidate(): void;
}
export interface Focusable {
  focused: boolean;
}
/** Marks the position of the hardware cursor in a rendered line. */
export const CURSOR_MARKER: string;
export function isFocusable(component: Component | null): component is Component & Focusable;

type Paint = (text: string) => string;

export class Container implements Component {
  children: Component[];
  addChild(component: Component): void;
  removeChild(component: Component): void;
  clear(): void;
  invalidate(): void;
  render(width: number): string[];
}
export class Box extends Container {
  constructor(paddingX?: number, paddingY?: number, bgFn?: Paint);
  setBgFn(bgFn?: Paint): void;
}
export interface StackEntryOptions {
  /** The size before growing or shrinking; the natural size by default. */
  basis?: number | "auto";
  grow?: number;
  shrink?: number;
  minSize?: number;
  maxSize?: number;
  visible?(viewport: { width: number; height: number }): boolean;
}
export interface StackEntry extends StackEntryOptions {
  component: Component;
}
export type StackChild = Component | StackEntry;
export interface StackOptions {
  gap?: number;
  align?: "stretch" | "start" | "center" | "end";
}
/** Stacks components vertically. */
export class VStack extends Container {
  constructor(children?: StackChild[], options?: StackOptions);
  override addChild(component: Component, options?: StackEntryOptions): void;
}
/** Stacks components horizontally. */
export class HStack extends Container {
  constructor(children?: StackChild[], options?: StackOptions);
  override addChild(component: Component, options?: StackEntryOptions): void;
}
export type ScrollViewScrollbar = "hidden" | "auto" | "always";
export interface ScrollViewOptions {
  axis?: "vertical";
  follow?: "none" | "end";
  primary?: boolean;
  overscroll?: "chain" | "contain";
  scrollbar?: ScrollViewScrollbar;
  scrollbarTrackStyle?: Paint;
  scrollbarThumbStyle?: Paint;
  /** Ignored: here the scroll bar is never hidden. */
  scrollbarHideDelayMs?: number;
}
export interface ScrollViewScrollToOptions {
  disableFollow?: boolean;
}
/** Needs a layout: `render` returns the whole content. */
export class ScrollView extends Container {
  constructor(component: Component, options?: ScrollViewOptions);
  readonly followEnd: boolean;
  readonly primary: boolean;
  readonly overscroll: "chain" | "contain";
  readonly scrollbarTrackStyle: Paint;
  readonly scrollbarThumbStyle: Paint;
  readonly scrollTop: number;
  readonly isFollowingEnd: boolean;
  readonly viewportHeight: number;
  readonly scrollbar: ScrollViewScrollbar;
  readonly isScrollbarActive: boolean;
  readonly isScrollbarVisible: boolean;
  setScrollbar(scrollbar: ScrollViewScrollbar): void;
  setScrollbarActive(active: boolean): void;
  getContentWidth(width: number): number;
  scrollTo(scrollTop: number, options?: ScrollViewScrollToOptions): void;
  /** Returns the number of lines that could not be scrolled. */
  scrollBy(lines: number): number;
  scrollToStart(): void;
  scrollToEnd(): void;
  updateLayout(contentHeight: number, viewportHeight: number, requestRender?: () => void): void;
}
export class Text implements Component {
  constructor(text?: string, paddingX?: number, paddingY?: number, customBgFn?: Paint);
  setText(text: string): void;
  setCustomBgFn(customBgFn?: Paint): void;
  invalidate(): void;
  render(width: number): string[];
}
export class TruncatedText implements Component {
  constructor(text: string, paddingX?: number, paddingY?: number);
  invalidate(): void;
  render(width: number): string[];
}
export class Spacer implements Component {
  constructor(lines?: number);
  setLines(lines: number): void;
  invalidate(): void;
  render(width: number): string[];
}
export class Input implements Component, Focusable {
  focused: boolean;
  onSubmit?: (value: string) => void;
  onEscape?: () => void;
  getValue(): string;
  setValue(value: string): void;
  handleInput(data: string): void;
  invalidate(): void;
  render(width: number): string[];
}
export class Loader extends Text {
  constructor(ui: Pick<TUI, "requestRender"> | null, spinnerColorFn: Paint, messageColorFn: Paint, message?: string);
  start(): void;
  stop(): void;
  setMessage(message: string): void;
}
export class CancellableLoader extends Loader {
  readonly signal: AbortSignal;
  readonly aborted: boolean;
  onAbort?: () => void;
  handleInput(data: string): void;
  dispose(): void;
}

export interface SelectItem {
  value: string;
  label: string;
  description?: string;
}
export interface SelectListTheme {
  selectedPrefix(text: string): string;
  selectedText(text: string): string;
  description(text: string): string;
  scrollInfo(text: string): string;
  noMatch(text: string): string;
}
export interface SelectListTruncatePrimaryContext {
  text: string;
  maxWidth: number;
  columnWidth: number;
  item: SelectItem;
  isSelected: boolean;
}
export interface SelectListLayoutOptions {
  minPrimaryColumnWidth?: number;
  maxPrimaryColumnWidth?: number;
  truncatePrimary?(context: SelectListTruncatePrimaryContext): string;
}
export class SelectList implements Component {
  onSelect?: (item: SelectItem) => void;
  onCancel?: () => void;
  onSelectionChange?: (item: SelectItem) => void;
  constructor(items: SelectItem[], maxVisible: number, theme: SelectListTheme, layout?: SelectListLayoutOptions);
  setFilter(filter: string): void;
  setSelectedIndex(index: number): void;
  getSelectedItem(): SelectItem | null;
  handleInput(data: string): void;
  invalidate(): void;
  render(width: number): string[];
}

export interface SettingItem {
  id: string;
  label: string;
  description?: string;
  currentValue: string;
  /** Enter cycles through these values. */
  values?: string[];
  /** Enter opens this component instead. */
  submenu?(currentValue: string, done: (selectedValue?: string) => void): Component;
}
export interface SettingsListTheme {
  label(text: string, selected: boolean): string;
  value(text: string, selected: boolean): string;
  description(text: string): string;
  cursor: string;
  hint(text: string): string;
}
export interface SettingsListOptions {
  enableSearch?: boolean;
}
export class SettingsList implements Component {
  constructor(
    items: SettingItem[],
    maxVisible: number,
    theme: SettingsListTheme,
    onChange: (id: string, newValue: string) => void,
    onCancel: () => void,
    options?: SettingsListOptions,
  );
  updateValue(id: string, newValue: string): void;
  handleInput(data: string): void;
  invalidate(): void;
  render(width: number): string[];
}

/** "escape", "ctrl+c", "shift+alt+up": modifiers in any order. */
export type KeyId = string;
export type KeyEventType = "press" | "repeat" | "release";
type Combine = (key: string) => KeyId;
type KeyName =
  | "escape" | "esc" | "enter" | "return" | "tab" | "space" | "backspace" | "delete" | "insert" | "clear"
  | "home" | "end" | "pageUp" | "pageDown" | "up" | "down" | "left" | "right"
  | "f1" | "f2" | "f3" | "f4" | "f5" | "f6" | "f7" | "f8" | "f9" | "f10" | "f11" | "f12"
  | "backtick" | "hyphen" | "equals" | "leftbracket" | "rightbracket" | "backslash" | "semicolon" | "quote"
  | "comma" | "period" | "slash" | "exclamation" | "at" | "hash" | "dollar" | "percent" | "caret" | "ampersand"
  | "asterisk" | "leftparen" | "rightparen" | "underscore" | "plus" | "pipe" | "tilde" | "leftbrace"
  | "rightbrace" | "colon" | "lessthan" | "greaterthan" | "question";
type KeyCombination =
  | "ctrl" | "shift" | "alt" | "super" | "ctrlShift" | "shiftCtrl" | "ctrlAlt" | "altCtrl" | "shiftAlt"
  | "altShift" | "ctrlSuper" | "superCtrl" | "shiftSuper" | "superShift" | "altSuper" | "superAlt"
  | "ctrlShiftAlt" | "ctrlShiftSuper";
export const Key: Readonly<Record<KeyName, KeyId> & Record<KeyCombination, Combine>>;
/** Whether `data`, as the terminal sent it, is the key `keyId`. */
export function matchesKey(data: string, keyId: KeyId): boolean;
export function parseKey(data: string): KeyId | undefined;
export function isKeyRelease(data: string): boolean;
export function isKeyRepeat(data: string): boolean;
export function decodeKittyPrintable(data: string): string | undefined;
export function isKittyProtocolActive(): boolean;
export function setKittyProtocolActive(active: boolean): void;

/** Extended by declaration merging with actions of an extension's own. */
export interface Keybindings extends Record<TuiAction | AppAction, true> {}
/** Any name is accepted; to choose among those of pi, use `keyof Keybindings`. */
// deno-lint-ignore ban-types
export type Keybinding = keyof Keybindings | (string & {});
export interface KeybindingDefinition {
  defaultKeys: KeyId | KeyId[];
  description?: string;
}
export type KeybindingDefinitions = Record<string, KeybindingDefinition>;
export type KeybindingsConfig = Record<string, KeyId | KeyId[] | undefined>;
export interface KeybindingConflict {
  key: KeyId;
  keybindings: string[];
}
export class KeybindingsManager {
  constructor(definitions: KeybindingDefinitions, userBindings?: KeybindingsConfig);
  matches(data: string, keybinding: Keybinding): boolean;
  getKeys(keybinding: Keybinding): KeyId[];
  getDefinition(keybinding: Keybinding): KeybindingDefinition;
  getConflicts(): KeybindingConflict[];
  setUserBindings(userBindings: KeybindingsConfig): void;
  getUserBindings(): KeybindingsConfig;
  getResolvedBindings(): KeybindingsConfig;
}
export const TUI_KEYBINDINGS: KeybindingDefinitions;
export function getKeybindings(): KeybindingsManager;
/** @deprecated An older name of `getKeybindings`. */
export function getEditorKeybindings(): KeybindingsManager;
export function setKeybindings(keybindings: KeybindingsManager): void;

export interface FuzzyMatch {
  matches: boolean;
  /** Lower scores are better. */
  score: number;
}
export function fuzzyMatch(query: string, text: string): FuzzyMatch;
export function fuzzyFilter<T>(items: T[], query: string, getText: (item: T) => string): T[];

/** The number of columns; escape sequences count as none. */
export function visibleWidth(text: string): number;
export function truncateToWidth(text: string, maxWidth: number, ellipsis?: string, pad?: boolean): string;
export function wrapTextWithAnsi(text: string, width: number): string[];
/** With `strict`, a wide character that crosses the end is left out. */
export function sliceByColumn(line: string, startCol: number, length: number, strict?: boolean): string;
/** Removes escape sequences. */
export function stripTerminalSequences(text: string): string;

// Without this line every declaration would be exported.
export {};
