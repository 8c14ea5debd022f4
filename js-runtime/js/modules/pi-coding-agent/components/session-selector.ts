// The choice of a session to continue, of this folder or of all.
import { type Component, Container, type Focusable } from "pi:pi-tui/component.ts";
import { Input } from "pi:pi-tui/input.ts";
import { getKeybindings, type KeybindingsManager } from "pi:pi-tui/keys/keybindings.ts";
import { Spacer, Text } from "pi:pi-tui/text.ts";
import { truncateToWidth, visibleWidth } from "pi:pi-tui/text-metrics.ts";
import { fs, processes } from "pi:node.ts";
import { DynamicBorder } from "pi:pi-coding-agent/components/frame.ts";
import { SessionList } from "pi:pi-coding-agent/components/session-list.ts";
import type {
  NameFilter,
  SessionInfo,
  SortMode,
} from "pi:pi-coding-agent/components/session-search.ts";
import { keyHint, keyText } from "pi:pi-coding-agent/key-hints.ts";
import { theme } from "pi:pi-coding-agent/theme/index.ts";

type Scope = "current" | "all";
type SessionsLoader = (onProgress?: (loaded: number, total: number) => void) => Promise<SessionInfo[]>;

const SORTS: readonly SortMode[] = ["threaded", "recent", "relevance"];
const SORT_NAMES: Readonly<Record<SortMode, string>> = {
  threaded: "Threaded",
  recent: "Recent",
  relevance: "Fuzzy",
};
const ELLIPSIS = "\u2026";

interface Status {
  type: "info" | "error";
  message: string;
}

class Header implements Component {
  scope: Scope = "current";
  sort: SortMode = "threaded";
  names: NameFilter = "all";
  loading = false;
  progress?: string;
  showPath = false;
  showRename = false;
  deleting = false;
  private status?: Status;
  private timer?: ReturnType<typeof setTimeout>;
  private requestRender: () => void;

  constructor(requestRender: () => void) {
    this.requestRender = requestRender;
  }

  setLoading(loading: boolean): void {
    this.loading = loading;
    this.progress = undefined;
  }

  /** Shows a status; without one the key hints are shown. */
  setStatus(status?: Status, milliseconds?: number): void {
    clearTimeout(this.timer);
    this.status = status;
    if (!status || !milliseconds) return;
    this.timer = setTimeout(() => {
      this.status = undefined;
      this.requestRender();
    }, milliseconds);
  }

  invalidate(): void {
    // No state is kept between renderings.
  }

  render(width: number): string[] {
    const muted = (text: string) => theme.fg("muted", text);
    const accent = (text: string) => theme.fg("accent", text);
    const sort = muted("Sort: ") + accent(SORT_NAMES[this.sort]);
    const names = muted("Name: ") + accent(this.names === "all" ? "All" : "Named");
    const right = truncateToWidth(`${this.scopes()}  ${names}  ${sort}`, width, "");
    const where = this.scope === "current" ? "Current Folder" : "All";
    const room = Math.max(0, width - visibleWidth(right) - 1);
    const left = truncateToWidth(theme.bold(`Resume Session (${where})`), room, "");
    const gap = Math.max(0, width - visibleWidth(left) - visibleWidth(right));
    return [left + " ".repeat(gap) + right, ...this.hints(width)];
  }

  private scopes(): string {
    const muted = (text: string) => theme.fg("muted", text);
    const accent = (text: string) => theme.fg("accent", text);
    const here = "Current Folder";
    if (this.loading) return muted(`\u25cb ${here} | `) + accent(`Loading ${this.progress ?? "..."}`);
    return this.scope === "current"
      ? accent(`\u25c9 ${here}`) + muted(" | \u25cb All")
      : muted(`\u25cb ${here} | `) + accent("\u25c9 All");
  }

