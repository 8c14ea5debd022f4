// `@mariozechner/pi-tui`: what extensions draw with.

export interface Component {
  /** The lines of the component, none wider than `width` columns. */
  render(width: number): string[];
  handleInput?(data: string): void;
  /** Key releases are wanted, too (Kitty protocol). */
  wantsKeyRelease?: boolean;
  /** Forget what was rendered: the theme or the size changed. */
  invalidate(): void;
}
export interface Focusable {
  focused: boolean;
}
/** Marks the place of the hardware cursor in a rendered line. */
export const CURSOR_MARKER: string;
export function isFocusable(component: Component | null): component is Component & Focusable;

type Paint = (text: string) => string;

/** What a TUI draws on. */
export interface Terminal {
  start(onInput: (data: string) => void, onResize: () => void): void;
  stop(): void;
  drainInput(maxMs?: number, idleMs?: number): Promise<void>;
  write(data: string): void;
  readonly columns: number;
  readonly rows: number;
  readonly kittyProtocolActive: boolean;
  moveBy(lines: number): void;
  hideCursor(): void;
  showCursor(): void;
  clearLine(): void;
  clearFromCursor(): void;
  clearScreen(): void;
  setTitle(title: string): void;
}
/** Can be made, but not used: the terminal belongs to pi. */
export class ProcessTerminal implements Terminal {
  start(onInput: (data: string) => void, onResize: () => void): void;
  stop(): void;
  drainInput(maxMs?: number, idleMs?: number): Promise<void>;
  write(data: string): void;
  readonly columns: number;
  readonly rows: number;
  readonly kittyProtocolActive: boolean;
  moveBy(lines: number): void;
  hideCursor(): void;
  showCursor(): void;
  clearLine(): void;
  clearFromCursor(): void;
  clearScreen(): void;
  setTitle(title: string): void;
}

/** Columns or rows, or a share of the terminal. */
export type SizeValue = number | `${number}%`;
export type OverlayAnchor =
  | "center" | "top-left" | "top-right" | "bottom-left" | "bottom-right" | "top-center" | "bottom-center"
  | "left-center" | "right-center";
export interface OverlayMargin {
  top?: number;
  right?: number;
  bottom?: number;
  left?: number;
}
export interface OverlayOptions {
  width?: SizeValue;
  minWidth?: number;
  maxHeight?: SizeValue;
  anchor?: OverlayAnchor;
  offsetX?: number;
  offsetY?: number;
  row?: SizeValue;
  col?: SizeValue;
  margin?: OverlayMargin | number;
  visible?(termWidth: number, termHeight: number): boolean;
  /** Does not take the focus when it is shown. */
  nonCapturing?: boolean;
}
export interface OverlayHandle {
  hide(): void;
  setHidden(hidden: boolean): void;
  isHidden(): boolean;
  focus(): void;
  unfocus(): void;
  isFocused(): boolean;
}
export type InputListener = (data: string) => { consume?: boolean; data?: string } | undefined | void;

export class Container implements Component {
  children: Component[];
  addChild(component: Component): void;
  removeChild(component: Component): void;
  clear(): void;
  invalidate(): void;
  render(width: number): string[];
}
/** Components on a terminal. */
export class TUI extends Container {
  constructor(terminal: Terminal, showHardwareCursor?: boolean);
  terminal: Terminal;
  /** Shift+Ctrl+D. */
  onDebug?: () => void;
  readonly fullRedraws: number;
  getShowHardwareCursor(): boolean;
  setShowHardwareCursor(enabled: boolean): void;
  getClearOnShrink(): boolean;
  setClearOnShrink(enabled: boolean): void;
  setFocus(component: Component | null): void;
  showOverlay(component: Component, options?: OverlayOptions): OverlayHandle;
  hideOverlay(): void;
  hasOverlay(): boolean;
  start(): void;
  stop(): void;
  addInputListener(listener: InputListener): () => void;
  removeInputListener(listener: InputListener): void;
  /** Draws soon; with `force` everything anew. */
  requestRender(force?: boolean): void;
}
export class Box extends Container {
  constructor(paddingX?: number, paddingY?: number, bgFn?: Paint);
  setBgFn(bgFn?: Paint): void;
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
  /** Enter goes through these … */
  values?: string[];
  /** … or opens this. */
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
  matches(data: string, keybinding: string): boolean;
  getKeys(keybinding: string): KeyId[];
  getDefinition(keybinding: string): KeybindingDefinition;
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
  /** Lower is better. */
  score: number;
}
export function fuzzyMatch(query: string, text: string): FuzzyMatch;
export function fuzzyFilter<T>(items: T[], query: string, getText: (item: T) => string): T[];

