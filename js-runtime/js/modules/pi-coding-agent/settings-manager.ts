// `SettingsManager`: settings.json of the user and of a project. The program reads and writes the
// files under its lock, changes only the values that differ, and keeps comments.
import { hostSync } from "pi:host.ts";
import { env, path, platform } from "pi:node.ts";
import { getAgentDir } from "pi:pi-coding-agent/config.ts";

type Settings = Record<string, unknown>;
type Scope = "global" | "project";

interface Change {
  key: string;
  nested?: string;
  value?: unknown;
}

interface Loaded {
  settings?: Settings;
  error?: string;
}

/** A storage of the SDK's user: takes and returns text. */
interface Storage {
  withLock(scope: Scope, fn: (current: string | undefined) => string | undefined): void;
}

interface Backend {
  load(scope: Scope): Loaded;
  change(scope: Scope, changes: Change[]): void;
}

interface Trust {
  projectTrusted?: boolean;
}

interface ModelName {
  provider: string;
  id: string;
}

/** The folders that identify a project. */
interface ProjectPaths {
  cwd: string;
  agentDir: string;
}

/** Decided by the start options of pi and by recorded decisions. */
const isTrusted = (place: ProjectPaths) => hostSync<boolean>("resources.isProjectTrusted", place);
const here = (): ProjectPaths => ({ cwd: path().resolve("."), agentDir: getAgentDir() });

const parse = (text: string | undefined) =>
  text ? hostSync<Loaded>("settings.parse", { text }) : { settings: {} };

function apply(settings: Settings, { key, nested, value }: Change): void {
  const inner = settings[key];
  const target = nested === undefined
    ? settings
    : ((settings[key] = { ...(typeof inner === "object" ? inner : {}) }) as Settings);
  if (value === undefined) delete target[nested ?? key];
  else target[nested ?? key] = value;
}

function files(paths: Record<Scope, string>): Backend {
  return {
    load: (scope) => hostSync<Loaded>("settings.load", { path: paths[scope] }),
    change: (scope, changes) => hostSync("settings.change", { path: paths[scope], changes }),
  };
}

function backendOf(storage: Storage): Backend {
  return {
    load(scope) {
      let text: string | undefined;
      storage.withLock(scope, (current) => void (text = current));
      return parse(text);
    },
    change(scope, changes) {
      storage.withLock(scope, (current) => {
        const { settings, error } = parse(current);
        if (!settings) throw new Error(error);
        for (const change of changes) apply(settings, change);
        return JSON.stringify(settings, null, 2);
      });
    },
  };
}

/** The project's values take precedence; objects are merged one level deep. */
function merge(base: Settings, over: Settings): Settings {
  const isObject = (value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value);
  const merged = { ...base };
  for (const [key, value] of Object.entries(over)) {
    if (value === undefined) continue;
    merged[key] = isObject(value) && isObject(merged[key])
      ? { ...(merged[key] as object), ...(value as object) }
      : value;
  }
  return merged;
}

// Symbols cannot clash with names in subclasses of extensions.
const READ = Symbol("read");
const WRITE = Symbol("write");

class Manager {
  private _backend: Backend | undefined;
  private _trusts: boolean;
  private _settings: Record<Scope, Settings> = { global: {}, project: {} };
  private _broken = new Set<Scope>();
  /** Changes that could not be written so far. */
  private _unsaved: Record<Scope, Change[]> = { global: [], project: [] };
  private _merged: Settings = {};
  private _errors: { scope: Scope; error: Error }[] = [];
  private _paths: ProjectPaths;

  protected constructor(backend: Backend | undefined, settings: Settings = {}, trusts = true, place = here()) {
    this._backend = backend;
    this._trusts = trusts;
    this._paths = place;
    this._settings.global = settings;
    this._load();
  }

  private _load(): void {
    for (const scope of ["global", "project"] as const) {
      if (!this._backend) continue;
      if (scope === "project" && !this._trusts) {
        this._settings.project = {};
        continue;
      }
      const { settings, error } = this._backend.load(scope);
      this._broken.delete(scope);
      if (settings) {
        this._settings[scope] = settings;
        this._unsaved[scope] = [];
      } else {
        this._broken.add(scope);
        this._errors.push({ scope, error: new Error(error) });
      }
    }
    this._merge();
  }

  private _merge(): void {
    this._merged = merge(this._settings.global, this._ofProject);
  }

