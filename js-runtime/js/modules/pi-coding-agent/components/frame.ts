// Small components from which extensions compose their screens.
import { Container } from "pi:pi-tui/component.ts";
import { CancellableLoader, Loader } from "pi:pi-tui/loader.ts";
import { Spacer, Text } from "pi:pi-tui/text.ts";
import { keyHint } from "pi:pi-coding-agent/key-hints.ts";
import { type Theme, theme as currentTheme } from "pi:pi-coding-agent/theme/index.ts";

type Paint = (text: string) => string;

/** A horizontal line as wide as the terminal. */
export class DynamicBorder {
  private color: Paint;

  constructor(color: Paint = (text) => currentTheme.fg("border", text)) {
    this.color = color;
  }

  invalidate(): void {
    // No state is kept between renderings.
  }

  render(width: number): string[] {
    return [this.color("\u2500".repeat(Math.max(1, width)))];
  }
}

/** A loader between two lines; Escape ends it unless `cancellable` is false. */
export class BorderedLoader extends Container {
  private loader: Loader;
  private _controller = new AbortController();

  constructor(
    tui: { requestRender(): void },
    theme: Theme,
    message: string,
    options: { cancellable?: boolean } = {},
  ) {
    super();
    const color = (name: string): Paint => (text) => theme.fg(name, text);
    const cancellable = options.cancellable ?? true;
    const Kind = cancellable ? CancellableLoader : Loader;
    this.loader = new Kind(tui, color("accent"), color("muted"), message);
    const hint = [new Spacer(1), new Text(keyHint("tui.select.cancel", "cancel"), 1, 0)];
    this.children = [
      new DynamicBorder(color("border")),
      this.loader,
      ...(cancellable ? hint : []),
      new Spacer(1),
      new DynamicBorder(color("border")),
    ];
  }

  get signal(): AbortSignal {
    return this.loader instanceof CancellableLoader ? this.loader.signal : this._controller.signal;
  }

  set onAbort(handler: (() => void) | undefined) {
    if (this.loader instanceof CancellableLoader) this.loader.onAbort = handler;
  }

  handleInput(data: string): void {
    if (this.loader instanceof CancellableLoader) this.loader.handleInput(data);
  }

  dispose(): void {
    this.loader.stop();
  }
}
