// The choice of a model, by parts of its name.
import { Container, type Focusable } from "pi:pi-tui/component.ts";
import { fuzzyFilter } from "pi:pi-tui/fuzzy.ts";
import { Input } from "pi:pi-tui/input.ts";
import { getKeybindings } from "pi:pi-tui/keys/keybindings.ts";
import { windowStart } from "pi:pi-tui/select-list.ts";
import { Spacer, Text } from "pi:pi-tui/text.ts";
import { modelsAreEqual } from "pi:pi-ai/models.ts";
import { DynamicBorder } from "pi:pi-coding-agent/components/frame.ts";
import { keyHint } from "pi:pi-coding-agent/key-hints.ts";
import { theme } from "pi:pi-coding-agent/theme/index.ts";

interface Model {
  provider: string;
  id: string;
  name: string;
}

interface Registry {
  refresh(): void;
  getError(): string | undefined;
  getAvailable(): Model[] | Promise<Model[]>;
  find(provider: string, id: string): Model | undefined;
}

interface ScopedModel {
  model: Model;
  thinkingLevel?: string;
}

type Scope = "all" | "scoped";

const MAX_VISIBLE = 10;

export class ModelSelectorComponent extends Container implements Focusable {
  private tui: { requestRender(): void };
  private _current: Model | undefined;
  private _settings: { setDefaultModelAndProvider(provider: string, id: string): void };
  private _registry: Registry;
  private _onSelect: (model: Model) => void;
  private _onCancel: () => void;
  private _models: Readonly<Record<Scope, Model[]>> = { all: [], scoped: [] };
  private scope: Scope;
  private _shown: Model[] = [];
  private _selected = 0;
  private _error: string | undefined;
  private _search = new Input();
  private _list = new Container();
  private scopeText?: Text;

  constructor(
    tui: { requestRender(): void },
    currentModel: Model | undefined,
    settingsManager: { setDefaultModelAndProvider(provider: string, id: string): void },
    modelRegistry: Registry,
    scopedModels: readonly ScopedModel[],
    onSelect: (model: Model) => void,
    onCancel: () => void,
    initialSearchInput?: string,
  ) {
    super();
    this.tui = tui;
    this._current = currentModel;
    this._settings = settingsManager;
    this._registry = modelRegistry;
    this._onSelect = onSelect;
    this._onCancel = onCancel;
    this.scope = scopedModels.length > 0 ? "scoped" : "all";
    if (initialSearchInput) this._search.setValue(initialSearchInput);
    this._search.onSubmit = () => this._confirm();
    this.children = [
      new DynamicBorder(),
      new Spacer(1),
      ...this._heading(scopedModels.length > 0),
      new Spacer(1),
      this._search,
      new Spacer(1),
      this._list,
      new Spacer(1),
      new DynamicBorder(),
    ];
    void this._load(scopedModels);
  }

  get focused(): boolean {
    return this._search.focused;
  }

  set focused(focused: boolean) {
    this._search.focused = focused;
  }

  getSearchInput(): Input {
    return this._search;
  }

  private _heading(hasScope: boolean): Text[] {
    if (!hasScope) {
      const hint = "Only showing models with configured API keys (see README for details)";
      return [new Text(theme.fg("warning", hint), 0, 0)];
    }
    this.scopeText = new Text(this._scopeLine(), 0, 0);
    const hint = keyHint("tui.input.tab", "scope") + theme.fg("muted", " (all/scoped)");
    return [this.scopeText, new Text(hint, 0, 0)];
  }

  private _scopeLine(): string {
    const name = (scope: Scope) => theme.fg(scope === this.scope ? "accent" : "muted", scope);
    return theme.fg("muted", "Scope: ") + name("all") + theme.fg("muted", " | ") + name("scoped");
  }

  private async _load(scoped: readonly ScopedModel[]): Promise<void> {
    this._registry.refresh();
    this._error = this._registry.getError() || undefined;
    try {
      const all = [...(await this._registry.getAvailable())];
      const rank = (model: Model) => (this._isCurrent(model) ? 0 : 1);
      all.sort((a, b) => rank(a) - rank(b) || a.provider.localeCompare(b.provider));
      const fresh = scoped.map(({ model }) => this._registry.find(model.provider, model.id) ?? model);
      this._models = { all, scoped: fresh };
    } catch (error) {
      this._error = error instanceof Error ? error.message : String(error);
    }
    this._selected = Math.max(0, this._models[this.scope].findIndex((model) => this._isCurrent(model)));
    this._filter();
    this.tui.requestRender();
  }

  private _isCurrent(model: Model): boolean {
    return modelsAreEqual(this._current, model);
  }

  private _filter(): void {
    const query = this._search.getValue();
    const models = this._models[this.scope];
    this._shown = query
      ? fuzzyFilter(models, query, ({ id, provider }) =>
        `${id} ${provider} ${provider}/${id} ${provider} ${id}`)
      : models;
    this._selected = Math.min(this._selected, Math.max(0, this._shown.length - 1));
    this._showList();
  }

  private _showList(): void {
    const total = this._shown.length;
    const muted = (text: string) => theme.fg("muted", text);
    const start = windowStart(this._selected, MAX_VISIBLE, total);
    const visible = this._shown.slice(start, start + MAX_VISIBLE);
    const lines = visible.map((model, i) => {
      const name = start + i === this._selected
        ? theme.fg("accent", "\u2192 ") + theme.fg("accent", model.id)
        : `  ${model.id}`;
      const check = this._isCurrent(model) ? theme.fg("success", " \u2713") : "";
      return `${name} ${muted(`[${model.provider}]`)}${check}`;
    });
    if (visible.length < total) lines.push(muted(`  (${this._selected + 1}/${total})`));
    const selected = this._shown[this._selected];
    if (this._error) lines.push(...this._error.split("\n").map((line) => theme.fg("error", line)));
    else if (!selected) lines.push(muted("  No matching models"));
    this._list.children = lines.map((line) => new Text(line, 0, 0));
    if (this._error || !selected) return;
    this._list.addChild(new Spacer(1));
    this._list.addChild(new Text(muted(`  Model Name: ${selected.name}`), 0, 0));
  }

  handleInput(data: string): void {
    const keys = getKeybindings();
    if (keys.matches(data, "tui.input.tab")) this._switchScope();
    else if (keys.matches(data, "tui.select.up")) this._move(-1);
    else if (keys.matches(data, "tui.select.down")) this._move(1);
    else if (keys.matches(data, "tui.select.confirm")) this._confirm();
    else if (keys.matches(data, "tui.select.cancel")) this._onCancel();
    else {
      this._search.handleInput(data);
      this._filter();
    }
  }

  private _switchScope(): void {
    if (this._models.scoped.length === 0) return;
    this.scope = this.scope === "all" ? "scoped" : "all";
    this._selected = Math.max(0, this._models[this.scope].findIndex((model) => this._isCurrent(model)));
    this._filter();
    this.scopeText?.setText(this._scopeLine());
  }

  private _move(by: number): void {
    const total = this._shown.length;
    if (total === 0) return;
    this._selected = (this._selected + by + total) % total;
    this._showList();
  }

  private _confirm(): void {
    const model = this._shown[this._selected];
    if (!model) return;
    this._settings.setDefaultModelAndProvider(model.provider, model.id);
    this._onSelect(model);
  }
}