  private hints(width: number): [string, string] {
    const fit = (text: string) => truncateToWidth(text, width, ELLIPSIS);
    if (this.deleting) {
      const confirm = keyHint("tui.select.confirm", "confirm");
      const question = `Delete session? ${confirm} \u00b7 ${keyHint("tui.select.cancel", "cancel")}`;
      return [theme.fg("error", fit(question)), ""];
    }
    if (this.status) {
      const { type, message } = this.status;
      return [theme.fg(type === "error" ? "error" : "accent", fit(message)), ""];
    }
    const dot = theme.fg("muted", " \u00b7 ");
    const search = theme.fg("muted", 're:<pattern> regex \u00b7 "phrase" exact');
    const keys = [
      keyHint("app.session.toggleSort", "sort"),
      keyHint("app.session.toggleNamedFilter", "named"),
      keyHint("app.session.delete", "delete"),
      keyHint("app.session.togglePath", `path ${this.showPath ? "(on)" : "(off)"}`),
      ...(this.showRename ? [keyHint("app.session.rename", "rename")] : []),
    ];
    return [fit(keyHint("tui.input.tab", "scope") + dot + search), fit(keys.join(dot))];
  }
}

/** Moves the file into the trash if there is one, else deletes it. */
async function deleteFile(path: string): Promise<"trash" | "gone"> {
  const args = path.startsWith("-") ? ["--", path] : [path];
  await new Promise<void>((resolve) => {
    const child = processes().spawn("trash", args, { stdio: "ignore" });
    child.on("error", () => resolve());
    child.on("close", () => resolve());
  });
  if (!fs().existsSync(path)) return "trash";
  fs().rmSync(path);
  return "gone";
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

export interface SessionSelectorOptions {
  renameSession?(path: string, name: string | undefined): Promise<void>;
  showRenameHint?: boolean;
  keybindings?: KeybindingsManager;
}

export class SessionSelectorComponent extends Container implements Focusable {
  private _loaders: Readonly<Record<Scope, SessionsLoader>>;
  private _sessions: Partial<Record<Scope, SessionInfo[]>> = {};
  /** The number of the newest load of each scope; results of older ones are dropped. */
  private _loads: Record<Scope, number> = { current: 0, all: 0 };
  private _loading: Record<Scope, boolean> = { current: false, all: false };
  private _list: SessionList;
  private header: Header;
  private renameInput = new Input();
  /** The session whose name is being edited. */
  private _renaming: string | undefined;
  private _options: SessionSelectorOptions;
  private onCancel: () => void;
  private requestRender: () => void;

  constructor(
    currentSessionsLoader: SessionsLoader,
    allSessionsLoader: SessionsLoader,
    onSelect: (sessionPath: string) => void,
    onCancel: () => void,
    onExit: () => void,
    requestRender: () => void,
    options: SessionSelectorOptions = {},
    currentSessionFilePath?: string,
  ) {
    super();
    this._loaders = { current: currentSessionsLoader, all: allSessionsLoader };
    this._options = options;
    this.onCancel = onCancel;
    this.requestRender = requestRender;
    this.header = new Header(requestRender);
    this.header.showRename = options.showRenameHint ?? Boolean(options.renameSession);
    const keys = options.keybindings ?? getKeybindings();
    this._list = new SessionList([], false, "threaded", "all", keys, currentSessionFilePath);
    this._connect(onSelect, onExit);
    this.renameInput.onSubmit = (name) => void this._rename(name);
    this._showList();
    void this._load("current");
  }

  private _connect(onSelect: (path: string) => void, onExit: () => void): void {
    const { header } = this;
    const list = this._list;
    list.onSelect = (path) => {
      header.setStatus();
      onSelect(path);
    };
    list.onCancel = () => {
      header.setStatus();
      this.onCancel();
    };
    list.onExit = () => {
      header.setStatus();
      onExit();
    };
    list.onToggleScope = () => this.toggleScope();
    list.onToggleSort = () => {
      header.sort = SORTS[(SORTS.indexOf(header.sort) + 1) % SORTS.length];
      list.setSortMode(header.sort);
      this.requestRender();
    };
    list.onToggleNameFilter = () => {
      header.names = header.names === "all" ? "named" : "all";
      list.setNameFilter(header.names);
      this.requestRender();
    };
    list.onTogglePath = (showPath) => {
      header.showPath = showPath;
      this.requestRender();
    };
    list.onDeleteConfirmationChange = (path) => {
      header.deleting = path !== null;
      this.requestRender();
    };
    list.onError = (message) => {
      header.setStatus({ type: "error", message }, 3000);
      this.requestRender();
    };
    list.onDeleteSession = (path) => this._delete(path);
    list.onRenameSession = (path) => this._startRenaming(path);
  }

  get focused(): boolean {
    return this._list.focused;
  }

  set focused(focused: boolean) {
    this._list.focused = focused;
    this.renameInput.focused = focused;
  }

  getSessionList(): SessionList {
    return this._list;
  }

  private get scope(): Scope {
    return this.header.scope;
  }

  private _show(...content: Component[]): void {
    const border = () => new DynamicBorder((text) => theme.fg("accent", text));
    this.children = [new Spacer(1), border(), new Spacer(1), ...content, new Spacer(1), border()];
    this.requestRender();
  }

  private _showList(): void {
    this._renaming = undefined;
    this._show(this.header, new Spacer(1), this._list);
  }

  private _startRenaming(path: string): void {
    if (!this._options.renameSession || this._loading[this.scope]) return;
    const session = this._sessions[this.scope]?.find((session) => session.path === path);
    this._renaming = path;
    this.renameInput.setValue(session?.name ?? "");
    this.renameInput.focused = true;
    const keys = `${keyText("tui.select.confirm")} to save \u00b7 ${keyText("tui.select.cancel")} to cancel`;
    this._show(
      new Text(theme.bold("Rename Session"), 1, 0),
      new Spacer(1),
      this.renameInput,
      new Spacer(1),
      new Text(theme.fg("muted", keys), 1, 0),
    );
  }

  private async _rename(value: string): Promise<void> {
    const name = value.trim();
    const path = this._renaming;
    if (!name || path === undefined) return;
    try {
      await this._options.renameSession?.(path, name);
      await this._load(this.scope);
    } catch (error) {
      this.header.setStatus({ type: "error", message: `Failed to rename: ${messageOf(error)}` }, 3000);
    } finally {
      this._showList();
    }
  }

  private async _delete(path: string): Promise<void> {
    try {
      const how = await deleteFile(path);
      for (const scope of ["current", "all"] as const) {
        this._sessions[scope] = this._sessions[scope]?.filter((session) => session.path !== path);
      }
      this._showSessions();
      const message = how === "trash" ? "Session moved to trash" : "Session deleted";
      this.header.setStatus({ type: "info", message }, 2000);
      await this._load(this.scope);
    } catch (error) {
      this.header.setStatus({ type: "error", message: `Failed to delete: ${messageOf(error)}` }, 3000);
    }
    this.requestRender();
  }

  private _showSessions(): void {
    this._list.setSessions(this._sessions[this.scope] ?? [], this.scope === "all");
  }

  private async _load(scope: Scope): Promise<void> {
    const load = (this._loads[scope] += 1);
    const isShown = () => scope === this.scope && load === this._loads[scope];
    this._loading[scope] = true;
    this.header.setLoading(true);
    this.requestRender();
    let failure: string | undefined;
    try {
      this._sessions[scope] = await this._loaders[scope]((loaded, total) => {
        if (!isShown()) return;
        this.header.progress = `${loaded}/${total}`;
        this.requestRender();
      });
    } catch (error) {
      failure = messageOf(error);
    }
    this._loading[scope] = false;
    if (!isShown()) return;
    this.header.setLoading(false);
    if (failure !== undefined) {
      const message = `Failed to load sessions: ${failure}`;
      this.header.setStatus({ type: "error", message }, 4000);
    }
    this._showSessions();
    this.requestRender();
    const none = [this._sessions.current, this._sessions.all].every((list) => !list?.length);
    if (failure === undefined && scope === "all" && none) this.onCancel();
  }

  private toggleScope(): void {
    this.header.scope = this.scope === "current" ? "all" : "current";
    const { scope } = this;
    if (scope === "all" && !this._sessions.all) {
      if (!this._loading.all) void this._load("all");
      return;
    }
    this.header.setLoading(this._loading[scope]);
    this._showSessions();
    this.requestRender();
  }

  handleInput(data: string): void {
    if (this._renaming === undefined) this._list.handleInput(data);
    else if (getKeybindings().matches(data, "tui.select.cancel")) this._showList();
    else this.renameInput.handleInput(data);
  }
}
