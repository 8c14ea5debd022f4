// The choice of a provider to sign in to, and the dialog during a sign-in.
import { Container, type Focusable } from "pi:pi-tui/component.ts";
import { Input } from "pi:pi-tui/input.ts";
import { getKeybindings } from "pi:pi-tui/keys/keybindings.ts";
import { Spacer, Text, TruncatedText } from "pi:pi-tui/text.ts";
import { platform, processes } from "pi:node.ts";
import { getOAuthProviders } from "pi:pi-ai/logins.ts";
import { DynamicBorder } from "pi:pi-coding-agent/components/frame.ts";
import { keyHint } from "pi:pi-coding-agent/key-hints.ts";
import { theme } from "pi:pi-coding-agent/theme/index.ts";

interface Provider {
  id: string;
  name: string;
}

export class OAuthSelectorComponent extends Container {
  private mode: "login" | "logout";
  private authStorage: { get(provider: string): { type: string } | undefined };
  private _onSelect: (providerId: string) => void;
  private _onCancel: () => void;
  private _providers: Provider[];
  private _selected = 0;
  private _list = new Container();

  constructor(
    mode: "login" | "logout",
    authStorage: { get(provider: string): { type: string } | undefined },
    onSelect: (providerId: string) => void,
    onCancel: () => void,
  ) {
    super();
    this.mode = mode;
    this.authStorage = authStorage;
    this._onSelect = onSelect;
    this._onCancel = onCancel;
    this._providers = getOAuthProviders();
    this.children = [
      new DynamicBorder(),
      new Spacer(1),
      new TruncatedText(theme.bold(`Select provider to ${mode}:`)),
      new Spacer(1),
      this._list,
      new Spacer(1),
      new DynamicBorder(),
    ];
    this._select(0);
  }

  private _select(index: number): void {
    this._selected = Math.max(0, Math.min(index, this._providers.length - 1));
    this._list.children = this._providers.map(({ id, name }, i) => {
      const known = this.authStorage.get(id)?.type === "oauth";
      const status = known ? theme.fg("success", " \u2713 logged in") : "";
      const line = i === this._selected
        ? theme.fg("accent", "\u2192 ") + theme.fg("accent", name)
        : `  ${name}`;
      return new TruncatedText(line + status, 0, 0);
    });
    if (this._providers.length > 0) return;
    const emptyText = this.mode === "login"
      ? "No OAuth providers available"
      : "No OAuth providers logged in. Use /login first.";
    this._list.addChild(new TruncatedText(theme.fg("muted", `  ${emptyText}`), 0, 0));
  }

  handleInput(data: string): void {
    const keys = getKeybindings();
    if (keys.matches(data, "tui.select.up")) this._select(this._selected - 1);
    else if (keys.matches(data, "tui.select.down")) this._select(this._selected + 1);
    else if (keys.matches(data, "tui.select.confirm")) {
      const provider = this._providers[this._selected];
      if (provider) this._onSelect(provider.id);
    } else if (keys.matches(data, "tui.select.cancel")) this._onCancel();
  }
}

/** Opens an address in the user's browser. */
function openInBrowser(url: string): void {
  const commands: Readonly<Record<string, [string, ...string[]]>> = {
    darwin: ["open"],
    win32: ["rundll32", "url.dll,FileProtocolHandler"],
  };
  const [command, ...args] = commands[platform()] ?? ["xdg-open"];
  // No shell is used, because it would interpret parts of the address.
  const child = processes().spawn(command, [...args, url], { stdio: "ignore", detached: true });
  // Without a browser the address on the screen is enough.
  child.on("error", () => {});
}

const linked = (url: string, text: string) => `\x1b]8;;${url}\x07${text}\x1b]8;;\x07`;

export class LoginDialogComponent extends Container implements Focusable {
  private tui: { requestRender(): void };
  private onComplete: (success: boolean, message?: string) => void;
  private _content = new Container();
  private input = new Input();
  private _controller = new AbortController();
  private _waiting: { resolve(value: string): void; reject(error: Error): void } | undefined;

