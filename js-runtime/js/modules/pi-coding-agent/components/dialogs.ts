// The dialogs that extensions open with ctx.ui.select, input and editor.
import { Container, type Focusable } from "pi:pi-tui/component.ts";
import { Editor, type EditorOptions } from "pi:pi-tui/editor/index.ts";
import { Input } from "pi:pi-tui/input.ts";
import { getKeybindings, type KeybindingsManager } from "pi:pi-tui/keys/keybindings.ts";
import { Spacer, Text } from "pi:pi-tui/text.ts";
import type { TUI } from "pi:pi-tui/tui.ts";
import { env, fs, os, path, platform, processes } from "pi:node.ts";
import { DynamicBorder } from "pi:pi-coding-agent/components/frame.ts";
import { keyHint, rawKeyHint } from "pi:pi-coding-agent/key-hints.ts";
import { getEditorTheme } from "pi:pi-coding-agent/theme/components.ts";
import { theme } from "pi:pi-coding-agent/theme/index.ts";

export interface DialogOptions {
  tui?: { requestRender(): void };
  /** Milliseconds until the dialog is cancelled; the title counts down. */
  timeout?: number;
}

/** A title between lines, with a countdown if the dialog has a timeout. */
abstract class Dialog extends Container {
  private _timer: ReturnType<typeof setInterval> | undefined;

  protected constructor(title: string, onExpire: () => void, options: DialogOptions = {}) {
    super();
    const heading = new Text("", 1, 0);
    const show = (suffix: string) => heading.setText(theme.fg("accent", title + suffix));
    show("");
    this.children = [new DynamicBorder(), new Spacer(1), heading, new Spacer(1)];
    const { timeout, tui } = options;
    if (!timeout || timeout <= 0 || !tui) return;
    let seconds = Math.ceil(timeout / 1000);
    show(` (${seconds}s)`);
    this._timer = setInterval(() => {
      seconds -= 1;
      show(` (${seconds}s)`);
      tui.requestRender();
      if (seconds > 0) return;
      this.dispose();
      onExpire();
    }, 1000);
  }

  dispose(): void {
    clearInterval(this._timer);
  }
}

function finish(dialog: Dialog, hint: string): void {
  dialog.children.push(new Spacer(1), new Text(hint, 1, 0), new Spacer(1), new DynamicBorder());
}

const isConfirm = (data: string) =>
  getKeybindings().matches(data, "tui.select.confirm") || data === "\n";

export class ExtensionSelectorComponent extends Dialog {
  private options: string[];
  private _selected = 0;
  private _list = new Container();
  private _onSelect: (option: string) => void;
  private _onCancel: () => void;

  constructor(
    title: string,
    options: string[],
    onSelect: (option: string) => void,
    onCancel: () => void,
    opts?: DialogOptions,
  ) {
    super(title, onCancel, opts);
    this.options = options;
    this._onSelect = onSelect;
    this._onCancel = onCancel;
    this.addChild(this._list);
    const hints = [
      rawKeyHint("\u2191\u2193", "navigate"),
      keyHint("tui.select.confirm", "select"),
      keyHint("tui.select.cancel", "cancel"),
    ];
    finish(this, hints.join("  "));
    this._select(0);
  }

  private _select(index: number): void {
    this._selected = Math.max(0, Math.min(index, this.options.length - 1));
    this._list.children = this.options.map((option, i) => {
      const text = i === this._selected
        ? theme.fg("accent", "\u2192 ") + theme.fg("accent", option)
        : `  ${theme.fg("text", option)}`;
      return new Text(text, 1, 0);
    });
  }

  handleInput(data: string): void {
    const keys = getKeybindings();
    if (keys.matches(data, "tui.select.up") || data === "k") this._select(this._selected - 1);
    else if (keys.matches(data, "tui.select.down") || data === "j") this._select(this._selected + 1);
    else if (isConfirm(data)) {
      const option = this.options[this._selected];
      if (option) this._onSelect(option);
    } else if (keys.matches(data, "tui.select.cancel")) this._onCancel();
  }
}

export class ExtensionInputComponent extends Dialog implements Focusable {
  private input = new Input();
  private _onSubmit: (value: string) => void;
  private _onCancel: () => void;

  constructor(
    title: string,
    _placeholder: string | undefined,
    onSubmit: (value: string) => void,
    onCancel: () => void,
    opts?: DialogOptions,
  ) {
    super(title, onCancel, opts);
    this._onSubmit = onSubmit;
    this._onCancel = onCancel;
    this.addChild(this.input);
    finish(
      this,
      `${keyHint("tui.select.confirm", "submit")}  ${keyHint("tui.select.cancel", "cancel")}`,
    );
  }

  get focused(): boolean {
    return this.input.focused;
  }

  set focused(focused: boolean) {
    this.input.focused = focused;
  }

  handleInput(data: string): void {
    if (isConfirm(data)) this._onSubmit(this.input.getValue());
    else if (getKeybindings().matches(data, "tui.select.cancel")) this._onCancel();
    else this.input.handleInput(data);
  }
}

/** The user's external editor, for longer texts. */
const externalEditor = (): string | undefined => env("VISUAL") || env("EDITOR");

export class ExtensionEditorComponent extends Dialog implements Focusable {
  private tui: TUI;
  private keybindings: KeybindingsManager;
  private editor: Editor;
  private _onCancel: () => void;

  constructor(
    tui: TUI,
    keybindings: KeybindingsManager,
    title: string,
    prefill: string | undefined,
    onSubmit: (value: string) => void,
    onCancel: () => void,
    options?: EditorOptions,
  ) {
    super(title, onCancel);
    this.tui = tui;
    this.keybindings = keybindings;
    this._onCancel = onCancel;
    this.editor = new Editor(tui, getEditorTheme(), options);
    if (prefill) this.editor.setText(prefill);
    this.editor.onSubmit = onSubmit;
    this.addChild(this.editor);
    const hints = [
      keyHint("tui.select.confirm", "submit"),
      keyHint("tui.input.newLine", "newline"),
      keyHint("tui.select.cancel", "cancel"),
    ];
    if (externalEditor()) hints.push(keyHint("app.editor.external", "external editor"));
    finish(this, hints.join("  "));
  }

  get focused(): boolean {
    return this.editor.focused;
  }

  set focused(focused: boolean) {
    this.editor.focused = focused;
  }

  handleInput(data: string): void {
    if (getKeybindings().matches(data, "tui.select.cancel")) this._onCancel();
    else if (this.keybindings.matches(data, "app.editor.external")) this.openExternalEditor();
    else this.editor.handleInput(data);
  }

  private openExternalEditor(): void {
    const command = externalEditor();
    if (!command) return;
    const file = path().join(os().tmpdir(), `pi-extension-editor-${Date.now()}.md`);
    try {
      fs().writeFileSync(file, this.editor.getText(), { encoding: "utf8", mode: 0o600 });
      this.tui.stop();
      const [program, ...args] = command.split(" ");
      const options = { stdio: "inherit", shell: platform() === "win32" };
      const { status } = processes().spawnSync(program, [...args, file], options);
      if (status === 0) this.editor.setText(fs().readFileSync(file, "utf8").replace(/\n$/, ""));
    } finally {
      fs().rmSync(file, { force: true });
      this.tui.start();
      this.tui.requestRender(true);
    }
  }
}
