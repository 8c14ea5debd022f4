// Components on a terminal: who has the focus, what is above what, and when to draw.
import { getCapabilities, setCellDimensions } from "pi:pi-tui/capabilities.ts";
import { type Component, Container, CURSOR_MARKER, isFocusable } from "pi:pi-tui/component.ts";
import { isImageLine } from "pi:pi-tui/image.ts";
import { isKeyRelease, matchesKey } from "pi:pi-tui/keys.ts";
import {
  drawOverlays,
  type Overlay,
  type OverlayHandle,
  type OverlayOptions,
  RESET,
} from "pi:pi-tui/overlays.ts";
import { type CursorPlace, Screen } from "pi:pi-tui/screen.ts";
import type { Terminal } from "pi:pi-tui/terminal.ts";
import { visibleWidth } from "pi:pi-tui/text-metrics.ts";

export type InputListener = (data: string) => { consume?: boolean; data?: string } | undefined | void;

/** Sixty times in a second is enough for everybody. */
const FRAME_MILLISECONDS = 16;
const CELL_SIZE = /^\x1b\[6;(\d+);(\d+)t$/;

export class TUI extends Container {
  terminal: Terminal;
  /** Shift+Ctrl+D, before anybody else gets it. */
  onDebug?: () => void;
  #screen: Screen;
  #focused: Component | null = null;
  #listeners = new Set<InputListener>();
  #overlays: Overlay[] = [];
  #order = 0;
  private stopped = false;
  #requested = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lastDrawn = -Infinity;

  constructor(terminal: Terminal, showHardwareCursor?: boolean) {
    super();
    this.terminal = terminal;
    this.#screen = new Screen(terminal);
    if (showHardwareCursor !== undefined) this.#screen.showHardwareCursor = showHardwareCursor;
  }

  get fullRedraws(): number {
    return this.#screen.fullRedraws;
  }

  getShowHardwareCursor(): boolean {
    return this.#screen.showHardwareCursor;
  }

  setShowHardwareCursor(enabled: boolean): void {
    if (this.#screen.showHardwareCursor === enabled) return;
    this.#screen.showHardwareCursor = enabled;
    if (!enabled) this.terminal.hideCursor();
    this.requestRender();
  }

  getClearOnShrink(): boolean {
    return this.#screen.clearOnShrink;
  }

  setClearOnShrink(enabled: boolean): void {
    this.#screen.clearOnShrink = enabled;
  }

  setFocus(component: Component | null): void {
    if (isFocusable(this.#focused)) this.#focused.focused = false;
    this.#focused = component;
    if (isFocusable(component)) component.focused = true;
  }

  showOverlay(component: Component, options?: OverlayOptions): OverlayHandle {
    const overlay: Overlay = {
      component,
      options,
      before: this.#focused,
      hidden: false,
      order: (this.#order += 1),
    };
    this.#overlays.push(overlay);
    const takeFocus = () => {
      if (!options?.nonCapturing && this.#isVisible(overlay)) this.setFocus(component);
    };
    takeFocus();
    this.terminal.hideCursor();
    this.requestRender();
    const isFocused = () => this.#focused === component;
    return {
      hide: () => this.#remove(overlay),
      setHidden: (hidden) => {
        if (overlay.hidden === hidden) return;
        overlay.hidden = hidden;
        if (hidden) this.#passFocus(overlay);
        else if (!options?.nonCapturing && this.#isVisible(overlay)) {
          overlay.order = this.#order += 1;
          takeFocus();
        }
        this.requestRender();
      },
      isHidden: () => overlay.hidden,
      focus: () => {
        if (!this.#overlays.includes(overlay) || !this.#isVisible(overlay)) return;
        if (!isFocused()) this.setFocus(component);
        overlay.order = this.#order += 1;
        this.requestRender();
      },
      unfocus: () => {
        if (!isFocused()) return;
        const front = this.#frontOverlay();
        this.setFocus(front && front !== overlay ? front.component : overlay.before);
        this.requestRender();
      },
      isFocused,
    };
  }

  /** Hides the topmost overlay. */
  hideOverlay(): void {
    const overlay = this.#overlays.at(-1);
    if (overlay) this.#remove(overlay);
  }

  hasOverlay(): boolean {
    return this.#overlays.some((overlay) => this.#isVisible(overlay));
  }

  #remove(overlay: Overlay): void {
    const index = this.#overlays.indexOf(overlay);
    if (index < 0) return;
    this.#overlays.splice(index, 1);
    this.#passFocus(overlay);
    if (this.#overlays.length === 0) this.terminal.hideCursor();
    this.requestRender();
  }

  /** To the overlay that is now in front, or to whoever had it before. */
  #passFocus(overlay: Overlay): void {
    if (this.#focused !== overlay.component) return;
    this.setFocus(this.#frontOverlay()?.component ?? overlay.before);
  }

  #isVisible({ hidden, options }: Overlay): boolean {
    if (hidden) return false;
    return options?.visible?.(this.terminal.columns, this.terminal.rows) ?? true;
  }

  #frontOverlay(): Overlay | undefined {
    return this.#overlays.findLast((overlay) =>
      !overlay.options?.nonCapturing && this.#isVisible(overlay)
    );
  }

  override invalidate(): void {
    super.invalidate();
    for (const { component } of this.#overlays) component.invalidate?.();
  }

  start(): void {
    this.stopped = false;
    this.terminal.start((data) => this.handleInput(data), () => this.requestRender());
    this.terminal.hideCursor();
    // How large a character is matters for images only.
    if (getCapabilities().images) this.terminal.write("\x1b[16t");
    this.requestRender();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#screen.leave();
    this.terminal.showCursor();
    this.terminal.stop();
  }

  addInputListener(listener: InputListener): () => void {
    this.#listeners.add(listener);
    return () => this.removeInputListener(listener);
  }

  removeInputListener(listener: InputListener): void {
    this.#listeners.delete(listener);
  }

  /** Draws soon, and once for all that is asked for meanwhile. */
  requestRender(force = false): void {
    if (force) {
      this.#screen.forget();
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#lastDrawn = -Infinity;
    } else if (this.#requested) return;
    this.#requested = true;
    queueMicrotask(() => (force ? this.#drawRequested() : this.#schedule()));
  }

  #schedule(): void {
    if (this.stopped || this.#timer || !this.#requested) return;
    const wait = Math.max(0, this.#lastDrawn + FRAME_MILLISECONDS - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#drawRequested();
      this.#schedule();
    }, wait);
  }

  #drawRequested(): void {
    if (this.stopped || !this.#requested) return;
    this.#requested = false;
    this.#lastDrawn = performance.now();
    this.#draw();
  }

  #draw(): void {
    const { columns, rows } = this.terminal;
    const visible = this.#overlays.filter((overlay) => this.#isVisible(overlay));
    let lines = this.render(columns);
    if (this.#overlays.length > 0) lines = drawOverlays(lines, visible, columns, rows);
    const cursor = takeCursor(lines, rows);
    const closed = lines.map((line) => (isImageLine(line) ? line : line + RESET));
    this.#screen.draw(closed, cursor, this.#overlays.length > 0);
  }

  private handleInput(data: string): void {
    for (const listener of this.#listeners) {
      const answer = listener(data);
      if (answer?.consume) return;
      data = answer?.data ?? data;
    }
    if (data === "" && this.#listeners.size > 0) return;
    if (this.#takeCellSize(data)) return;
    if (this.onDebug && matchesKey(data, "shift+ctrl+d")) {
      this.onDebug();
      return;
    }
    // An overlay may have become invisible since, with the size of the terminal.
    const overlay = this.#overlays.find(({ component }) => component === this.#focused);
    if (overlay && !this.#isVisible(overlay)) this.#passFocus(overlay);
    const focused = this.#focused;
    if (!focused?.handleInput) return;
    if (isKeyRelease(data) && !focused.wantsKeyRelease) return;
    focused.handleInput(data);
    this.requestRender();
  }

  /** Takes the terminal's answer to how large a character is. */
  #takeCellSize(data: string): boolean {
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

/** Takes the marker of the cursor out of the lines on the screen; the last one counts. */
function takeCursor(lines: string[], rows: number): CursorPlace | undefined {
  for (let row = lines.length - 1; row >= Math.max(0, lines.length - rows); row--) {
    const at = lines[row].indexOf(CURSOR_MARKER);
    if (at < 0) continue;
    const before = lines[row].slice(0, at);
    lines[row] = before + lines[row].slice(at + CURSOR_MARKER.length);
    return { row, col: visibleWidth(before) };
  }
  return undefined;
}
