// The common base of `Text` and `Markdown`: caches the lines of a text for a width.
import type { Component } from "pi:pi-tui/component.ts";

/** The method that draws the text; a symbol, so that no subclass of an extension overrides it by accident. */
export const LINES = Symbol("lines");

export abstract class WrappedText implements Component {
  protected text: string;
  protected paddingX: number;
  protected paddingY: number;
  private _rendered: { text: string; width: number; lines: string[] } | undefined;

  constructor(text: string, paddingX: number, paddingY: number) {
    this.text = text;
    this.paddingX = paddingX;
    this.paddingY = paddingY;
  }

  abstract [LINES](width: number): string[];

  setText(text: string): void {
    this.text = text;
    this._rendered = undefined;
  }

  invalidate(): void {
    this._rendered = undefined;
  }

  render(width: number): string[] {
    const { text } = this;
    const rendered = this._rendered;
    if (rendered && rendered.width === width && rendered.text === text) return rendered.lines;
    const lines = this[LINES](width);
    this._rendered = { text, width, lines };
    return lines;
  }
}
