// The terminal as components see it: drawing, overlays, images, input.
import type { Component, Container } from "../pi-tui.js";

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
export class ProcessTerminal implements Terminal {
  start(onInput: (data: string) => void, onResize: () => void): void;
  stop(): void;
  drainInput(maxMs?: number, idleMs?: number): Promise<void>;
  write(data: string): void;
  get columns(): number;
  get rows(): number;
  get kittyProtocolActive(): boolean;
  moveBy(lines: number): void;
  hideCursor(): void;
  showCursor(): void;
  clearLine(): void;
  clearFromCursor(): void;
  clearScreen(): void;
  setTitle(title: string): void;
}

export type OverlayAnchor =
  | "center" | "top-left" | "top-right" | "bottom-left" | "bottom-right" | "top-center" | "bottom-center"
  | "left-center" | "right-center";
export interface OverlayMargin {
  top?: number;
  right?: number;
  bottom?: number;
  left?: number;
}
/** Columns or lines, or a share of the terminal. */
export type SizeValue = number | `${number}%`;
export interface OverlayOptions {
  width?: SizeValue;
  minWidth?: number;
  maxHeight?: SizeValue;
  anchor?: OverlayAnchor;
  offsetX?: number;
  offsetY?: number;
  /** Replaces an anchor. */
  row?: SizeValue;
  col?: SizeValue;
  margin?: OverlayMargin | number;
  visible?(termWidth: number, termHeight: number): boolean;
  /** Whether the keyboard stays with the components below. */
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

export type TuiInputListenerResult = { consume?: boolean; data?: string } | undefined;
export type TuiInputListener = (data: string) => TuiInputListenerResult;

/** Draws components on a terminal, and passes them its input. */
/** Always `false`: only a full-screen terminal knows the size of the visible part, and there is none yet. */
export function isViewportTUI(tui: TUI): false;
export class TUI extends Container {
  terminal: Terminal;
  /** From newer versions, not set: there is no mode but the regular one. */
  readonly mode?: "regular" | "fullscreen";
  onDebug?: () => void;
  constructor(terminal: Terminal, showHardwareCursor?: boolean);
  get fullRedraws(): number;
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
  /** Returns a function that removes the listener. */
  addInputListener(listener: TuiInputListener): () => void;
  removeInputListener(listener: TuiInputListener): void;
  requestRender(force?: boolean): void;
}

export interface StdinBufferOptions {
  /** Milliseconds after which an unfinished escape sequence is passed on as it is. */
  timeout?: number;
}
export interface StdinBufferEventMap {
  data: [string];
  paste: [string];
}
type InputKind = keyof StdinBufferEventMap;
type InputTaker = (data: string) => void;
/** Splits terminal input into keys and pastes. */
export class StdinBuffer {
  constructor(options?: StdinBufferOptions);
  on(event: InputKind, listener: InputTaker): this;
  once(event: InputKind, listener: InputTaker): this;
  off(event: InputKind, listener: InputTaker): this;
  addListener(event: InputKind, listener: InputTaker): this;
  removeListener(event: InputKind, listener: InputTaker): this;
  removeAllListeners(event?: InputKind): this;
  emit(event: InputKind, data: string): boolean;
  listenerCount(event: InputKind): number;
  process(data: string | Uint8Array): void;
  flush(): string[];
  clear(): void;
  getBuffer(): string;
  destroy(): void;
}

// ---- Images ----

export type ImageProtocol = "kitty" | "iterm2" | null;
export interface TerminalCapabilities {
  images: ImageProtocol;
  trueColor: boolean;
  hyperlinks: boolean;
}
export interface CellDimensions {
  widthPx: number;
  heightPx: number;
}
export interface ImageDimensions {
  widthPx: number;
  heightPx: number;
}
export interface ImageRenderOptions {
  maxWidthCells?: number;
  maxHeightCells?: number;
  preserveAspectRatio?: boolean;
  imageId?: number;
}
export interface ImageTheme {
  fallbackColor(text: string): string;
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
export function getCapabilities(): TerminalCapabilities;
export function detectCapabilities(): TerminalCapabilities;
export function setCapabilities(capabilities: TerminalCapabilities): void;
export function resetCapabilitiesCache(): void;
export function getCellDimensions(): CellDimensions;
export function setCellDimensions(dimensions: CellDimensions): void;
export function allocateImageId(): number;
export function encodeKitty(
  base64Data: string,
  options?: { columns?: number; rows?: number; imageId?: number },
): string;
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
export function deleteKittyImage(imageId: number): string;
export function deleteAllKittyImages(): string;
/** The number of lines of an image at that width. */
export function calculateImageRows(
  imageDimensions: ImageDimensions,
  targetWidthCells: number,
  cellDimensions?: CellDimensions,
): number;
export function getImageDimensions(base64Data: string, mimeType: string): ImageDimensions | null;
export function getPngDimensions(base64Data: string): ImageDimensions | null;
export function getJpegDimensions(base64Data: string): ImageDimensions | null;
export function getGifDimensions(base64Data: string): ImageDimensions | null;
export function getWebpDimensions(base64Data: string): ImageDimensions | null;
/** `null` if the terminal cannot show images. */
export function renderImage(
  base64Data: string,
  imageDimensions: ImageDimensions,
  options?: ImageRenderOptions,
): { sequence: string; rows: number; imageId?: number } | null;
export function imageFallback(mimeType: string, dimensions?: ImageDimensions, filename?: string): string;
export function hyperlink(text: string, url: string): string;

// Without this line every declaration would be exported.
export {};