  /** The settings of the project stay in memory while it is not trusted. */
  private get _ofProject(): Settings {
    return this._trusts ? this._settings.project : {};
  }

  [READ](key: string, nested?: string): unknown {
    const value = this._merged[key];
    return nested === undefined ? value : (value as Settings | undefined)?.[nested];
  }

  /** Takes effect at once, even if it cannot be written; then the next change writes it, too. */
  [WRITE](scope: Scope, changes: Change[]): void {
    if (scope === "project" && !this._trusts) {
      const keys = changes.map(({ key }) => `"${key}"`).join(", ");
      throw new Error(`SettingsManager: ${keys} is not set for the project, because the project is not trusted`);
    }
    for (const change of changes) apply(this._settings[scope], change);
    this._merge();
    // A file that cannot be read is not overwritten.
    if (!this._backend || this._broken.has(scope)) return;
    const stays = (before: Change) =>
      !changes.some(({ key, nested }) => key === before.key && nested === before.nested);
    this._unsaved[scope] = [...this._unsaved[scope].filter(stays), ...changes];
    try {
      this._backend.change(scope, this._unsaved[scope]);
      this._unsaved[scope] = [];
    } catch (error) {
      this._errors.push({ scope, error: error as Error });
    }
  }

  /** The settings in effect, overrides included. */
  static inEffect(manager: unknown): Settings | undefined {
    return manager instanceof Manager ? structuredClone(manager._merged) : undefined;
  }

  static trusts(manager: unknown): boolean {
    return !(manager instanceof Manager) || manager._trusts;
  }

  /** Whether the project's settings count and, with a resource loader, its resources. */
  isProjectTrusted(): boolean {
    return this._trusts;
  }

  /** Has no effect if pi was started with `--no-approve`, or if another decision is recorded. */
  setProjectTrusted(trusted: boolean): void {
    this._trusts = trusted && isTrusted(this._paths);
    this._load();
  }

  getGlobalSettings(): Settings {
    return structuredClone(this._settings.global);
  }

  getProjectSettings(): Settings {
    return structuredClone(this._ofProject);
  }

  async reload(): Promise<void> {
    this._load();
  }

  /** Overrides last until the next change or reload. */
  applyOverrides(overrides: Settings): void {
    this._merged = merge(this._merged, overrides);
  }

  /** Every change is written at once. */
  async flush(): Promise<void> {}

  drainErrors(): { scope: Scope; error: Error }[] {
    return this._errors.splice(0);
  }
}

/** Names after `get` and `set`, with their path in the settings and their default. */
const SETTING_PATHS: [name: string, at: string, missing?: unknown][] = [
  ["LastChangelogVersion", "lastChangelogVersion"],
  ["SessionDir", "sessionDir"],
  ["DefaultProvider", "defaultProvider"],
  ["DefaultModel", "defaultModel"],
  ["SteeringMode", "steeringMode", "one-at-a-time"],
  ["FollowUpMode", "followUpMode", "one-at-a-time"],
  ["Theme", "theme"],
  ["DefaultThinkingLevel", "defaultThinkingLevel"],
  ["Transport", "transport", "sse"],
  ["CompactionEnabled", "compaction.enabled", true],
  ["BranchSummarySkipPrompt", "branchSummary.skipPrompt", false],
  ["RetryEnabled", "retry.enabled", true],
  ["HideThinkingBlock", "hideThinkingBlock", false],
  ["ShellPath", "shellPath"],
  ["QuietStartup", "quietStartup", false],
  ["ShellCommandPrefix", "shellCommandPrefix"],
  ["NpmCommand", "npmCommand"],
  ["CollapseChangelog", "collapseChangelog", false],
  ["EnableInstallTelemetry", "enableInstallTelemetry", true],
  ["Packages", "packages", []],
  ["ExtensionPaths", "extensions", []],
  ["SkillPaths", "skills", []],
  ["PromptTemplatePaths", "prompts", []],
  ["ThemePaths", "themes", []],
  ["EnableSkillCommands", "enableSkillCommands", true],
  ["ThinkingBudgets", "thinkingBudgets"],
  ["ShowImages", "terminal.showImages", true],
  ["ClearOnShrink", "terminal.clearOnShrink"],
  ["ImageAutoResize", "images.autoResize", true],
  ["BlockImages", "images.blockImages", false],
  ["EnabledModels", "enabledModels"],
  ["DefaultTools", "defaultTools"],
  ["DoubleEscapeAction", "doubleEscapeAction", "tree"],
  ["TreeFilterMode", "treeFilterMode", "default"],
  ["ShowHardwareCursor", "showHardwareCursor"],
  ["EditorPaddingX", "editorPaddingX", 0],
  ["AutocompleteMaxVisible", "autocompleteMaxVisible", 5],
  ["CodeBlockIndent", "markdown.codeBlockIndent", "  "],
];

