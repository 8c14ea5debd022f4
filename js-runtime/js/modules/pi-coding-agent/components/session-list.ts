// The list of sessions with its search line.
import type { Component, Focusable } from "pi:pi-tui/component.ts";
import { Input } from "pi:pi-tui/input.ts";
import { getKeybindings, type KeybindingsManager } from "pi:pi-tui/keys/keybindings.ts";
import { windowStart } from "pi:pi-tui/select-list.ts";
import { truncateToWidth, visibleWidth } from "pi:pi-tui/text-metrics.ts";
import {
  findSessions,
  hasName,
  inThreads,
  type NameFilter,
  type SessionInfo,
  type SessionRow,
  type SortMode,
} from "pi:pi-coding-agent/components/session-search.ts";
import { keyText } from "pi:pi-coding-agent/key-hints.ts";
import { theme } from "pi:pi-coding-agent/theme/index.ts";
import { shortPath } from "pi:pi-coding-agent/tools/rows/rendering.ts";

const MAX_VISIBLE = 10;
const ELLIPSIS = "\u2026";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
/** Units of an age in milliseconds, from the longest on, with their sign. */
const AGES: readonly [number, string][] = [
  [365 * DAY, "y"],
  [30 * DAY, "mo"],
  [7 * DAY, "w"],
  [DAY, "d"],
  [60 * MINUTE, "h"],
  [MINUTE, "m"],
];

function age(date: Date): string {
  const milliseconds = Date.now() - Number(date);
  const unit = AGES.find(([length]) => milliseconds >= length);
  return unit ? `${Math.floor(milliseconds / unit[0])}${unit[1]}` : "now";
}

export class SessionList implements Component, Focusable {
  onSelect?: (path: string) => void;
  onCancel?: () => void;
  onExit: () => void = () => {};
  onToggleScope?: () => void;
  onToggleSort?: () => void;
  onToggleNameFilter?: () => void;
  onTogglePath?: (showPath: boolean) => void;
  onDeleteConfirmationChange?: (path: string | null) => void;
  onDeleteSession?: (path: string) => Promise<void>;
  onRenameSession?: (path: string) => void;
  onError?: (message: string) => void;
  private sessions: SessionInfo[];
  private rows: SessionRow[] = [];
  private selected = 0;
  private search = new Input();
  private showCwd: boolean;
  private showPath = false;
  private sort: SortMode;
  private names: NameFilter;
  private keybindings: KeybindingsManager;
  private currentPath?: string;
  /** The session in the confirmation dialog. */
  private deleting: string | null = null;

  constructor(
    sessions: SessionInfo[],
    showCwd: boolean,
    sortMode: SortMode,
    nameFilter: NameFilter,
    keybindings: KeybindingsManager,
    currentSessionFilePath?: string,
  ) {
    this.sessions = sessions;
    this.showCwd = showCwd;
    this.sort = sortMode;
    this.names = nameFilter;
    this.keybindings = keybindings;
    this.currentPath = currentSessionFilePath;
    this.search.onSubmit = () => this.confirm();
    this.filter();
  }

  get focused(): boolean {
    return this.search.focused;
  }

  set focused(focused: boolean) {
    this.search.focused = focused;
  }

  getSelectedSessionPath(): string | undefined {
    return this.rows[this.selected]?.session.path;
  }

  setSortMode(sortMode: SortMode): void {
    this.sort = sortMode;
    this.filter();
  }

  setNameFilter(nameFilter: NameFilter): void {
    this.names = nameFilter;
    this.filter();
  }

  setSessions(sessions: SessionInfo[], showCwd: boolean): void {
    this.sessions = sessions;
    this.showCwd = showCwd;
    this.filter();
  }

  private filter(): void {
    const query = this.search.getValue();
    const named = this.names === "all" ? this.sessions : this.sessions.filter(hasName);
    this.rows = this.sort === "threaded" && !query.trim()
      ? inThreads(named)
      : findSessions(named, query, this.sort).map((session) => ({ session, prefix: "" }));
    this.select(this.selected);
  }

  invalidate(): void {
    // No state is kept between renderings.
  }

  render(width: number): string[] {
    const lines = [...this.search.render(width), ""];
    const total = this.rows.length;
    if (total === 0) return [...lines, theme.fg("muted", truncateToWidth(this.nothing(), width, ELLIPSIS))];
    const start = windowStart(this.selected, MAX_VISIBLE, total);
    const shown = this.rows.slice(start, start + MAX_VISIBLE);
    lines.push(...shown.map((row, i) => this.line(row, start + i === this.selected, width)));
    if (shown.length < total) {
      const place = truncateToWidth(`  (${this.selected + 1}/${total})`, width, "");
      lines.push(theme.fg("muted", place));
    }
    return lines;
  }

