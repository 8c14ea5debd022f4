// A container with padding and a background.
import { Container } from "pi:pi-tui/component.ts";
import { fillLine, rows } from "pi:pi-tui/text-metrics.ts";

type Paint = (text: string) => string;

export class Box extends Container {
  private paddingX: number;
  private paddingY: number;
  private bgFn?: Paint;

  constructor(paddingX = 1, paddingY = 1, bgFn?: Paint) {
    super();
    this.paddingX = paddingX;
    this.paddingY = paddingY;
    this.bgFn = bgFn;
  }

  setBgFn(bgFn?: Paint): void {
    this.bgFn = bgFn;
  }

  override render(width: number): string[] {
    const content = super.render(Math.max(1, width - 2 * this.paddingX));
    if (content.length === 0) return [];
    const margin = " ".repeat(this.paddingX);
    const empty = rows(this.paddingY);
    return [...empty, ...content.map((line) => margin + line), ...empty].map((line) =>
      fillLine(line, width, this.bgFn)
    );
  }
}