/** Settings that have no setter in the original either. */
const READ_ONLY = new Set([
  "SessionDir",
  "DefaultTools",
  "BranchSummarySkipPrompt",
  "ThinkingBudgets",
  "CodeBlockIndent",
]);
const OF_PROJECTS = new Set([
  "Packages",
  "ExtensionPaths",
  "SkillPaths",
  "PromptTemplatePaths",
  "ThemePaths",
]);
const FROM_ENV: Record<string, string> = {
  ClearOnShrink: "PI_CLEAR_ON_SHRINK",
  ShowHardwareCursor: "PI_HARDWARE_CURSOR",
};
const RANGES: Record<string, [number, number]> = {
  EditorPaddingX: [0, 3],
  AutocompleteMaxVisible: [3, 20],
};
/** Settings of newer versions without effect here, by the names after `get` and `set`. */
const UNSUPPORTED_SETTINGS: [names: string[], key: string][] = [
  [["getModelThinkingLevel", "setModelThinkingLevel"], "modelThinkingLevels"],
  [["getAllModelThinkingLevels", "removeModelThinkingLevel"], "modelThinkingLevels"],
  [["getHttpIdleTimeoutMs", "setHttpIdleTimeoutMs"], "httpIdleTimeoutMs"],
  [["getWebSocketConnectTimeoutMs"], "websocketConnectTimeoutMs"],
  [["getCacheWarmingMode", "setCacheWarmingMode"], "cacheWarming"],
  [["getShowCacheMissNotices", "setShowCacheMissNotices"], "showCacheMissNotices"],
  [["getEnableAnalytics", "setEnableAnalytics"], "enableAnalytics"],
  [["getTrackingId"], "trackingId"],
  [["getTerminalCapabilityOverrides"], "terminal.images"],
  [["getImageWidthCells", "setImageWidthCells"], "terminal.imageWidthCells"],
  [["getShowTerminalProgress", "setShowTerminalProgress"], "terminal.showTerminalProgress"],
  [["getTuiMode", "setTuiMode"], "tuiMode"],
  [["getFullscreenExitOutput", "setFullscreenExitOutput"], "fullscreenExitOutput"],
  [["getFullscreenScrollbar", "setFullscreenScrollbar"], "fullscreenScrollbar"],
  [["getFullscreenCopyOnSelect", "setFullscreenCopyOnSelect"], "fullscreenCopyOnSelect"],
  [["getOutputPad", "setOutputPad"], "outputPad"],
  [["getMermaidRenderingMode", "setMermaidRenderingMode"], "markdown.mermaid"],
  [["getWarnings", "setWarnings"], "warnings"],
];
const TREE_FILTERS = ["default", "no-tools", "user-only", "labeled-only", "all"];

export class SettingsManager extends Manager {
  static create(cwd?: string, agentDir?: string, { projectTrusted = true }: Trust = {}): SettingsManager {
    const { join } = path();
    const before = here();
    const place = { cwd: cwd ?? before.cwd, agentDir: agentDir ?? before.agentDir };
    const backend = files({
      global: join(place.agentDir, "settings.json"),
      project: join(place.cwd, ".pi", "settings.json"),
    });
    return new SettingsManager(backend, {}, projectTrusted && isTrusted(place), place);
  }

  static fromStorage(storage: Storage, { projectTrusted = true }: Trust = {}): SettingsManager {
    return new SettingsManager(backendOf(storage), {}, projectTrusted && isTrusted(here()));
  }

  static inMemory(settings: Settings = {}, { projectTrusted = true }: Trust = {}): SettingsManager {
    return new SettingsManager(undefined, structuredClone(settings), projectTrusted);
  }

  setDefaultModelAndProvider(provider: string, modelId: string): void {
    this[WRITE]("global", [
      { key: "defaultProvider", value: provider },
      { key: "defaultModel", value: modelId },
    ]);
  }

