// The tree of a session, for moves to another entry.
import { type Component, Container, type Focusable } from "pi:pi-tui/component.ts";
import { Input } from "pi:pi-tui/input.ts";
import { getKeybindings } from "pi:pi-tui/keys/keybindings.ts";
import { matchesKey } from "pi:pi-tui/keys/index.ts";
import { windowStart } from "pi:pi-tui/select-list.ts";
import { Spacer, Text, TruncatedText } from "pi:pi-tui/text.ts";
import { truncateToWidth } from "pi:pi-tui/text-metrics.ts";
import { DynamicBorder } from "pi:pi-coding-agent/components/frame.ts";
import {
  entryLine,
  searchText,
  type SessionTreeNode,
  textOf,
  type ToolCall,
  toolCallsOf,
  type TreeEntry,
} from "pi:pi-coding-agent/components/tree-entries.ts";
import { inOrder, TreeLayout, type TreeRow } from "pi:pi-coding-agent/components/tree-layout.ts";
import { keyHint, keyText } from "pi:pi-coding-agent/key-hints.ts";
import { theme } from "pi:pi-coding-agent/theme/index.ts";

export type FilterMode = "default" | "no-tools" | "user-only" | "labeled-only" | "all";

const FILTER_MODES: readonly FilterMode[] = ["default", "no-tools", "user-only", "labeled-only", "all"];
const MODE_NAMES: Readonly<Record<FilterMode, string>> = {
  default: "",
  "no-tools": " [no-tools]",
  "user-only": " [user]",
  "labeled-only": " [labeled]",
  all: " [all]",
};
const MODE_KEYS: readonly [key: string, mode: FilterMode][] = [
  ["ctrl+t", "no-tools"],
  ["ctrl+u", "user-only"],
  ["ctrl+l", "labeled-only"],
  ["ctrl+a", "all"],
];
/** Entries without content for the user. */
const BOOKKEEPING = ["label", "custom", "model_change", "thinking_level_change", "session_info"];

function isShown({ entry, label }: SessionTreeNode, mode: FilterMode): boolean {
  const role = entry.type === "message" ? entry.message?.role : undefined;
  switch (mode) {
    case "all":
      return true;
    case "user-only":
      return role === "user";
    case "labeled-only":
      return label !== undefined;
    case "no-tools":
      return !BOOKKEEPING.includes(entry.type) && role !== "toolResult";
    case "default":
      return !BOOKKEEPING.includes(entry.type);
  }
}

/** Whether a message consists of tool calls only; their results are more useful. */
function isOnlyCalls({ type, message }: TreeEntry): boolean {
  if (type !== "message" || message?.role !== "assistant") return false;
  const { content, stopReason } = message;
  const failed = stopReason && stopReason !== "stop" && stopReason !== "toolUse";
  return !failed && textOf(content, Infinity).trim() === "";
}

class TreeList implements Component {
  onSelect?: (entryId: string) => void;
  onCancel?: () => void;
  onLabelEdit?: (entryId: string, currentLabel: string | undefined) => void;
  private nodes: SessionTreeNode[];
  private parents: Map<string, string | null>;
  private calls: Map<string, ToolCall>;
  private leaf: string | null;
  private activePath = new Set<string>();
  private maxVisible: number;
  private mode: FilterMode;
  private query = "";
  private folded = new Set<string>();
  private showTimes = false;
  private layout: TreeLayout;
  private selected = 0;
  /** Kept while no row is visible. */
  private lastId: string | null;

  constructor(
    tree: SessionTreeNode[],
    currentLeafId: string | null,
    maxVisibleLines: number,
    initialSelectedId?: string,
    initialFilterMode: FilterMode = "default",
  ) {
    this.nodes = inOrder(tree, currentLeafId);
    this.parents = new Map(this.nodes.map(({ entry }) => [entry.id, entry.parentId ?? null]));
    this.calls = new Map(this.nodes.flatMap(({ entry }) => toolCallsOf(entry)));
    this.leaf = currentLeafId;
    this.maxVisible = maxVisibleLines;
    this.mode = initialFilterMode;
    for (let id = currentLeafId; id !== null; id = this.parents.get(id) ?? null) {
      if (this.activePath.has(id)) break;
      this.activePath.add(id);
    }
    this.lastId = initialSelectedId ?? currentLeafId;
    this.layout = this.arrange();
  }

