// Choosing a model, by parts of its name.
import { Container, type Focusable } from "pi:pi-tui/component.ts";
import { fuzzyFilter } from "pi:pi-tui/fuzzy.ts";
import { Input } from "pi:pi-tui/input.ts";
import { getKeybindings } from "pi:pi-tui/keybindings.ts";
import { windowStart } from "pi:pi-tui/select-list.ts";
import { Spacer, Text } from "pi:pi-tui/text.ts";
import { modelsAreEqual } from "pi:pi-ai/models.ts";
import { DynamicBorder } from "pi:pi-coding-agent/components/frame.ts";
import { keyHint } from "pi:pi-coding-agent/key-hints.ts";
import { theme } from "pi:pi-coding-agent/theme.ts";

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
  #current: Model | undefined;
  #settings: { setDefaultModelAndProvider(provider: string, id: string): void };
  #registry: Registry;
  #onSelect: (model: Model) => void;
  #onCancel: () => void;
  #models: Readonly<Record<Scope, Model[]>> = { all: [], scoped: [] };
  private scope: Scope;
  #shown: Model[] = [];
  #selected = 0;
  #error: string | undefined;
  #search = new Input();
  #list = new Container();
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
    this.#current = currentModel;
    this.#settings = settingsManager;
    this.#registry = modelRegistry;
    this.#onSelect = onSelect;
    this.#onCancel = onCancel;
    this.scope = scopedModels.length > 0 ? "scoped" : "all";
    if (initialSearchInput) this.#search.setValue(initialSearchInput);
    this.#search.onSubmit = () => this.#confirm();
    this.children = [
      new DynamicBorder(),
      new Spacer(1),
      ...this.#heading(scopedModels.length > 0),
      new Spacer(1),
      this.#search,
      new Spacer(1),
      this.#list,
      new Spacer(1),
      new DynamicBorder(),
    ];
    void this.#load(scopedModels);
  }

  get focused(): boolean {
    return this.#search.focused;
  }

  set focused(focused: boolean) {
    this.#search.focused = focused;
  }

  getSearchInput(): Input {
    return this.#search;
  }

  #heading(hasScope: boolean): Text[] {
    if (!hasScope) {
      const hint = "Only showing models with configured API keys (see README for details)";
      return [new Text(theme.fg("warning", hint), 0, 0)];
    }
    this.scopeText = new Text(this.#scopeLine(), 0, 0);
    const hint = keyHint("tui.input.tab", "scope") + theme.fg("muted", " (all/scoped)");
    return [this.scopeText, new Text(hint, 0, 0)];
  }

  #scopeLine(): string {
    const name = (scope: Scope) => theme.fg(scope === this.scope ? "accent" : "muted", scope);
    return theme.fg("muted", "Scope: ") + name("all") + theme.fg("muted", " | ") + name("scoped");
  }

  async #load(scoped: readonly ScopedModel[]): Promise<void> {
    this.#registry.refresh();
    this.#error = this.#registry.getError() || undefined;
    try {
      const all = [...(await this.#registry.getAvailable())];
      const rank = (model: Model) => (this.#isCurrent(model) ? 0 : 1);
      all.sort((a, b) => rank(a) - rank(b) || a.provider.localeCompare(b.provider));
      const fresh = scoped.map(({ model }) => this.#registry.find(model.provider, model.id) ?? model);
      this.#models = { all, scoped: fresh };
    } catch (error) {
      this.#error = error instanceof Error ? error.message : String(error);
    }
    this.#selected = Math.max(0, this.#models[this.scope].findIndex((model) => this.#isCurrent(model)));
    this.#filter();
    this.tui.requestRender();
  }

  #isCurrent(model: Model): boolean {
    return modelsAreEqual(this.#current, model);
  }

  #filter(): void {
    const query = this.#search.getValue();
    const models = this.#models[this.scope];
    this.#shown = query
      ? fuzzyFilter(models, query, ({ id, provider }) =>
        `${id} ${provider} ${provider}/${id} ${provider} ${id}`)
      : models;
    this.#selected = Math.min(this.#selected, Math.max(0, this.#shown.length - 1));
    this.#showList();
  }

  #showList(): void {
    const total = this.#shown.length;
    const muted = (text: string) => theme.fg("muted", text);
    const start = windowStart(this.#selected, MAX_VISIBLE, total);
    const visible = this.#shown.slice(start, start + MAX_VISIBLE);
    const lines = visible.map((model, i) => {
      const name = start + i === this.#selected
        ? theme.fg("accent", "\u2192 ") + theme.fg("accent", model.id)
        : `  ${model.id}`;
      const check = this.#isCurrent(model) ? theme.fg("success", " \u2713") : "";
      return `${name} ${muted(`[${model.provider}]`)}${check}`;
    });
    if (visible.length < total) lines.push(muted(`  (${this.#selected + 1}/${total})`));
    const selected = this.#shown[this.#selected];
    if (this.#error) lines.push(...this.#error.split("\n").map((line) => theme.fg("error", line)));
    else if (!selected) lines.push(muted("  No matching models"));
    this.#list.children = lines.map((line) => new Text(line, 0, 0));
    if (this.#error || !selected) return;
    this.#list.addChild(new Spacer(1));
    this.#list.addChild(new Text(muted(`  Model Name: ${selected.name}`), 0, 0));
  }

  handleInput(data: string): void {
    const keys = getKeybindings();
    if (keys.matches(data, "tui.input.tab")) this.#switchScope();
    else if (keys.matches(data, "tui.select.up")) this.#move(-1);
    else if (keys.matches(data, "tui.select.down")) this.#move(1);
    else if (keys.matches(data, "tui.select.confirm")) this.#confirm();
    else if (keys.matches(data, "tui.select.cancel")) this.#onCancel();
    else {
      this.#search.handleInput(data);
      this.#filter();
    }
  }

  #switchScope(): void {
    if (this.#models.scoped.length === 0) return;
    this.scope = this.scope === "all" ? "scoped" : "all";
    this.#selected = Math.max(0, this.#models[this.scope].findIndex((model) => this.#isCurrent(model)));
    this.#filter();
    this.scopeText?.setText(this.#scopeLine());
  }

  #move(by: number): void {
    const total = this.#shown.length;
    if (total === 0) return;
    this.#selected = (this.#selected + by + total) % total;
    this.#showList();
  }

  #confirm(): void {
    const model = this.#shown[this.#selected];
    if (!model) return;
    this.#settings.setDefaultModelAndProvider(model.provider, model.id);
    this.#onSelect(model);
  }
}