  /** `compaction.modelOverrides`, of newer versions, may contain other values for a model. */
  private _compactionTokens(key: "reserveTokens" | "keepRecentTokens", missing: number, model?: ModelName): unknown {
    const overrides = this[READ]("compaction", "modelOverrides") as Record<string, Settings | undefined> | undefined;
    const override = model && overrides?.[`${model.provider}/${model.id}`];
    return override?.[key] ?? this[READ]("compaction", key) ?? missing;
  }

  getCompactionReserveTokens(model?: ModelName): unknown {
    return this._compactionTokens("reserveTokens", 16384, model);
  }

  getCompactionKeepRecentTokens(model?: ModelName): unknown {
    return this._compactionTokens("keepRecentTokens", 20000, model);
  }

  getCompactionSettings(model?: ModelName) {
    return {
      enabled: this[READ]("compaction", "enabled") ?? true,
      reserveTokens: this.getCompactionReserveTokens(model),
      keepRecentTokens: this.getCompactionKeepRecentTokens(model),
    };
  }

  getBranchSummarySettings() {
    return {
      reserveTokens: this[READ]("branchSummary", "reserveTokens") ?? 16384,
      skipPrompt: this[READ]("branchSummary", "skipPrompt") ?? false,
    };
  }

  /** The setting itself, even if the terminal chooses the theme. */
  getThemeSetting(): string | undefined {
    const theme = this[READ]("theme");
    return typeof theme === "string" ? theme : undefined;
  }

  /** A project cannot set this for itself. */
  getDefaultProjectTrust(): string {
    const { defaultProjectTrust: setting } = this.getGlobalSettings();
    return setting === "always" || setting === "never" ? setting : "ask";
  }

  setDefaultProjectTrust(value: string): void {
    this[WRITE]("global", [{ key: "defaultProjectTrust", value }]);
  }

  getExternalEditorCommand(): string {
    const setting = this[READ]("externalEditor");
    if (typeof setting === "string" && setting.trim() !== "") return setting;
    return env("VISUAL") || env("EDITOR") || (platform() === "win32" ? "notepad" : "nano");
  }

  /** The longest wait that a server may request; other members are ignored. */
  getProviderRetrySettings() {
    const { timeoutMs, maxRetries } = (this[READ]("retry", "provider") ?? {}) as Settings;
    return { timeoutMs, maxRetries, maxRetryDelayMs: this.getRetrySettings().maxDelayMs };
  }

  getRetrySettings() {
    const provider = this[READ]("retry", "provider") as Settings | undefined;
    return {
      enabled: this[READ]("retry", "enabled") ?? true,
      maxRetries: this[READ]("retry", "maxRetries") ?? 3,
      baseDelayMs: this[READ]("retry", "baseDelayMs") ?? 2000,
      maxDelayMs: provider?.maxRetryDelayMs ?? this[READ]("retry", "maxDelayMs") ?? 60000,
      maxAgentDelayMs: this[READ]("retry", "maxAgentDelayMs") ?? 60000,
    };
  }
}

function define(name: string, method: (this: SettingsManager, value: unknown) => unknown): void {
  Object.defineProperty(method, "name", { value: name });
  Object.defineProperty(SettingsManager.prototype, name, {
    value: method,
    configurable: true,
    writable: true,
  });
}

for (const [name, at, missing] of SETTING_PATHS) {
  const [key, nested] = at.split(".");
  define(`get${name}`, function () {
    const value = this[READ](key, nested);
    if (name === "TreeFilterMode" && !TREE_FILTERS.includes(value as string)) return missing;
    if (value === undefined && FROM_ENV[name]) return env(FROM_ENV[name]) === "1";
    return structuredClone(value ?? missing);
  });
  if (READ_ONLY.has(name)) continue;
  const setter = (scope: Scope) =>
    function (this: SettingsManager, value: unknown) {
      const range = RANGES[name];
      const kept = range
        ? Math.max(range[0], Math.min(range[1], Math.floor(value as number)))
        : structuredClone(value);
      this[WRITE](scope, [{ key, nested, value: kept }]);
    };
  define(`set${name}`, setter("global"));
  if (OF_PROJECTS.has(name)) define(`setProject${name}`, setter("project"));
}

for (const [names, key] of UNSUPPORTED_SETTINGS) {
  for (const name of names) {
    define(name, () => {
      throw new Error(`SettingsManager.${name} is not available in this version of pi: it has no setting "${key}"`);
    });
  }
}
