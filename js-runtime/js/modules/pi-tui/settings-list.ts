// A list of settings with their values. Enter cycles through the values or opens a component.
import type { Component } from "pi:pi-tui/component.ts";
import { fuzzyFilter } from "pi:pi-tui/fuzzy.ts";
import { Input } from "pi:pi-tui/input.ts";
import { getKeybindings } from "pi:pi-tui/keys/keybindings.ts";
import { windowStart } from "pi:pi-tui/select-list.ts";
import { truncateToWidth, visibleWidth, wrapTextWithAnsi } from "pi:pi-tui/text-metrics.ts";

export interface SettingItem {
  id: string;
  label: string;
  description?: string;
  currentValue: string;
  values?: string[];
  submenu?(currentValue: string, done: (selectedValue?: string) => void): Component;
}

export interface SettingsListTheme {
  label(text: string, selected: boolean): string;
  value(text: string, selected: boolean): string;
  description(text: string): string;
  cursor: string;
  hint(text: string): string;
}

export interface SettingsListOptions {
  enableSearch?: boolean;
}

const MAX_LABEL_WIDTH = 30;
const SEPARATOR = "  ";

export class SettingsList implements Component {
  private items: SettingItem[];
  private _shown: SettingItem[];
  private selectedIndex = 0;
  private maxVisible: number;
  private theme: SettingsListTheme;
  private onChange: (id: string, newValue: string) => void;
  private onCancel: () => void;
  private _search: Input | undefined;
  private _submenu: Component | undefined;

  constructor(
    items: SettingItem[],
    maxVisible: number,
    theme: SettingsListTheme,
    onChange: (id: string, newValue: string) => void,
    onCancel: () => void,
    options: SettingsListOptions = {},
  ) {
    this.items = items;
    this._shown = items;
    this.maxVisible = maxVisible;
    this.theme = theme;
    this.onChange = onChange;
    this.onCancel = onCancel;
    if (options.enableSearch) this._search = new Input();
  }

  updateValue(id: string, newValue: string): void {
    const item = this.items.find((item) => item.id === id);
    if (item) item.currentValue = newValue;
  }

  invalidate(): void {
    this._submenu?.invalidate?.();
  }

  render(width: number): string[] {
    if (this._submenu) return this._submenu.render(width);
    const lines = this._search ? [...this._search.render(width), ""] : [];
    if (this.items.length === 0) {
      lines.push(this.theme.hint("  No settings available"));
      return this._search ? [...lines, ...this._hint(width)] : lines;
    }
    if (this._shown.length === 0) {
      lines.push(truncateToWidth(this.theme.hint("  No matching settings"), width));
      return [...lines, ...this._hint(width)];
    }
    const total = this._shown.length;
    const start = windowStart(this.selectedIndex, this.maxVisible, total);
    const end = Math.min(start + this.maxVisible, total);
    const labels = this.items.map((item) => visibleWidth(item.label));
    const labelWidth = Math.min(MAX_LABEL_WIDTH, Math.max(...labels));
    for (let i = start; i < end; i++) {
      lines.push(this._row(this._shown[i], i === this.selectedIndex, labelWidth, width));
    }
    if (start > 0 || end < total) {
      const place = `  (${this.selectedIndex + 1}/${total})`;
      lines.push(this.theme.hint(truncateToWidth(place, width - 2, "")));
    }
    const description = this._shown[this.selectedIndex]?.description;
    if (description) {
      const text = wrapTextWithAnsi(description, width - 4);
      lines.push("", ...text.map((line) => this.theme.description(`  ${line}`)));
    }
    return [...lines, ...this._hint(width)];
  }

  private _row(item: SettingItem, selected: boolean, labelWidth: number, width: number): string {
    const prefix = selected ? this.theme.cursor : "  ";
    const fill = " ".repeat(Math.max(0, labelWidth - visibleWidth(item.label)));
    const label = this.theme.label(item.label + fill, selected);
    const room = width - visibleWidth(prefix) - labelWidth - SEPARATOR.length - 2;
    const value = this.theme.value(truncateToWidth(item.currentValue, room, ""), selected);
    return truncateToWidth(prefix + label + SEPARATOR + value, width);
  }

  private _hint(width: number): string[] {
    const keys = "Enter/Space to change \u00b7 Esc to cancel";
    const hint = this._search ? `  Type to search \u00b7 ${keys}` : `  ${keys}`;
    return ["", truncateToWidth(this.theme.hint(hint), width)];
  }

  handleInput(data: string): void {
    if (this._submenu) {
      this._submenu.handleInput?.(data);
      return;
    }
    const keys = getKeybindings();
    if (keys.matches(data, "tui.select.up")) this._move(-1);
    else if (keys.matches(data, "tui.select.down")) this._move(1);
    else if (keys.matches(data, "tui.select.confirm") || this._isSwitch(data)) this._activate();
    else if (keys.matches(data, "tui.select.cancel")) this.onCancel();
    else if (this._search) this._searchFor(this._search, data);
  }

  /** Space is part of a search that has begun. */
  private _isSwitch(data: string): boolean {
    return data === " " && !this._search?.getValue();
  }

  private _move(by: number): void {
    const total = this._shown.length;
    if (total > 0) this.selectedIndex = (this.selectedIndex + by + total) % total;
  }

  private _searchFor(search: Input, typed: string): void {
    search.handleInput(typed);
    this._shown = fuzzyFilter(this.items, search.getValue(), (item) => item.label);
    this.selectedIndex = 0;
  }

  private _activate(): void {
    const item = this._shown[this.selectedIndex];
    if (!item) return;
    const change = (value: string) => {
      item.currentValue = value;
      this.onChange(item.id, value);
    };
    if (item.submenu) {
      this._submenu = item.submenu(item.currentValue, (value) => {
        if (value !== undefined) change(value);
        this._submenu = undefined;
      });
    } else if (item.values?.length) {
      const next = item.values.indexOf(item.currentValue) + 1;
      change(item.values[next % item.values.length]);
    }
  }
}
