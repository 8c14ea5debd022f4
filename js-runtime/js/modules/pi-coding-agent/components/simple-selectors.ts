// Lists to choose one thing from: thinking level, theme, whether to show images.
import { Container } from "pi:pi-tui/component.ts";
import { type SelectItem, SelectList } from "pi:pi-tui/select-list.ts";
import { DynamicBorder } from "pi:pi-coding-agent/components/frame.ts";
import { getSelectListTheme } from "pi:pi-coding-agent/theme/components.ts";
import { availableThemes } from "pi:pi-coding-agent/theme/available.ts";

const LAYOUT = { minPrimaryColumnWidth: 12, maxPrimaryColumnWidth: 32 };

export const THINKING_DESCRIPTIONS: Readonly<Record<string, string>> = {
  off: "No reasoning",
  minimal: "Very brief reasoning (~1k tokens)",
  low: "Light reasoning (~2k tokens)",
  medium: "Moderate reasoning (~8k tokens)",
  high: "Deep reasoning (~16k tokens)",
  xhigh: "Maximum reasoning (~32k tokens)",
  max: "All that the model has",
};

/** A list that begins at the current choice. */
export function choices(items: SelectItem[], current: string, maxVisible: number): SelectList {
  const list = new SelectList(items, maxVisible, getSelectListTheme(), LAYOUT);
  const index = items.findIndex(({ value }) => value === current);
  if (index >= 0) list.setSelectedIndex(index);
  return list;
}

abstract class Selector extends Container {
  private _list: SelectList;

  protected constructor(list: SelectList, onCancel: () => void) {
    super();
    this._list = list;
    list.onCancel = onCancel;
    this.children = [new DynamicBorder(), list, new DynamicBorder()];
  }

  getSelectList(): SelectList {
    return this._list;
  }

  handleInput(data: string): void {
    this._list.handleInput(data);
  }
}

export class ThinkingSelectorComponent extends Selector {
  constructor(
    currentLevel: string,
    availableLevels: string[],
    onSelect: (level: string) => void,
    onCancel: () => void,
  ) {
    const items = availableLevels.map((level) => ({
      value: level,
      label: level,
      description: THINKING_DESCRIPTIONS[level],
    }));
    const list = choices(items, currentLevel, items.length);
    list.onSelect = ({ value }) => onSelect(value);
    super(list, onCancel);
  }
}

export class ThemeSelectorComponent extends Selector {
  constructor(
    currentTheme: string,
    onSelect: (themeName: string) => void,
    onCancel: () => void,
    onPreview: (themeName: string) => void,
  ) {
    const items = availableThemes().map(({ name }) => ({
      value: name,
      label: name,
      description: name === currentTheme ? "(current)" : undefined,
    }));
    const list = choices(items, currentTheme, 10);
    list.onSelect = ({ value }) => onSelect(value);
    list.onSelectionChange = ({ value }) => onPreview(value);
    super(list, onCancel);
  }
}

export class ShowImagesSelectorComponent extends Selector {
  constructor(currentValue: boolean, onSelect: (show: boolean) => void, onCancel: () => void) {
    const items = [
      { value: "yes", label: "Yes", description: "Show images inline in terminal" },
      { value: "no", label: "No", description: "Show text placeholder instead" },
    ];
    const list = choices(items, currentValue ? "yes" : "no", 5);
    list.onSelect = ({ value }) => onSelect(value === "yes");
    super(list, onCancel);
  }
}