  constructor(
    tui: { requestRender(): void },
    providerId: string,
    onComplete: (success: boolean, message?: string) => void,
  ) {
    super();
    this.tui = tui;
    this.onComplete = onComplete;
    const providers: Provider[] = getOAuthProviders();
    const name = providers.find(({ id }) => id === providerId)?.name ?? providerId;
    this.children = [
      new DynamicBorder(),
      new Text(theme.fg("warning", `Login to ${name}`), 1, 0),
      this._content,
      new DynamicBorder(),
    ];
    this.input.onSubmit = (value) => {
      this._waiting?.resolve(value);
      this._waiting = undefined;
    };
    this.input.onEscape = () => this.cancel();
  }

  get focused(): boolean {
    return this.input.focused;
  }

  set focused(focused: boolean) {
    this.input.focused = focused;
  }

  get signal(): AbortSignal {
    return this._controller.signal;
  }

  private cancel(): void {
    this._controller.abort();
    this._waiting?.reject(new Error("Login cancelled"));
    this._waiting = undefined;
    this.onComplete(false, "Login cancelled");
  }

  private _add(...texts: string[]): void {
    for (const text of texts) this._content.addChild(new Text(text, 1, 0));
  }

  private _showPage(url: string, shown: string): void {
    this._content.clear();
    this._content.addChild(new Spacer(1));
    const click = platform() === "darwin" ? "Cmd+click to open" : "Ctrl+click to open";
    this._add(theme.fg("accent", shown), theme.fg("dim", linked(url, click)));
  }

  showAuth(url: string, instructions?: string): void {
    this._showPage(url, url);
    if (instructions) {
      this._content.addChild(new Spacer(1));
      this._add(theme.fg("warning", instructions));
    }
    openInBrowser(url);
    this.tui.requestRender();
  }

  /** An API of newer versions: the code is typed on another device, so no browser is opened here. */
  showDeviceCode({ userCode, verificationUri }: { userCode: string; verificationUri: string }): void {
    this._showPage(verificationUri, linked(verificationUri, verificationUri));
    this._content.addChild(new Spacer(1));
    this._add(theme.fg("warning", `Enter code: ${userCode}`));
    this.tui.requestRender();
  }

  showInfo(message: string, links: { url: string; label?: string }[] = [], showCloseHint = false): void {
    this._content.addChild(new Spacer(1));
    this._add(theme.fg("text", message));
    for (const { url, label } of links) {
      this._add(theme.fg("accent", linked(url, label ? `${label}: ${url}` : url)));
    }
    if (showCloseHint) {
      this._content.addChild(new Spacer(1));
      this._add(`(${keyHint("tui.select.cancel", "to close")})`);
    }
    this.tui.requestRender();
  }

  showDetails(lines: string[]): void {
    this._content.clear();
    this._content.addChild(new Spacer(1));
    this._add(...lines);
    this.tui.requestRender();
  }

  private _ask(hint: string): Promise<string> {
    this._content.addChild(this.input);
    this._add(hint);
    this.tui.requestRender();
    return new Promise((resolve, reject) => {
      this._waiting = { resolve, reject };
    });
  }

  /** Used for providers whose code the user has to copy. */
  showManualInput(prompt: string): Promise<string> {
    this._content.addChild(new Spacer(1));
    this._add(theme.fg("dim", prompt));
    return this._ask(`(${keyHint("tui.select.cancel", "to cancel")})`);
  }

  showPrompt(message: string, placeholder?: string): Promise<string> {
    this._content.addChild(new Spacer(1));
    this._add(theme.fg("text", message));
    if (placeholder) this._add(theme.fg("dim", `e.g., ${placeholder}`));
    this.input.setValue("");
    const cancel = keyHint("tui.select.cancel", "to cancel,");
    return this._ask(`(${cancel} ${keyHint("tui.select.confirm", "to submit")})`);
  }

  showWaiting(message: string): void {
    this._content.addChild(new Spacer(1));
    this._add(theme.fg("dim", message), `(${keyHint("tui.select.cancel", "to cancel")})`);
    this.tui.requestRender();
  }

  showProgress(message: string): void {
    this._add(theme.fg("dim", message));
    this.tui.requestRender();
  }

  handleInput(data: string): void {
    if (getKeybindings().matches(data, "tui.select.cancel")) this.cancel();
    else this.input.handleInput(data);
  }
}