  private arrange(): TreeLayout {
    const words = this.query.toLowerCase().split(/\s+/).filter(Boolean);
    const hidden = new Set<string>();
    const visible = this.nodes.filter((node) => {
      const { id, parentId } = node.entry;
      if (parentId !== null && (this.folded.has(parentId) || hidden.has(parentId))) {
        hidden.add(id);
        return false;
      }
      if (isOnlyCalls(node.entry) && id !== this.leaf) return false;
      if (!isShown(node, this.mode)) return false;
      const text = words.length > 0 ? searchText(node) : "";
      return words.every((word) => text.includes(word));
    });
    this.layout = new TreeLayout(visible, this.parents);
    this.selected = this.nearest(this.lastId);
    this.lastId = this.selectedId ?? this.lastId;
    return this.layout;
  }

  /** The row of the entry or of its closest visible ancestor. */
  private nearest(id: string | null): number {
    for (let at = id; at !== null; at = this.parents.get(at) ?? null) {
      const index = this.layout.indexes.get(at);
      if (index !== undefined) return index;
    }
    return Math.max(0, this.layout.rows.length - 1);
  }

  private get selectedId(): string | undefined {
    return this.getSelectedNode()?.entry.id;
  }

  getSelectedNode(): SessionTreeNode | undefined {
    return this.layout.rows[this.selected]?.node;
  }

  getSearchQuery(): string {
    return this.query;
  }

  updateNodeLabel(entryId: string, label: string | undefined, labelTimestamp?: string): void {
    const node = this.nodes.find(({ entry }) => entry.id === entryId);
    if (!node) return;
    node.label = label;
    node.labelTimestamp = label ? (labelTimestamp ?? new Date().toISOString()) : undefined;
  }

  invalidate(): void {
    // No state is kept between renderings.
  }

  render(width: number): string[] {
    const { rows } = this.layout;
    const start = windowStart(this.selected, this.maxVisible, rows.length);
    const lines = rows.slice(start, start + this.maxVisible)
      .map((row, i) => this.line(row, start + i === this.selected));
    if (rows.length === 0) lines.push(theme.fg("muted", "  No entries found"));
    const place = rows.length === 0 ? "0/0" : `${this.selected + 1}/${rows.length}`;
    const times = this.showTimes ? " [+label time]" : "";
    lines.push(theme.fg("muted", `  (${place})${MODE_NAMES[this.mode]}${times}`));
    return lines.map((line) => truncateToWidth(line, width));
  }

  private line(row: TreeRow, isSelected: boolean): string {
    const { entry, label, labelTimestamp } = row.node;
    const accent = (text: string) => theme.fg("accent", text);
    const content = entryLine(entry, this.calls);
    const line = [
      isSelected ? accent("\u203a ") : "  ",
      theme.fg("dim", this.prefix(row)),
      this.folded.has(entry.id) && !row.connected ? accent("\u229e ") : "",
      this.activePath.has(entry.id) ? accent("\u2022 ") : "",
      label ? theme.fg("warning", `[${label}] `) : "",
      this.showTimes && label && labelTimestamp
        ? theme.fg("muted", `${shortTime(labelTimestamp)} `)
        : "",
      isSelected ? theme.bold(content) : content,
    ].join("");
    return isSelected ? theme.bg("selectedBg", line) : line;
  }

  /** The connecting lines before the row. */
  private prefix({ node, indent, connected, isLast, gutters }: TreeRow): string {
    const levels = Array.from({ length: indent }, (_, level) => {
      if (gutters.has(level)) return gutters.get(level) ? "\u2502  " : "   ";
      if (!connected || level !== indent - 1) return "   ";
      const { id } = node.entry;
      const sign = this.folded.has(id) ? "\u229e" : this.layout.isFoldable(id) ? "\u229f" : "\u2500";
      return `${isLast ? "\u2514" : "\u251c"}${sign} `;
    });
    return levels.join("");
  }

