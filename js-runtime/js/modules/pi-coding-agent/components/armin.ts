// An animated portrait: /arminsayshi.
import type { Component } from "pi:pi-tui/component.ts";
import { theme } from "pi:pi-coding-agent/theme/index.ts";

const MESSAGE = "ARMIN SAYS HI";
const ANIMATION_INTERVAL = 33;
/** The number of frames of the animation. */
const ANIMATION_FRAMES = 40;

/** One line of text shows two rows of pixels; drawn by hand for this program. */
const PORTRAIT = [
  "        \u2584\u2584\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2584\u2584        ",
  "     \u2584\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2584     ",
  "   \u2584\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2584   ",
  "  \u2588\u2588\u2588\u2580          \u2580\u2588\u2588\u2588\u2588  ",
  " \u2588\u2588\u2588   \u2584\u2584      \u2584\u2584  \u2588\u2588\u2588 ",
  " \u2588\u2588   \u2588  \u2588    \u2588  \u2588  \u2588\u2588 ",
  " \u2588\u2588    \u2580\u2580      \u2580\u2580   \u2588\u2588 ",
  "  \u2588\u2584       \u2588\u2588       \u2584\u2588  ",
  "   \u2588    \u2584      \u2584    \u2588   ",
  "   \u2588\u2588\u2584   \u2580\u2588\u2588\u2588\u2588\u2580   \u2584\u2588\u2588   ",
  "    \u2580\u2588\u2588\u2588\u2584\u2584    \u2584\u2584\u2588\u2588\u2588\u2580    ",
  "       \u2580\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2580       ",
];

type Effect = (x: number, y: number, progress: number) => boolean;

/** Each effect returns the cells that are visible after a share of the time. */
const EFFECTS: readonly Effect[] = [
  // Row by row, scanned, from the middle, and scattered.
  (x, y, progress) => (y * PORTRAIT[0].length + x) / (PORTRAIT.length * PORTRAIT[0].length) < progress,
  (_x, y, progress) => y / PORTRAIT.length < progress,
  (_x, y, progress) => Math.abs(y - PORTRAIT.length / 2) < (progress * PORTRAIT.length) / 2 + 0.5,
  (x, y, progress) => ((x * 7919 + y * 104729) % 97) / 97 < progress,
];

export class ArminComponent implements Component {
  private ui: { requestRender(): void };
  private effect = EFFECTS[Math.floor(Math.random() * EFFECTS.length)];
  private _frame = 0;
  private _timer: ReturnType<typeof setInterval> | undefined;

  constructor(ui: { requestRender(): void }) {
    this.ui = ui;
    this._timer = setInterval(() => {
      this._frame += 1;
      if (this._frame >= ANIMATION_FRAMES) this.dispose();
      this.ui.requestRender();
    }, ANIMATION_INTERVAL);
  }

  invalidate(): void {
    // No state is kept between renderings.
  }

  render(width: number): string[] {
    const progress = this._frame / ANIMATION_FRAMES;
    const rows = PORTRAIT.map((row, y) =>
      Array.from(row, (cell, x) => (progress >= 1 || this.effect(x, y, progress) ? cell : " ")).join("")
    );
    const room = Math.max(0, width - 1);
    return [...rows, MESSAGE].map((row) => {
      const text = row.slice(0, room);
      return ` ${theme.fg("accent", text)}${" ".repeat(room - text.length)}`;
    });
  }

  dispose(): void {
    clearInterval(this._timer);
    this._timer = undefined;
  }
}
