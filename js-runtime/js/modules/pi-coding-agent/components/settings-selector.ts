// The settings that users change while they work.
import { getCapabilities } from "pi:pi-tui/image/capabilities.ts";
import { type Component, Container } from "pi:pi-tui/component.ts";
import type { SelectItem, SelectList } from "pi:pi-tui/select-list.ts";
import { type SettingItem, SettingsList } from "pi:pi-tui/settings-list.ts";
import { Spacer, Text } from "pi:pi-tui/text.ts";
import { DynamicBorder } from "pi:pi-coding-agent/components/frame.ts";
import { choices, THINKING_DESCRIPTIONS } from "pi:pi-coding-agent/components/simple-selectors.ts";
import { getSettingsListTheme } from "pi:pi-coding-agent/theme/components.ts";
import { theme } from "pi:pi-coding-agent/theme/index.ts";

export interface SettingsConfig {
  autoCompact: boolean;
  showImages: boolean;
  autoResizeImages: boolean;
  blockImages: boolean;
  enableSkillCommands: boolean;
  steeringMode: string;
  followUpMode: string;
  transport: string;
  thinkingLevel: string;
  availableThinkingLevels: string[];
  currentTheme: string;
  availableThemes: string[];
  hideThinkingBlock: boolean;
  collapseChangelog: boolean;
  enableInstallTelemetry: boolean;
  doubleEscapeAction: string;
  treeFilterMode: string;
  showHardwareCursor: boolean;
  editorPaddingX: number;
  autocompleteMaxVisible: number;
  quietStartup: boolean;
  clearOnShrink: boolean;
}

export interface SettingsCallbacks {
  onCancel(): void;
  onThemePreview?(theme: string): void;
  [change: `on${string}Change`]: (value: never) => void;
}

type Callback = `on${string}Change`;

interface Row {
  id: string;
  label: string;
  description: string;
  value: keyof SettingsConfig;
  /** A switch, a choice of numbers, or a choice of texts. */
  kind: "boolean" | number[] | string[];
  /** The callback for changes; by default derived from the name of the value. */
  callback?: Callback;
  onlyWithImages?: boolean;
}

const QUEUE_MODES = ["one-at-a-time", "all"];
const DELIVERY = "'one-at-a-time': deliver one, wait for response. 'all': deliver all at once.";

/** The rows before and after the thinking level and the theme. */
const ROWS: readonly Row[] = [
  row("autocompact", "Auto-compact", "autoCompact", "boolean",
    "Automatically compact context when it gets too large"),
  { ...row("show-images", "Show images", "showImages", "boolean", "Render images inline in terminal"),
    onlyWithImages: true },
  row("auto-resize-images", "Auto-resize images", "autoResizeImages", "boolean",
    "Resize large images to 2000x2000 max for better model compatibility"),
  row("block-images", "Block images", "blockImages", "boolean",
    "Prevent images from being sent to LLM providers"),
  row("skill-commands", "Skill commands", "enableSkillCommands", "boolean",
    "Register skills as /skill:name commands"),
  row("show-hardware-cursor", "Show hardware cursor", "showHardwareCursor", "boolean",
    "Show the terminal cursor while still positioning it for IME support"),
  row("editor-padding", "Editor padding", "editorPaddingX", [0, 1, 2, 3],
    "Horizontal padding for input editor (0-3)"),
  row("autocomplete-max-visible", "Autocomplete max items", "autocompleteMaxVisible",
    [3, 5, 7, 10, 15, 20], "Max visible items in autocomplete dropdown (3-20)"),
  row("clear-on-shrink", "Clear on shrink", "clearOnShrink", "boolean",
    "Clear empty rows when content shrinks (may cause flicker)"),
  row("steering-mode", "Steering mode", "steeringMode", QUEUE_MODES,
    `Enter while streaming queues steering messages. ${DELIVERY}`),
  row("follow-up-mode", "Follow-up mode", "followUpMode", QUEUE_MODES,
    `Alt+Enter queues follow-up messages until agent stops. ${DELIVERY}`),
  row("transport", "Transport", "transport", ["sse", "websocket", "auto"],
    "Preferred transport for providers that support multiple transports"),
  row("hide-thinking", "Hide thinking", "hideThinkingBlock", "boolean",
    "Hide thinking blocks in assistant responses"),
  row("collapse-changelog", "Collapse changelog", "collapseChangelog", "boolean",
    "Show condensed changelog after updates"),
  row("quiet-startup", "Quiet startup", "quietStartup", "boolean",
    "Disable verbose printing at startup"),
  row("install-telemetry", "Install telemetry", "enableInstallTelemetry", "boolean",
    "Send an anonymous version/update ping after changelog-detected updates"),
  row("double-escape-action", "Double-escape action", "doubleEscapeAction",
    ["tree", "fork", "none"], "Action when pressing Escape twice with empty editor"),
  row("tree-filter-mode", "Tree filter mode", "treeFilterMode",
    ["default", "no-tools", "user-only", "labeled-only", "all"],
    "Default filter when opening /tree"),
];