  handleInput(data: string): void {
    const keys = getKeybindings();
    const matches = (id: string) => keys.matches(data, id);
    const filter = MODE_KEYS.find(([key]) => matchesKey(data, key));
    if (matches("tui.select.up")) this.move(-1);
    else if (matches("tui.select.down")) this.move(1);
    else if (matches("app.tree.foldOrUp")) this.fold(true);
    else if (matches("app.tree.unfoldOrDown")) this.fold(false);
    else if (matches("tui.editor.cursorLeft") || matches("tui.select.pageUp")) this.page(-1);
    else if (matches("tui.editor.cursorRight") || matches("tui.select.pageDown")) this.page(1);
    else if (matches("tui.select.confirm")) {
      if (this.selectedId !== undefined) this.onSelect?.(this.selectedId);
    } else if (matches("tui.select.cancel")) {
      if (this.query) this.search("");
      else this.onCancel?.();
    } else if (matchesKey(data, "ctrl+d")) this.show("default");
    else if (filter) this.show(this.mode === filter[1] ? "default" : filter[1]);
    else if (matchesKey(data, "shift+ctrl+o")) this.cycle(-1);
    else if (matchesKey(data, "ctrl+o")) this.cycle(1);
    else if (matches("tui.editor.deleteCharBackward")) {
      if (this.query) this.search(this.query.slice(0, -1));
    } else if (matches("app.tree.editLabel")) {
      const node = this.getSelectedNode();
      if (node) this.onLabelEdit?.(node.entry.id, node.label);
    } else if (matches("app.tree.toggleLabelTimestamp")) this.showTimes = !this.showTimes;
    else if (data && !/[\x00-\x1f\x7f-\x9f]/.test(data)) this.search(this.query + data);
  }

  private select(index: number): void {
    this.selected = Math.max(0, Math.min(index, this.layout.rows.length - 1));
    this.lastId = this.selectedId ?? this.lastId;
  }

  private move(by: number): void {
    const total = this.layout.rows.length;
    if (total > 0) this.select((this.selected + by + total) % total);
  }

  private page(direction: number): void {
    this.select(this.selected + direction * this.maxVisible);
  }

  private search(query: string): void {
    this.query = query;
    this.folded.clear();
    this.arrange();
  }

  private show(mode: FilterMode): void {
    this.mode = mode;
    this.folded.clear();
    this.arrange();
  }

  private cycle(by: number): void {
    this.show(FILTER_MODES[(FILTER_MODES.indexOf(this.mode) + by + FILTER_MODES.length) % FILTER_MODES.length]);
  }

  /** Folds or unfolds the chain; if that is done already, moves to the next one. */
  private fold(up: boolean): void {
    const id = this.selectedId;
    if (id === undefined) return;
    if (up && this.layout.isFoldable(id) && !this.folded.has(id)) this.folded.add(id);
    else if (up || !this.folded.delete(id)) {
      const start = this.layout.chainStart(id, up ? "up" : "down");
      this.select(this.layout.indexes.get(start) ?? this.selected);
      return;
    }
    this.arrange();
  }
}

/** The time of day, with the date unless it is today. */
function shortTime(timestamp: string): string {
  const date = new Date(timestamp);
  const now = new Date();
  const two = (value: number) => String(value).padStart(2, "0");
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (date.toDateString() === now.toDateString()) return time;
  const day = `${date.getMonth() + 1}/${date.getDate()}`;
  const year = date.getFullYear() === now.getFullYear() ? "" : `${two(date.getFullYear() % 100)}/`;
  return `${year}${day} ${time}`;
}

class LabelInput implements Component, Focusable {
  onSubmit?: (label: string | undefined) => void;
  onCancel?: () => void;
  private input = new Input();

