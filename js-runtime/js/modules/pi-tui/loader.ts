// A line that shows that something is going on, and one that Escape ends.
import { getKeybindings } from "pi:pi-tui/keys/keybindings.ts";
import { Text } from "pi:pi-tui/text.ts";

type Paint = (text: string) => string;

const SPINNER_FRAMES = [..."\u280b\u2819\u2839\u2838\u283c\u2834\u2826\u2827\u2807\u280f"];
const SPINNER_INTERVAL = 80;

export class Loader extends Text {
  private ui: { requestRender(): void } | null;
  private spinnerColorFn: Paint;
  private messageColorFn: Paint;
  private message: string;
  private _frame = 0;
  private _timer: ReturnType<typeof setInterval> | undefined;

  constructor(
    ui: { requestRender(): void } | null,
    spinnerColorFn: Paint,
    messageColorFn: Paint,
    message = "Loading...",
  ) {
    super("", 1, 0);
    this.ui = ui;
    this.spinnerColorFn = spinnerColorFn;
    this.messageColorFn = messageColorFn;
    this.message = message;
    this.start();
  }

  override render(width: number): string[] {
    return ["", ...super.render(width)];
  }

  start(): void {
    this.stop();
    this._show();
    this._timer = setInterval(() => {
      this._frame = (this._frame + 1) % SPINNER_FRAMES.length;
      this._show();
    }, SPINNER_INTERVAL);
  }

  stop(): void {
    clearInterval(this._timer);
    this._timer = undefined;
  }

  setMessage(message: string): void {
    this.message = message;
    this._show();
  }

  private _show(): void {
    this.setText(`${this.spinnerColorFn(SPINNER_FRAMES[this._frame])} ${this.messageColorFn(this.message)}`);
    this.ui?.requestRender();
  }
}

export class CancellableLoader extends Loader {
  private _controller = new AbortController();
  onAbort?: () => void;

  get signal(): AbortSignal {
    return this._controller.signal;
  }

  get aborted(): boolean {
    return this.signal.aborted;
  }

  handleInput(data: string): void {
    if (!getKeybindings().matches(data, "tui.select.cancel")) return;
    this._controller.abort();
    this.onAbort?.();
  }

  dispose(): void {
    this.stop();
  }
}
