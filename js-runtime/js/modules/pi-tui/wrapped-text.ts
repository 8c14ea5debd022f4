// What `Text` and `Markdown` have in common: a text that is drawn once for a width.
import type { Component } from "pi:pi-tui/component.ts";

export abstract class WrappedText implements Component {
  protected text: string;
  protected paddingX: number;
  protected paddingY: number;
  private rendered?: { text: string; width: number; lines: string[] };

  constructor(text: string, paddingX: number, paddingY: number) {
    this.text = text;
    this.paddingX = paddingX;
    this.paddingY = paddingY;
  }

  protected abstract lines(width: number): string[];

  setText(text: string): void {
    this.text = text;
    this.rendered = undefined;
  }

  invalidate(): void {
    this.rendered = undefined;
  }

  render(width: number): string[] {
    const { rendered, text } = this;
    if (rendered && rendered.width === width && rendered.text === text) return rendered.lines;
    const lines = this.lines(width);
    this.rendered = { text, width, lines };
    return lines;
  }
}