/** Columns; escape sequences count nothing. */
export function visibleWidth(text: string): number;
export function truncateToWidth(text: string, maxWidth: number, ellipsis?: string, pad?: boolean): string;
export function wrapTextWithAnsi(text: string, width: number): string[];
export function hyperlink(text: string, url: string): string;

export interface EditorTheme {
  borderColor: Paint;
  selectList: SelectListTheme;
}
export interface EditorOptions {
  paddingX?: number;
  autocompleteMaxVisible?: number;
}
/** What may take the place of the prompt editor. */
export interface EditorComponent extends Component {
  getText(): string;
  setText(text: string): void;
  handleInput(data: string): void;
  onSubmit?: (text: string) => void;
  onChange?: (text: string) => void;
  addToHistory?(text: string): void;
  insertTextAtCursor?(text: string): void;
  getExpandedText?(): string;
  setAutocompleteProvider?(provider: AutocompleteProvider): void;
  borderColor?: Paint;
  setPaddingX?(padding: number): void;
  setAutocompleteMaxVisible?(maxVisible: number): void;
}
export class Editor implements EditorComponent, Focusable {
  constructor(
    tui: { requestRender(): void; readonly terminal: { readonly rows: number } },
    theme: EditorTheme,
    options?: EditorOptions,
  );
  protected tui: { requestRender(): void; readonly terminal: { readonly rows: number } };
  focused: boolean;
  borderColor: Paint;
  onSubmit?: (text: string) => void;
  onChange?: (text: string) => void;
  disableSubmit: boolean;
  getPaddingX(): number;
  setPaddingX(padding: number): void;
  getAutocompleteMaxVisible(): number;
  setAutocompleteMaxVisible(maxVisible: number): void;
  setAutocompleteProvider(provider: AutocompleteProvider): void;
  isShowingAutocomplete(): boolean;
  addToHistory(text: string): void;
  getText(): string;
  /** With the pastes that markers stand for. */
  getExpandedText(): string;
  getLines(): string[];
  getCursor(): { line: number; col: number };
  setText(text: string): void;
  insertTextAtCursor(text: string): void;
  handleInput(data: string): void;
  invalidate(): void;
  render(width: number): string[];
}

export interface AutocompleteItem {
  value: string;
  label: string;
  description?: string;
}
export interface AutocompleteSuggestions {
  items: AutocompleteItem[];
  /** The text before the cursor that they replace. */
  prefix: string;
}
export interface AutocompleteProvider {
  getSuggestions(
    lines: string[],
    cursorLine: number,
    cursorCol: number,
    options: { signal: AbortSignal; force?: boolean },
  ): Promise<AutocompleteSuggestions | null>;
  applyCompletion(
    lines: string[],
    cursorLine: number,
    cursorCol: number,
    item: AutocompleteItem,
    prefix: string,
  ): { lines: string[]; cursorLine: number; cursorCol: number };
}
export interface SlashCommand {
  name: string;
  description?: string;
  argumentHint?: string;
  getArgumentCompletions?(
    argumentPrefix: string,
  ): AutocompleteItem[] | null | Promise<AutocompleteItem[] | null>;
}
/** Commands, paths, and with fd files by parts of their name (`@`). */
export class CombinedAutocompleteProvider implements AutocompleteProvider {
  constructor(commands?: (SlashCommand | AutocompleteItem)[], basePath?: string, fdPath?: string | null);
  getSuggestions(
    lines: string[],
    cursorLine: number,
    cursorCol: number,
    options: { signal: AbortSignal; force?: boolean },
  ): Promise<AutocompleteSuggestions | null>;
  applyCompletion(
    lines: string[],
    cursorLine: number,
    cursorCol: number,
    item: AutocompleteItem,
    prefix: string,
  ): { lines: string[]; cursorLine: number; cursorCol: number };
  shouldTriggerFileCompletion(lines: string[], cursorLine: number, cursorCol: number): boolean;
}

