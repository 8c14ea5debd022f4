// A text component, wrapped into lines or cut to one.
import type { Component } from "pi:pi-tui/component.ts";
import { fillLine, rows, truncateToWidth, wrapTextWithAnsi } from "pi:pi-tui/text-metrics.ts";
import { LINES, WrappedText } from "pi:pi-tui/wrapped-text.ts";

type Paint = (text: string) => string;

export class Text extends WrappedText {
  private customBgFn?: Paint;

  constructor(text = "", paddingX = 1, paddingY = 1, customBgFn?: Paint) {
    super(text, paddingX, paddingY);
    this.customBgFn = customBgFn;
  }

  setCustomBgFn(customBgFn?: Paint): void {
    this.customBgFn = customBgFn;
    this.invalidate();
  }

  [LINES](width: number): string[] {
    if (!this.text?.trim()) return [];
    const margin = " ".repeat(this.paddingX);
    const content = wrapTextWithAnsi(
      this.text.replaceAll("\t", "   "),
      Math.max(1, width - 2 * this.paddingX),
    );
    const empty = rows(this.paddingY);
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
    // No state is kept between renderings.
  }

  render(width: number): string[] {
    const margin = " ".repeat(this.paddingX);
    const [line = ""] = this.text.split("\n", 1);
    const content = truncateToWidth(line, Math.max(1, width - 2 * this.paddingX));
    const empty = rows(this.paddingY, " ".repeat(width));
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
    // No state is kept between renderings.
  }

  render(_width: number): string[] {
    return rows(this.lines);
  }
}