function row(
  id: string,
  label: string,
  value: keyof SettingsConfig,
  kind: Row["kind"],
  description: string,
): Row {
  return { id, label, description, value, kind };
}

function callbackOf({ value }: Row): Callback {
  return `on${value[0].toUpperCase()}${value.slice(1)}Change`;
}

/** A page with a list, which replaces the settings. */
class SelectSubmenu extends Container {
  private list: SelectList;

  constructor(
    title: string,
    description: string,
    list: SelectList,
    onSelect: (value: string) => void,
    onCancel: () => void,
  ) {
    super();
    this.list = list;
    list.onSelect = ({ value }) => onSelect(value);
    list.onCancel = onCancel;
    this.children = [
      new Text(theme.bold(theme.fg("accent", title)), 0, 0),
      new Spacer(1),
      new Text(theme.fg("muted", description), 0, 0),
      new Spacer(1),
      list,
      new Spacer(1),
      new Text(theme.fg("dim", "  Enter to select \u00b7 Esc to go back"), 0, 0),
    ];
  }

  handleInput(data: string): void {
    this.list.handleInput(data);
  }
}

export class SettingsSelectorComponent extends Container {
  private _config: SettingsConfig;
  private _callbacks: SettingsCallbacks;
  private _list: SettingsList;

  constructor(config: SettingsConfig, callbacks: SettingsCallbacks) {
    super();
    this._config = config;
    this._callbacks = callbacks;
    const rows = ROWS.filter((row) => !row.onlyWithImages || getCapabilities().images);
    const items = [...rows.map((row) => this._item(row)), this._thinking(), this._theme()];
    const changed = (id: string, value: string) => {
      const row = rows.find((row) => row.id === id);
      if (row) this._notify(callbackOf(row), parse(row, value));
    };
    const cancel = () => this._callbacks.onCancel();
    const options = { enableSearch: true };
    this._list = new SettingsList(items, 10, getSettingsListTheme(), changed, cancel, options);
    this.children = [new DynamicBorder(), this._list, new DynamicBorder()];
  }

  getSettingsList(): SettingsList {
    return this._list;
  }

  handleInput(data: string): void {
    this._list.handleInput(data);
  }

  private _notify(callback: Callback, value: unknown): void {
    this._callbacks[callback](value as never);
  }

  private _item(row: Row): SettingItem {
    const { id, label, description, value, kind } = row;
    const values = kind === "boolean" ? ["true", "false"] : kind.map(String);
    return { id, label, description, currentValue: String(this._config[value] ?? false), values };
  }

  private _thinking(): SettingItem {
    const description = "Reasoning depth for thinking-capable models";
    const levels = this._config.availableThinkingLevels.map((level) => ({
      value: level,
      label: level,
      description: THINKING_DESCRIPTIONS[level],
    }));
    return {
      id: "thinking",
      label: "Thinking level",
      description,
      currentValue: this._config.thinkingLevel,
      submenu: (current, done) =>
        this._submenu("Thinking Level", "Select reasoning depth for thinking-capable models", levels, current, (level) => {
          this._notify("onThinkingLevelChange", level);
          done(level);
        }, done),
    };
  }

  private _theme(): SettingItem {
    const themes = this._config.availableThemes.map((name) => ({ value: name, label: name }));
    const preview = (name: string) => this._callbacks.onThemePreview?.(name);
    return {
      id: "theme",
      label: "Theme",
      description: "Color theme for the interface",
      currentValue: this._config.currentTheme,
      submenu: (current, done) =>
        this._submenu("Theme", "Select color theme", themes, current, (name) => {
          this._notify("onThemeChange", name);
          done(name);
        }, () => {
          preview(current);
          done();
        }, preview),
    };
  }

  private _submenu(
    title: string,
    description: string,
    items: SelectItem[],
    current: string,
    onSelect: (value: string) => void,
    onCancel: () => void,
    onMove: (value: string) => void = () => {},
  ): Component {
    const list = choices(items, current, Math.min(items.length, 10));
    list.onSelectionChange = ({ value }) => onMove(value);
    return new SelectSubmenu(title, description, list, onSelect, () => onCancel());
  }
}

function parse({ kind }: Row, value: string): boolean | number | string {
  if (kind === "boolean") return value === "true";
  return typeof kind[0] === "number" ? Number(value) : value;
}