  constructor(currentLabel: string | undefined) {
    if (currentLabel) this.input.setValue(currentLabel);
  }

  get focused(): boolean {
    return this.input.focused;
  }

  set focused(focused: boolean) {
    this.input.focused = focused;
  }

  invalidate(): void {
    // No state is kept between renderings.
  }

  render(width: number): string[] {
    const hints = `${keyHint("tui.select.confirm", "save")}  ${keyHint("tui.select.cancel", "cancel")}`;
    const title = theme.fg("muted", "Label (empty to remove):");
    return [title, ...this.input.render(width - 2), hints]
      .map((line) => truncateToWidth(`  ${line}`, width));
  }

  handleInput(data: string): void {
    const keys = getKeybindings();
    if (keys.matches(data, "tui.select.confirm")) this.onSubmit?.(this.input.getValue().trim() || undefined);
    else if (keys.matches(data, "tui.select.cancel")) this.onCancel?.();
    else this.input.handleInput(data);
  }
}

export class TreeSelectorComponent extends Container implements Focusable {
  private _list: TreeList;
  private _place = new Container();
  private labelInput?: LabelInput;
  private _hasFocus = false;
  private _onLabelChange: ((entryId: string, label: string | undefined) => void) | undefined;

  constructor(
    tree: SessionTreeNode[],
    currentLeafId: string | null,
    terminalHeight: number,
    onSelect: (entryId: string) => void,
    onCancel: () => void,
    onLabelChange?: (entryId: string, label: string | undefined) => void,
    initialSelectedId?: string,
    initialFilterMode?: FilterMode,
  ) {
    super();
    this._onLabelChange = onLabelChange;
    const rows = Math.max(5, Math.floor(terminalHeight / 2));
    this._list = new TreeList(tree, currentLeafId, rows, initialSelectedId, initialFilterMode);
    this._list.onSelect = onSelect;
    this._list.onCancel = onCancel;
    this._list.onLabelEdit = (id, label) => this._editLabel(id, label);
    this._place.addChild(this._list);
    const help = [
      "  \u2191/\u2193: move. \u2190/\u2192: page. ^\u2190/^\u2192 or Alt+\u2190/Alt+\u2192: fold/branch.",
      `${keyText("app.tree.editLabel")}: label. ^D/^T/^U/^L/^A: filters (^O/\u21e7^O cycle).`,
      `${keyText("app.tree.toggleLabelTimestamp")}: label time`,
    ];
    this.children = [
      new Spacer(1),
      new DynamicBorder(),
      new Text(theme.bold("  Session Tree"), 1, 0),
      new TruncatedText(theme.fg("muted", help.join(" ")), 0, 0),
      { render: (width) => [truncateToWidth(this._searchLine(), width)], invalidate: () => {} },
      new DynamicBorder(),
      new Spacer(1),
      this._place,
      new Spacer(1),
      new DynamicBorder(),
    ];
    // The message stays long enough to be read.
    if (tree.length === 0) setTimeout(onCancel, 100);
  }

  get focused(): boolean {
    return this._hasFocus;
  }

  set focused(focused: boolean) {
    this._hasFocus = focused;
    if (this.labelInput) this.labelInput.focused = focused;
  }

  getTreeList(): TreeList {
    return this._list;
  }

  private _searchLine(): string {
    const query = this._list.getSearchQuery();
    const title = theme.fg("muted", "Type to search:");
    return query ? `  ${title} ${theme.fg("accent", query)}` : `  ${title}`;
  }

  private _editLabel(id: string, label: string | undefined): void {
    const input = new LabelInput(label);
    const close = () => {
      this.labelInput = undefined;
      this._place.children = [this._list];
    };
    input.onSubmit = (changed) => {
      this._list.updateNodeLabel(id, changed);
      this._onLabelChange?.(id, changed);
      close();
    };
    input.onCancel = close;
    input.focused = this._hasFocus;
    this.labelInput = input;
    this._place.children = [input];
  }

  handleInput(data: string): void {
    (this.labelInput ?? this._list).handleInput(data);
  }
}
