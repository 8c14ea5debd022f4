// The settings as a program reads and writes them (docs/settings.md describes them).
import type { ThinkingLevel } from "../pi-agent-core.js";
import type { Model, ThinkingBudgets, Transport } from "../pi-ai.js";

/** The content of settings.json; pi keeps unknown members. */
export interface Settings {
  lastChangelogVersion?: string;
  defaultProvider?: string;
  defaultModel?: string;
  defaultThinkingLevel?: ThinkingLevel;
  /** Numbers of tokens. */
  thinkingBudgets?: ThinkingBudgets;
  enabledModels?: string[];
  transport?: Transport;
  steeringMode?: QueueMode;
  followUpMode?: QueueMode;
  compaction?: CompactionSettings;
  branchSummary?: { reserveTokens?: number; skipPrompt?: boolean };
  retry?: RetrySettings;
  defaultTools?: string[];
  /**
   * Both are from newer versions: trust in projects without a decision of the user; the command for
   * `getExternalEditorCommand`.
   */
  defaultProjectTrust?: ProjectTrust;
  /** Not in the original: what happens when the model writes to a place whose files run. */
  protectedPaths?: "notify" | "ask" | "off";
  externalEditor?: string;
  images?: ImageSettings;
  shellPath?: string;
  shellCommandPrefix?: string;
  sessionDir?: string;
  npmCommand?: string[];
  packages?: PackageSource[];
  extensions?: string[];
  skills?: string[];
  prompts?: string[];
  themes?: string[];
  enableSkillCommands?: boolean;
  enableInstallTelemetry?: boolean;
  theme?: string;
  quietStartup?: boolean;
  hideThinkingBlock?: boolean;
  collapseChangelog?: boolean;
  doubleEscapeAction?: DoubleEscapeAction;
  treeFilterMode?: TreeFilterMode;
  editorPaddingX?: number;
  autocompleteMaxVisible?: number;
  showHardwareCursor?: boolean;
  terminal?: { showImages?: boolean; clearOnShrink?: boolean };
  markdown?: { codeBlockIndent?: string };
  [other: string]: unknown;
}
export interface CompactionSettings {
  enabled?: boolean;
  /** A number of tokens. */
  reserveTokens?: number;
  keepRecentTokens?: number;
  /** Overrides by `provider/id`; from newer versions. */
  modelOverrides?: Record<string, { reserveTokens?: number; keepRecentTokens?: number }>;
}
export interface ImageSettings {
  autoResize?: boolean;
  blockImages?: boolean;
}
export interface RetrySettings {
  enabled?: boolean;
  maxRetries?: number;
  /** The delay in milliseconds. */
  baseDelayMs?: number;
  /** The delay in milliseconds. */
  maxDelayMs?: number;
  maxAgentDelayMs?: number;
  /** The form of newer versions; `maxRetryDelayMs` is `maxDelayMs`, the others are ignored. */
  provider?: { timeoutMs?: number; maxRetries?: number; maxRetryDelayMs?: number };
}
export type PackageSource = string | ({ source: string } & Partial<Record<Kind, string[]>>);

type ModelName = Pick<Model, "provider" | "id">;
type Kind = "extensions" | "skills" | "prompts" | "themes";
type ProjectTrust = "ask" | "always" | "never";
type QueueMode = "all" | "one-at-a-time";
type Scope = "global" | "project";
type DoubleEscapeAction = "fork" | "tree" | "none";
type TreeFilterMode = "default" | "no-tools" | "user-only" | "labeled-only" | "all";