export interface DefaultTextStyle {
  color?: Paint;
  bgColor?: Paint;
  bold?: boolean;
  italic?: boolean;
  strikethrough?: boolean;
  underline?: boolean;
}
export interface MarkdownTheme {
  heading: Paint;
  link: Paint;
  linkUrl: Paint;
  code: Paint;
  codeBlock: Paint;
  codeBlockBorder: Paint;
  quote: Paint;
  quoteBorder: Paint;
  hr: Paint;
  listBullet: Paint;
  bold: Paint;
  italic: Paint;
  strikethrough: Paint;
  underline: Paint;
  highlightCode?: (code: string, lang?: string) => string[];
  codeBlockIndent?: string;
}
export class Markdown implements Component {
  constructor(
    text: string,
    paddingX: number,
    paddingY: number,
    theme: MarkdownTheme,
    defaultTextStyle?: DefaultTextStyle,
  );
  setText(text: string): void;
  invalidate(): void;
  render(width: number): string[];
}

export interface ImageDimensions {
  widthPx: number;
  heightPx: number;
}
export interface CellDimensions {
  widthPx: number;
  heightPx: number;
}
export type ImageProtocol = "kitty" | "iterm2" | null;
export interface TerminalCapabilities {
  images: ImageProtocol;
  trueColor: boolean;
  hyperlinks: boolean;
}
export interface ImageRenderOptions {
  maxWidthCells?: number;
  maxHeightCells?: number;
  preserveAspectRatio?: boolean;
  imageId?: number;
}
export interface ImageTheme {
  fallbackColor: Paint;
}
export interface ImageOptions {
  maxWidthCells?: number;
  maxHeightCells?: number;
  filename?: string;
  imageId?: number;
}
export class Image implements Component {
  constructor(
    base64Data: string,
    mimeType: string,
    theme: ImageTheme,
    options?: ImageOptions,
    dimensions?: ImageDimensions,
  );
  getImageId(): number | undefined;
  invalidate(): void;
  render(width: number): string[];
}
export function allocateImageId(): number;
export function calculateImageRows(
  imageDimensions: ImageDimensions,
  targetWidthCells: number,
  cellDimensions?: CellDimensions,
): number;
export function deleteAllKittyImages(): string;
export function deleteKittyImage(imageId: number): string;
export function detectCapabilities(): TerminalCapabilities;
export function encodeITerm2(
  base64Data: string,
  options?: {
    width?: number | string;
    height?: number | string;
    name?: string;
    preserveAspectRatio?: boolean;
    inline?: boolean;
  },
): string;
export function encodeKitty(
  base64Data: string,
  options?: { columns?: number; rows?: number; imageId?: number },
): string;
export function getCapabilities(): TerminalCapabilities;
export function setCapabilities(capabilities: TerminalCapabilities): void;
export function resetCapabilitiesCache(): void;
export function getCellDimensions(): CellDimensions;
export function setCellDimensions(dimensions: CellDimensions): void;
export function getImageDimensions(base64Data: string, mimeType: string): ImageDimensions | null;
export function getPngDimensions(base64Data: string): ImageDimensions | null;
export function getJpegDimensions(base64Data: string): ImageDimensions | null;
export function getGifDimensions(base64Data: string): ImageDimensions | null;
export function getWebpDimensions(base64Data: string): ImageDimensions | null;
export function imageFallback(mimeType: string, dimensions?: ImageDimensions, filename?: string): string;
export function renderImage(
  base64Data: string,
  imageDimensions: ImageDimensions,
  options?: ImageRenderOptions,
): { sequence: string; rows: number; imageId?: number } | null;

/** Cuts what a terminal sends into keys and pastes. */
export class StdinBuffer {
  constructor(options?: { timeout?: number });
  on(event: "data" | "paste", listener: (data: string) => void): this;
  once(event: "data" | "paste", listener: (data: string) => void): this;
  off(event: "data" | "paste", listener: (data: string) => void): this;
  process(data: string | Uint8Array): void;
  flush(): string[];
  clear(): void;
  getBuffer(): string;
  destroy(): void;
}
