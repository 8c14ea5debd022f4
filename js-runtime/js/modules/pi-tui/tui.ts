// Draws components on a terminal: focus, overlays, and the time of drawing.
import { getCapabilities, setCellDimensions } from "pi:pi-tui/image/capabilities.ts";
import { type Component, Container, CURSOR_MARKER, isFocusable } from "pi:pi-tui/component.ts";
import { isImageLine } from "pi:pi-tui/image/index.ts";
import { isKeyRelease, matchesKey } from "pi:pi-tui/keys/index.ts";
import {
  drawOverlays,
  type Overlay,
  type OverlayHandle,
  type OverlayOptions,
  RESET,
} from "pi:pi-tui/overlays.ts";
import { type CursorPosition, Screen } from "pi:pi-tui/screen.ts";
import type { Terminal } from "pi:pi-tui/terminal.ts";
import { visibleWidth } from "pi:pi-tui/text-metrics.ts";

export type InputListener = (data: string) => { consume?: boolean; data?: string } | undefined | void;

/** Sixty frames per second are enough. */
const REDRAW_INTERVAL = 16;
const CELL_SIZE = /^\x1b\[6;(\d+);(\d+)t$/;

export class TUI extends Container {
  terminal: Terminal;
  /** Called for Shift+Ctrl+D before any component gets the key. */
  onDebug?: () => void;
  private _screen: Screen;
  private _focused: Component | null = null;
  private _listeners = new Set<InputListener>();
  private _overlays: Overlay[] = [];
  private _order = 0;
  private stopped = false;
  private _requested = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _lastDrawn = -Infinity;

  constructor(terminal: Terminal, showHardwareCursor?: boolean) {
    super();
    this.terminal = terminal;
    this._screen = new Screen(terminal);
    if (showHardwareCursor !== undefined) this._screen.showHardwareCursor = showHardwareCursor;
  }

  get fullRedraws(): number {
    return this._screen.fullRedraws;
  }

  getShowHardwareCursor(): boolean {
    return this._screen.showHardwareCursor;
  }

  setShowHardwareCursor(enabled: boolean): void {
    if (this._screen.showHardwareCursor === enabled) return;
    this._screen.showHardwareCursor = enabled;
    if (!enabled) this.terminal.hideCursor();
    this.requestRender();
  }

  getClearOnShrink(): boolean {
    return this._screen.clearOnShrink;
  }

  setClearOnShrink(enabled: boolean): void {
    this._screen.clearOnShrink = enabled;
  }

  setFocus(component: Component | null): void {
    if (isFocusable(this._focused)) this._focused.focused = false;
    this._focused = component;
    if (isFocusable(component)) component.focused = true;
  }

  showOverlay(component: Component, options?: OverlayOptions): OverlayHandle {
    const overlay: Overlay = {
      component,
      options,
      before: this._focused,
      hidden: false,
      order: (this._order += 1),
    };
    this._overlays.push(overlay);
    const takeFocus = () => {
      if (!options?.nonCapturing && this._isVisible(overlay)) this.setFocus(component);
    };
    takeFocus();
    this.terminal.hideCursor();
    this.requestRender();
    const isFocused = () => this._focused === component;
    return {
      hide: () => this._remove(overlay),
      setHidden: (hidden) => {
        if (overlay.hidden === hidden) return;
        overlay.hidden = hidden;
        if (hidden) this._passFocus(overlay);
        else if (!options?.nonCapturing && this._isVisible(overlay)) {
          overlay.order = this._order += 1;
          takeFocus();
        }
        this.requestRender();
      },
      isHidden: () => overlay.hidden,
      focus: () => {
        if (!this._overlays.includes(overlay) || !this._isVisible(overlay)) return;
        if (!isFocused()) this.setFocus(component);
        overlay.order = this._order += 1;
        this.requestRender();
      },
      unfocus: () => {
        if (!isFocused()) return;
        const front = this._frontOverlay();
        this.setFocus(front && front !== overlay ? front.component : overlay.before);
        this.requestRender();
      },
      isFocused,
    };
  }

  /** Hides the topmost overlay. */
  hideOverlay(): void {
    const overlay = this._overlays.at(-1);
    if (overlay) this._remove(overlay);
  }

  hasOverlay(): boolean {
    return this._overlays.some((overlay) => this._isVisible(overlay));
  }

  private _remove(overlay: Overlay): void {
    const index = this._overlays.indexOf(overlay);
    if (index < 0) return;
    this._overlays.splice(index, 1);
    this._passFocus(overlay);
    if (this._overlays.length === 0) this.terminal.hideCursor();
    this.requestRender();
  }

  /** Passes the focus to the overlay that is now in front, or to the component that had it before. */
  private _passFocus(overlay: Overlay): void {
    if (this._focused !== overlay.component) return;
    this.setFocus(this._frontOverlay()?.component ?? overlay.before);
  }

  private _isVisible({ hidden, options }: Overlay): boolean {
    if (hidden) return false;
    return options?.visible?.(this.terminal.columns, this.terminal.rows) ?? true;
  }

  private _frontOverlay(): Overlay | undefined {
    return this._overlays.findLast((overlay) =>
      !overlay.options?.nonCapturing && this._isVisible(overlay)
    );
  }

  override invalidate(): void {
    super.invalidate();
    for (const { component } of this._overlays) component.invalidate?.();
  }

  start(): void {
    this.stopped = false;
    this.terminal.start((data) => this.handleInput(data), () => this.requestRender());
    this.terminal.hideCursor();
    // The size of a character matters for images only.
    if (getCapabilities().images) this.terminal.write("\x1b[16t");
    this.requestRender();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this._timer);
    this._timer = undefined;
    this._screen.leave();
    this.terminal.showCursor();
    this.terminal.stop();
  }

  addInputListener(listener: InputListener): () => void {
    this._listeners.add(listener);
    return () => this.removeInputListener(listener);
  }

  removeInputListener(listener: InputListener): void {
    this._listeners.delete(listener);
  }

  /** Draws soon, and once for all requests until then. */
  requestRender(force = false): void {
    if (force) {
      this._screen.forget();
      clearTimeout(this._timer);
      this._timer = undefined;
      this._lastDrawn = -Infinity;
    } else if (this._requested) return;
    this._requested = true;
    queueMicrotask(() => (force ? this._drawRequested() : this._schedule()));
  }

  private _schedule(): void {
    if (this.stopped || this._timer || !this._requested) return;
    const wait = Math.max(0, this._lastDrawn + REDRAW_INTERVAL - performance.now());
    this._timer = setTimeout(() => {
      this._timer = undefined;
      this._drawRequested();
      this._schedule();
    }, wait);
  }

  private _drawRequested(): void {
    if (this.stopped || !this._requested) return;
    this._requested = false;
    this._lastDrawn = performance.now();
    this._draw();
  }

  private _draw(): void {
    const { columns, rows } = this.terminal;
    const visible = this._overlays.filter((overlay) => this._isVisible(overlay));
    let lines = this.render(columns);
    if (this._overlays.length > 0) lines = drawOverlays(lines, visible, columns, rows);
    const cursor = takeCursor(lines, rows);
    const closed = lines.map((line) => (isImageLine(line) ? line : line + RESET));
    this._screen.draw(closed, cursor, this._overlays.length > 0);
  }

  private handleInput(data: string): void {
    for (const listener of this._listeners) {
      const answer = listener(data);
      if (answer?.consume) return;
      data = answer?.data ?? data;
    }
    if (data === "" && this._listeners.size > 0) return;
    if (this._takeCellSize(data)) return;
    if (this.onDebug && matchesKey(data, "shift+ctrl+d")) {
      this.onDebug();
      return;
    }
    // The overlay may have become invisible since the terminal was resized.
    const overlay = this._overlays.find(({ component }) => component === this._focused);
    if (overlay && !this._isVisible(overlay)) this._passFocus(overlay);
    const focused = this._focused;
    if (!focused?.handleInput) return;
    if (isKeyRelease(data) && !focused.wantsKeyRelease) return;
    focused.handleInput(data);
    this.requestRender();
  }

  /** Reads the terminal's report of the size of a character. */
  private _takeCellSize(data: string): boolean {
    const match = CELL_SIZE.exec(data);
    if (!match) return false;
    const [heightPx, widthPx] = [Number(match[1]), Number(match[2])];
    if (heightPx > 0 && widthPx > 0) {
      setCellDimensions({ widthPx, heightPx });
      this.invalidate();
      this.requestRender();
    }
    return true;
  }
}

/** Removes the marker of the cursor from the lines on the screen; the last one counts. */
function takeCursor(lines: string[], rows: number): CursorPosition | undefined {
  for (let row = lines.length - 1; row >= Math.max(0, lines.length - rows); row--) {
    const at = lines[row].indexOf(CURSOR_MARKER);
    if (at < 0) continue;
    const before = lines[row].slice(0, at);
    lines[row] = before + lines[row].slice(at + CURSOR_MARKER.length);
    return { row, col: visibleWidth(before) };
  }
  return undefined;
}
