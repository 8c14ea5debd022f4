// Text, wrapped into as many lines as it needs or cut to one.
import type { Component } from "pi:pi-tui/component.ts";
import { fillLine, truncateToWidth, wrapTextWithAnsi } from "pi:pi-tui/text-metrics.ts";

type Paint = (text: string) => string;

export class Text implements Component {
  private text: string;
  private paddingX: number;
  private paddingY: number;
  private customBgFn?: Paint;
  private rendered?: { text: string; width: number; lines: string[] };

  constructor(text = "", paddingX = 1, paddingY = 1, customBgFn?: Paint) {
    this.text = text;
    this.paddingX = paddingX;
    this.paddingY = paddingY;
    this.customBgFn = customBgFn;
  }

  setText(text: string): void {
    this.text = text;
    this.rendered = undefined;
  }

  setCustomBgFn(customBgFn?: Paint): void {
    this.customBgFn = customBgFn;
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

  private lines(width: number): string[] {
    if (!this.text?.trim()) return [];
    const margin = " ".repeat(this.paddingX);
    const content = wrapTextWithAnsi(
      this.text.replaceAll("\t", "   "),
      Math.max(1, width - 2 * this.paddingX),
    );
    const empty = Array<string>(this.paddingY).fill("");
    return [...empty, ...content.map((line) => margin + line + margin), ...empty].map((line) =>
      fillLine(line, width, this.customBgFn)
    );
  }
}

export class TruncatedText implements Component {
  private text: string;
  private paddingX: number;
  private paddingY: number;

  constructor(text: string, paddingX = 0, paddingY = 0) {
    this.text = text;
    this.paddingX = paddingX;
    this.paddingY = paddingY;
  }

  invalidate(): void {
    // Nothing is kept between renderings.
  }

  render(width: number): string[] {
    const margin = " ".repeat(this.paddingX);
    const [line = ""] = this.text.split("\n", 1);
    const content = truncateToWidth(line, Math.max(1, width - 2 * this.paddingX));
    const empty = Array<string>(this.paddingY).fill(" ".repeat(width));
    return [...empty, fillLine(margin + content + margin, width), ...empty];
  }
}

/** Empty lines. */
export class Spacer implements Component {
  private lines: number;

  constructor(lines = 1) {
    this.lines = lines;
  }

  setLines(lines: number): void {
    this.lines = lines;
  }

  invalidate(): void {
    // Nothing is kept between renderings.
  }

  render(_width: number): string[] {
    return Array<string>(Math.max(0, this.lines)).fill("");
  }
}
