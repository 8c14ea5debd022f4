// A list to choose from, with a window that scrolls around the selection.
import type { Component } from "pi:pi-tui/component.ts";
import { getKeybindings } from "pi:pi-tui/keys/keybindings.ts";
import { truncateToWidth, visibleWidth } from "pi:pi-tui/text-metrics.ts";

export interface SelectItem {
  value: string;
  label: string;
  description?: string;
}

export interface SelectListTheme {
  selectedPrefix(text: string): string;
  selectedText(text: string): string;
  description(text: string): string;
  scrollInfo(text: string): string;
  noMatch(text: string): string;
}

export interface SelectListTruncatePrimaryContext {
  text: string;
  maxWidth: number;
  columnWidth: number;
  item: SelectItem;
  isSelected: boolean;
}

export interface SelectListLayoutOptions {
  minPrimaryColumnWidth?: number;
  maxPrimaryColumnWidth?: number;
  truncatePrimary?(context: SelectListTruncatePrimaryContext): string;
}

const PRIMARY_WIDTH = 32;
const COLUMN_GAP = 2;
/** A description with fewer columns is omitted. */
const MIN_DESCRIPTION_WIDTH = 10;
const MIN_WIDTH_WITH_DESCRIPTION = 40;
/** Columns that stay free at the right edge. */
const RIGHT_MARGIN = 2;

/** The first of `size` visible rows, so that `selected` is in the middle if possible. */
export function windowStart(selected: number, size: number, total: number): number {
  return Math.max(0, Math.min(selected - Math.floor(size / 2), total - size));
}

export class SelectList implements Component {
  private items: SelectItem[];
  private filteredItems: SelectItem[];
  private selectedIndex = 0;
  private maxVisible: number;
  private theme: SelectListTheme;
  private layout: SelectListLayoutOptions;
  onSelect?: (item: SelectItem) => void;
  onCancel?: () => void;
  onSelectionChange?: (item: SelectItem) => void;

  constructor(
    items: SelectItem[],
    maxVisible: number,
    theme: SelectListTheme,
    layout: SelectListLayoutOptions = {},
  ) {
    this.items = items;
    this.filteredItems = items;
    this.maxVisible = maxVisible;
    this.theme = theme;
    this.layout = layout;
  }

  /** Keeps the items whose value starts with `filter`. */
  setFilter(filter: string): void {
    const start = filter.toLowerCase();
    this.filteredItems = this.items.filter(({ value }) => value.toLowerCase().startsWith(start));
    this.selectedIndex = 0;
  }

  setSelectedIndex(index: number): void {
    this.selectedIndex = Math.max(0, Math.min(index, this.filteredItems.length - 1));
  }

  getSelectedItem(): SelectItem | null {
    return this.filteredItems[this.selectedIndex] ?? null;
  }

  invalidate(): void {
    // No state is kept between renderings.
  }

  render(width: number): string[] {
    const total = this.filteredItems.length;
    if (total === 0) return [this.theme.noMatch("  No matching commands")];
    const start = windowStart(this.selectedIndex, this.maxVisible, total);
    const end = Math.min(start + this.maxVisible, total);
    const column = this._primaryWidth();
    const lines = this.filteredItems
      .slice(start, end)
      .map((item, i) => this._row(item, start + i === this.selectedIndex, width, column));
    if (start > 0 || end < total) {
      const place = `  (${this.selectedIndex + 1}/${total})`;
      lines.push(this.theme.scrollInfo(truncateToWidth(place, width - RIGHT_MARGIN, "")));
    }
    return lines;
  }

  handleInput(data: string): void {
    const keys = getKeybindings();
    if (keys.matches(data, "tui.select.up")) this._move(-1);
    else if (keys.matches(data, "tui.select.down")) this._move(1);
    else if (keys.matches(data, "tui.select.confirm")) {
      const item = this.getSelectedItem();
      if (item) this.onSelect?.(item);
    } else if (keys.matches(data, "tui.select.cancel")) this.onCancel?.();
  }

  private _move(by: number): void {
    const total = this.filteredItems.length;
    if (total === 0) return;
    this.selectedIndex = (this.selectedIndex + by + total) % total;
    const item = this.getSelectedItem();
    if (item) this.onSelectionChange?.(item);
  }

  private _row(item: SelectItem, selected: boolean, width: number, column: number): string {
    const prefix = selected ? "\u2192 " : "  ";
    const description = item.description?.replace(/[\r\n]+/g, " ").trim();
    if (description && width > MIN_WIDTH_WITH_DESCRIPTION) {
      const columnWidth = Math.max(1, Math.min(column, width - prefix.length - 4));
      const name = this._primary(item, selected, Math.max(1, columnWidth - COLUMN_GAP), columnWidth);
      const used = visibleWidth(name);
      const spacing = " ".repeat(Math.max(1, columnWidth - used));
      const rest = width - prefix.length - used - spacing.length - RIGHT_MARGIN;
      if (rest > MIN_DESCRIPTION_WIDTH) {
        const text = truncateToWidth(description, rest, "");
        return selected
          ? this.theme.selectedText(prefix + name + spacing + text)
          : prefix + name + this.theme.description(spacing + text);
      }
    }
    const room = width - prefix.length - RIGHT_MARGIN;
    const name = this._primary(item, selected, room, room);
    return selected ? this.theme.selectedText(prefix + name) : prefix + name;
  }

  private _primaryWidth(): number {
    const { minPrimaryColumnWidth: min, maxPrimaryColumnWidth: max } = this.layout;
    const bounds = [min ?? max ?? PRIMARY_WIDTH, max ?? min ?? PRIMARY_WIDTH].map((n) =>
      Math.max(1, n)
    );
    const widest = Math.max(...this.filteredItems.map((item) => visibleWidth(label(item)) + COLUMN_GAP));
    return Math.max(Math.min(...bounds), Math.min(Math.max(...bounds), widest));
  }

  private _primary(
    item: SelectItem,
    isSelected: boolean,
    maxWidth: number,
    columnWidth: number,
  ): string {
    const text = label(item);
    const own = this.layout.truncatePrimary?.({ text, maxWidth, columnWidth, item, isSelected });
    return truncateToWidth(own ?? text, maxWidth, "");
  }
}

const label = (item: SelectItem): string => item.label || item.value;