  private nothing(): string {
    const key = keyText("app.session.toggleNamedFilter");
    if (this.names === "all") {
      return this.showCwd
        ? "  No sessions found"
        : "  No sessions in current folder. Press Tab to view all.";
    }
    return this.showCwd
      ? `  No named sessions found. Press ${key} to show all.`
      : `  No named sessions in current folder. Press ${key} to show all, or Tab to view all.`;
  }

  private line({ session, prefix }: SessionRow, isSelected: boolean, width: number): string {
    const facts = [String(session.messageCount), age(session.modified)];
    if (this.showCwd && session.cwd) facts.unshift(shortPath(session.cwd));
    if (this.showPath) facts.unshift(shortPath(session.path));
    const right = facts.join(" ");
    const room = width - 2 - visibleWidth(prefix) - visibleWidth(right) - 2;
    const title = (session.name ?? session.firstMessage).replace(/[\x00-\x1f\x7f]/g, " ").trim();
    const text = truncateToWidth(title, Math.max(10, room), ELLIPSIS);
    const color = this.colorOf(session);
    let styled = color ? theme.fg(color, text) : text;
    if (isSelected) styled = theme.bold(styled);
    const left = (isSelected ? theme.fg("accent", "\u203a ") : "  ") + theme.fg("dim", prefix) + styled;
    const gap = " ".repeat(Math.max(1, width - visibleWidth(left) - visibleWidth(right)));
    const line = left + gap + theme.fg(color === "error" ? "error" : "dim", right);
    return truncateToWidth(isSelected ? theme.bg("selectedBg", line) : line, width);
  }

  private colorOf({ path, name }: SessionInfo): string | undefined {
    if (path === this.deleting) return "error";
    if (path === this.currentPath) return "accent";
    return name ? "warning" : undefined;
  }

  handleInput(data: string): void {
    const keys = getKeybindings();
    const matches = (id: string) => keys.matches(data, id);
    if (this.deleting !== null) {
      this.confirmDeletion(matches("tui.select.confirm"), matches("tui.select.cancel"));
    } else if (matches("tui.input.tab")) this.onToggleScope?.();
    else if (matches("app.session.toggleSort")) this.onToggleSort?.();
    else if (this.keybindings.matches(data, "app.session.toggleNamedFilter")) {
      this.onToggleNameFilter?.();
    } else if (matches("app.session.togglePath")) {
      this.showPath = !this.showPath;
      this.onTogglePath?.(this.showPath);
    } else if (matches("app.session.delete")) this.askToDelete();
    else if (matches("app.session.rename")) {
      const path = this.getSelectedSessionPath();
      if (path !== undefined) this.onRenameSession?.(path);
    } else if (matches("app.session.deleteNoninvasive") && this.search.getValue() === "") {
      this.askToDelete();
    } else if (matches("tui.select.up")) this.select(this.selected - 1);
    else if (matches("tui.select.down")) this.select(this.selected + 1);
    else if (matches("tui.select.pageUp")) this.select(this.selected - MAX_VISIBLE);
    else if (matches("tui.select.pageDown")) this.select(this.selected + MAX_VISIBLE);
    else if (matches("tui.select.confirm")) this.confirm();
    else if (matches("tui.select.cancel")) this.onCancel?.();
    else {
      this.search.handleInput(data);
      this.filter();
    }
  }

  private select(index: number): void {
    this.selected = Math.max(0, Math.min(index, this.rows.length - 1));
  }

  private confirm(): void {
    const path = this.getSelectedSessionPath();
    if (path !== undefined) this.onSelect?.(path);
  }

  private setDeleting(path: string | null): void {
    this.deleting = path;
    this.onDeleteConfirmationChange?.(path);
  }

  private askToDelete(): void {
    const path = this.getSelectedSessionPath();
    if (path === undefined) return;
    if (path === this.currentPath) this.onError?.("Cannot delete the currently active session");
    else this.setDeleting(path);
  }

  /** Answers the question whether to delete the session; other keys are ignored. */
  private confirmDeletion(yes: boolean, no: boolean): void {
    const path = this.deleting;
    if (!yes && !no) return;
    this.setDeleting(null);
    if (yes && path !== null) void this.onDeleteSession?.(path);
  }
}