/** Values by the name after `get`, and after `set` where that exists. */
interface Values {
  LastChangelogVersion: string | undefined;
  DefaultProvider: string | undefined;
  DefaultModel: string | undefined;
  SteeringMode: QueueMode;
  FollowUpMode: QueueMode;
  Theme: string | undefined;
  DefaultThinkingLevel: ThinkingLevel | undefined;
  Transport: Transport;
  CompactionEnabled: boolean;
  RetryEnabled: boolean;
  HideThinkingBlock: boolean;
  ShellPath: string | undefined;
  QuietStartup: boolean;
  ShellCommandPrefix: string | undefined;
  NpmCommand: string[] | undefined;
  CollapseChangelog: boolean;
  EnableInstallTelemetry: boolean;
  EnableSkillCommands: boolean;
  ShowImages: boolean;
  ClearOnShrink: boolean;
  ImageAutoResize: boolean;
  BlockImages: boolean;
  EnabledModels: string[] | undefined;
  DefaultProjectTrust: ProjectTrust;
  DoubleEscapeAction: DoubleEscapeAction;
  TreeFilterMode: TreeFilterMode;
  ShowHardwareCursor: boolean;
  EditorPaddingX: number;
  AutocompleteMaxVisible: number;
}
interface Lists {
  Packages: PackageSource[];
  ExtensionPaths: string[];
  SkillPaths: string[];
  PromptTemplatePaths: string[];
  ThemePaths: string[];
}
interface ReadOnlyValues {
  DefaultTools: string[] | undefined;
  ThemeSetting: string | undefined;
  SessionDir: string | undefined;
  BranchSummarySkipPrompt: boolean;
  ThinkingBudgets: ThinkingBudgets | undefined;
  CodeBlockIndent: string;
}
type Get<T> = { [K in keyof T & string as `get${K}`]: () => T[K] };
/** Setting an optional value to `undefined` removes it from the file. */
type Set<T> = { [K in keyof T & string as `set${K}`]: (value: T[K]) => void };
/** Setters for a project that is not trusted throw. */
type SetProject<T> = { [K in keyof T & string as `setProject${K}`]: (value: T[K]) => void };

export interface SettingsManagerCreateOptions {
  projectTrusted?: boolean;
}
/** Members of newer versions for settings without effect here throw an error that names the setting. */
export interface SettingsManager
  extends Get<Values>, Set<Values>, Get<Lists>, Set<Lists>, SetProject<Lists>, Get<ReadOnlyValues> {}
export class SettingsManager {
  private constructor();
  /** Without trust the project's settings do not count, nor do its resources for a resource loader. */
  static create(cwd?: string, agentDir?: string, options?: SettingsManagerCreateOptions): SettingsManager;
  isProjectTrusted(): boolean;
  setProjectTrusted(trusted: boolean): void;
  static inMemory(settings?: Settings, options?: SettingsManagerCreateOptions): SettingsManager;
  static fromStorage(
    storage: { withLock(scope: Scope, fn: (current: string | undefined) => string | undefined): void },
    options?: SettingsManagerCreateOptions,
  ): SettingsManager;
  getGlobalSettings(): Settings;
  getProjectSettings(): Settings;
  setDefaultModelAndProvider(provider: string, modelId: string): void;
  /** The entry of `compaction.modelOverrides` for a model takes precedence. */
  getCompactionSettings(model?: ModelName): Required<Omit<CompactionSettings, "modelOverrides">>;
  getCompactionReserveTokens(model?: ModelName): number;
  getCompactionKeepRecentTokens(model?: ModelName): number;
  getBranchSummarySettings(): { reserveTokens: number; skipPrompt: boolean };
  getRetrySettings(): Required<Omit<RetrySettings, "provider">>;
  getProviderRetrySettings(): NonNullable<RetrySettings["provider"]> & { maxRetryDelayMs: number };
  /** The command of the settings, or `$VISUAL`, or `$EDITOR`, or one that most systems have. */
  getExternalEditorCommand(): string;
  /** Overrides last until the next change or reload. */
  applyOverrides(overrides: Settings): void;
  reload(): Promise<void>;
  flush(): Promise<void>;
  /** Errors of reading or writing since the last call. */
  drainErrors(): { scope: Scope; error: Error }[];
}

// Without this line every declaration would be exported.
export {};
