// Child sessions that an extension creates.
import type { ImageContent, Model, TextContent } from "../pi-ai.js";
import type { ThinkingLevel } from "../pi-agent-core.js";
import type { Agent, AgentEvent, AgentState } from "../ai/agent-loop.js";
import type { EventBus, ExtensionFlag, ExtensionShortcut, InlineExtension, RegisteredCommand } from "../extension/api.js";
import type { RegisteredTool, SourceInfo, ToolDefinition, ToolInfo } from "../extension/api.js";
import type { ExtensionRuntime } from "../extension/extension-runtime.js";
import type { EntryRenderer, MarkdownTransformer, MessageRenderer } from "../extension/renderers.js";
import type { ContextUsage, ExtensionCommandContext, ExtensionContext, ExtensionMode, ExtensionUIContext } from "../extension/context.js";
import type { Navigated } from "../extension/context.js";
import type { CompactionReason, CompactionResult, InputSource, SessionStartEvent } from "../extension/events.js";
import type { ModelRuntime } from "../ai/model-runtime.js";
import type { AuthStorage, ModelRegistry, ScopedModel } from "../ai/providers.js";
import type { AgentMessage, CustomMessage, SessionEntry, SessionManager } from "./session.js";
import type { SettingsManager } from "../extension/settings.js";
import type { Theme } from "../tui/theme.js";
import type { BashOperations } from "../extension/tools.js";

type QueueMode = "all" | "one-at-a-time";

export type AgentSessionEvent =
  | Exclude<AgentEvent, { type: "agent_end" }>
  /** `willRetry`: the last request failed, and will be repeated. */
  | { type: "agent_end"; messages: AgentMessage[]; willRetry: boolean }
  /** Appended by `pi.appendEntry` or a `turn_end` handler of one of the `extensionFactories`. */
  | { type: "entry_appended"; entry: SessionEntry }
  | { type: "session_info_changed"; name: string | undefined }
  /** Emitted when no work is left. */
  | { type: "agent_settled" }
  | { type: "thinking_level_changed"; level: ThinkingLevel }
  | { type: "queue_update"; steering: readonly string[]; followUp: readonly string[] }
  | { type: "compaction_start"; reason: CompactionReason }
  | {
    type: "compaction_end";
    reason: CompactionReason;
    result: CompactionResult | undefined;
    aborted: boolean;
    willRetry: boolean;
    errorMessage?: string;
  }
  | { type: "auto_retry_start"; attempt: number; maxAttempts: number; delayMs: number; errorMessage: string }
  | { type: "auto_retry_end"; success: boolean; attempt: number; finalError?: string };
export type AgentSessionEventListener = (event: AgentSessionEvent) => void;

export interface PromptOptions {
  expandPromptTemplates?: boolean;
  images?: ImageContent[];
  /** Required while the agent runs. */
  streamingBehavior?: "steer" | "followUp";
  /** Passed to extensions of the session, which has none. */
  source?: InputSource;
  /** Called once, when it is known whether the prompt is accepted. */
  preflightResult?(accepted: boolean): void;
}

/** The result of a command that a user or an extension runs, not the model. */
export interface BashResult {
  output: string;
  /** Absent if the command was cancelled. */
  exitCode: number | undefined;
  cancelled: boolean;
  truncated: boolean;
  /** The file with all of the output, if it was truncated. */
  fullOutputPath?: string;
}
export interface ModelCycleResult {
  model: Model;
  thinkingLevel: ThinkingLevel;
  isScoped: boolean;
}
export interface SessionStats {
  sessionFile: string | undefined;
  sessionId: string;
  userMessages: number;
  assistantMessages: number;
  toolCalls: number;
  toolResults: number;
  totalMessages: number;
  tokens: { input: number; output: number; cacheRead: number; cacheWrite: number; total: number };
  cost: number;
  contextUsage?: ContextUsage;
}

/** Setting the prompt or the tools throws: use a resource loader and `setActiveToolsByName`. */
type SessionState =
  & Omit<AgentState, "systemPrompt" | "tools">
  & Readonly<Pick<AgentState, "systemPrompt" | "tools">>;
type SessionAgent = { readonly state: SessionState } & Pick<
  Agent,
  | "sessionId" | "steeringMode" | "followUpMode" | "subscribe" | "prompt" | "steer" | "followUp"
  | "clearAllQueues" | "hasQueuedMessages" | "abort" | "waitForIdle" | "reset" | "beforeToolCall" | "afterToolCall"
>;
export interface ExtensionError {
  extensionPath: string;
  event: string;
  error: string;
  stack?: string;
}
/** Only `onError` is used: such a session has no user to ask. */
export interface ExtensionBindings {
  onError?(error: ExtensionError): void;
  uiContext?: ExtensionUIContext;
  mode?: ExtensionMode;
  commandContextActions?: Omit<
    ExtensionCommandContext,
    keyof ExtensionContext | "getSystemPromptOptions"
  >;
  abortHandler?(): void;
  shutdownHandler?(): void;
  [other: string]: unknown;
}
/** The available members of the original's runner. */
export interface SessionExtensionRunner {
  hasHandlers(eventType: string): boolean;
  /** Emits `session_shutdown`; other events throw. Disposing of the session does not require it. */
  emit(event: { type: string; [member: string]: unknown }): Promise<void>;
  /** Returns a function that unsubscribes the listener. */
  onError(listener: (error: ExtensionError) => void): () => void;
}
interface BashOptions {
  /** Hides the command from the model. */
  excludeFromContext?: boolean;
}

export class AgentSession {
  private constructor();
  readonly sessionManager: SessionManager;
  readonly settingsManager: SettingsManager;
  readonly modelRegistry: ModelRegistry;
  readonly modelRuntime: ModelRuntime;
  readonly resourceLoader: ResourceLoader;
  /** The agent of the session, which pi itself runs: setting other members, its streams above all, throws. */
  readonly agent: SessionAgent;
  readonly state: SessionState;
  readonly model: Model | undefined;
  readonly thinkingLevel: ThinkingLevel;
  readonly isStreaming: boolean;
  readonly isCompacting: boolean;
  /** Whether there is no run and no compaction. */
  readonly isIdle: boolean;
  readonly isRetrying: boolean;
  /** Counts from 1 while a failed request is repeated, else 0. */
  readonly retryAttempt: number;
  readonly autoRetryEnabled: boolean;
  readonly isBashRunning: boolean;
  /** Whether commands that ran during a run wait for its end. */
  readonly hasPendingBashMessages: boolean;
  readonly promptTemplates: readonly PromptTemplate[];
  readonly messages: AgentMessage[];
  readonly systemPrompt: string;
  readonly steeringMode: QueueMode;
  readonly followUpMode: QueueMode;
  readonly sessionFile: string | undefined;
  readonly sessionId: string;
  readonly sessionName: string | undefined;
  readonly autoCompactionEnabled: boolean;
  readonly pendingMessageCount: number;
  readonly scopedModels: readonly ScopedModel[];
  setScopedModels(models: ScopedModel[]): void;
  /** Returns a function that unsubscribes the listener. */
  subscribe(listener: AgentSessionEventListener): () => void;
  dispose(): void;
  /** Resolves when the run is over. */
  prompt(text: string, options?: PromptOptions): Promise<void>;
  steer(text: string, images?: ImageContent[]): Promise<void>;
  followUp(text: string, images?: ImageContent[]): Promise<void>;
  sendCustomMessage<T = unknown>(
    message: Pick<CustomMessage<T>, "customType" | "content" | "display" | "details">,
    options?: { triggerTurn?: boolean; deliverAs?: "steer" | "followUp" | "nextTurn" },
  ): Promise<void>;
  sendUserMessage(
    content: string | (TextContent | ImageContent)[],
    options?: { deliverAs?: "steer" | "followUp"; expandPromptTemplates?: boolean },
  ): Promise<void>;
  clearQueue(): { steering: string[]; followUp: string[] };
  getSteeringMessages(): readonly string[];
  getFollowUpMessages(): readonly string[];
  abort(): Promise<void>;
  /** Waits until the active run has ended, and all runs that it started. */
  waitForIdle(): Promise<void>;
  getActiveToolNames(): string[];
  setActiveToolsByName(toolNames: string[]): void;
  getAllTools(): ToolInfo[];
  getToolDefinition(name: string): ToolDefinition | undefined;
  setModel(model: Model): Promise<void>;
  cycleModel(direction?: "forward" | "backward"): Promise<ModelCycleResult | undefined>;
  setThinkingLevel(level: ThinkingLevel): void;
  cycleThinkingLevel(): ThinkingLevel | undefined;
  getAvailableThinkingLevels(): ThinkingLevel[];
  supportsThinking(): boolean;
  supportsXhighThinking(): boolean;
  setSteeringMode(mode: QueueMode): void;
  setFollowUpMode(mode: QueueMode): void;
  compact(customInstructions?: string): Promise<CompactionResult>;
  abortCompaction(): void;
  abortBranchSummary(): void;
  setAutoCompactionEnabled(enabled: boolean): void;
  setAutoRetryEnabled(enabled: boolean): void;
  abortRetry(): void;
  executeBash(
    command: string,
    onChunk?: (chunk: string) => void,
    /** With `operations` the command runs where they run it, not on this machine. */
    options?: BashOptions & { operations?: BashOperations },
  ): Promise<BashResult>;
  recordBashResult(command: string, result: BashResult, options?: BashOptions): void;
  abortBash(): void;
  setSessionName(name: string): void;
  navigateTree(
    targetId: string,
    options?: { summarize?: boolean; customInstructions?: string; replaceInstructions?: boolean; label?: string },
  ): Promise<Navigated>;
  getUserMessagesForForking(): { entryId: string; text: string }[];
  getSessionStats(): SessionStats;
  getContextUsage(): ContextUsage | undefined;
  exportToHtml(outputPath?: string): Promise<string>;
  /** Writes the current branch to a session file of its own; returns its path. */
  exportToJsonl(outputPath?: string): string;
  getLastAssistantText(): string | undefined;
  reload(): Promise<void>;
  /** Emits `session_start` to the extensions that were loaded for it. */
  bindExtensions(bindings: ExtensionBindings): Promise<void>;
  hasExtensionHandlers(eventType: string): boolean;
  readonly extensionRunner: SessionExtensionRunner;
}

export interface CreateAgentSessionOptions {
  cwd?: string;
  agentDir?: string;
  /** Sources of models and keys; the first of these that is set counts. */
  modelRuntime?: ModelRuntime;
  modelRegistry?: ModelRegistry;
  authStorage?: AuthStorage;
  model?: Model;
  thinkingLevel?: ThinkingLevel;
  scopedModels?: ScopedModel[];
  /**
   * Built-in tools; by default those of the settings, or `read`, `bash`, `edit` and `write`. A list
   * of names may contain any known tool, `customTools` included. Only the name of a tool is used.
   */
  tools?: ({ name: string } | string)[];
  /** Without `tools`: no tools at all, or only `customTools`. */
  noTools?: "all" | "builtin";
  /** Names of tools that are excluded in any case. */
  excludeTools?: string[];
  // deno-lint-ignore no-explicit-any
  customTools?: ToolDefinition<any, any, any>[];
  resourceLoader?: ResourceLoader;
  sessionManager?: SessionManager;
  settingsManager?: SettingsManager;
  /** The first event of its extensions; by default that of a start. */
  sessionStartEvent?: SessionStartEvent;
  /** Values of flags that its extensions have registered. */
  extensionFlagValues?: Map<string, boolean | string>;
}
export interface CreateAgentSessionResult {
  session: AgentSession;
  extensionsResult: LoadExtensionsResult;
  modelFallbackMessage?: string;
}
export function createAgentSession(options?: CreateAgentSessionOptions): Promise<CreateAgentSessionResult>;

export interface AgentSessionRuntimeDiagnostic {
  type: "info" | "warning" | "error";
  message: string;
}
export interface AgentSessionServices {
  cwd: string;
  agentDir: string;
  authStorage: AuthStorage;
  settingsManager: SettingsManager;
  modelRegistry: ModelRegistry;
  modelRuntime: ModelRuntime;
  resourceLoader: ResourceLoader;
  /** Values of flags for the extensions of the session that is created from these services. */
  extensionFlagValues?: Map<string, boolean | string>;
  diagnostics: AgentSessionRuntimeDiagnostic[];
}
export interface CreateAgentSessionServicesOptions {
  cwd: string;
  agentDir?: string;
  authStorage?: AuthStorage;
  settingsManager?: SettingsManager;
  modelRegistry?: ModelRegistry;
  modelRuntime?: ModelRuntime;
  resourceLoaderOptions?: Omit<DefaultResourceLoaderOptions, "cwd" | "agentDir" | "settingsManager">;
  /** From newer versions. */
  resourceLoaderReloadOptions?: ResourceLoaderReloadOptions;
  /** Values of flags that the extensions have registered. */
  extensionFlagValues?: Map<string, boolean | string>;
}
export interface CreateAgentSessionFromServicesOptions
  extends Omit<CreateAgentSessionOptions, keyof AgentSessionServices> {
  services: AgentSessionServices;
  sessionManager: SessionManager;
}
export interface CreateAgentSessionRuntimeResult extends CreateAgentSessionResult {
  services: AgentSessionServices;
  diagnostics: AgentSessionRuntimeDiagnostic[];
}
interface RuntimePlace {
  cwd: string;
  agentDir: string;
  sessionManager: SessionManager;
  sessionStartEvent?: SessionStartEvent;
}
export type CreateAgentSessionRuntimeFactory = (options: RuntimePlace) => Promise<CreateAgentSessionRuntimeResult>;
export function createAgentSessionServices(options: CreateAgentSessionServicesOptions): Promise<AgentSessionServices>;
export function createAgentSessionFromServices(
  options: CreateAgentSessionFromServicesOptions,
): Promise<CreateAgentSessionResult>;
export function createAgentSessionRuntime(
  createRuntime: CreateAgentSessionRuntimeFactory,
  options: RuntimePlace,
): Promise<AgentSessionRuntime>;
/** Holds a session, and can replace it by another one. */
export class AgentSessionRuntime {
  private constructor();
  readonly session: AgentSession;
  readonly services: AgentSessionServices;
  readonly cwd: string;
  readonly diagnostics: readonly AgentSessionRuntimeDiagnostic[];
  readonly modelFallbackMessage: string | undefined;
  switchSession(sessionPath: string, cwdOverride?: string): Promise<{ cancelled: boolean }>;
  newSession(options?: {
    parentSession?: string;
    setup?(sessionManager: SessionManager): Promise<void>;
  }): Promise<{ cancelled: boolean }>;
  fork(entryId: string): Promise<{ cancelled: boolean; selectedText?: string }>;
  importFromJsonl(inputPath: string, cwdOverride?: string): Promise<{ cancelled: boolean }>;
  dispose(): Promise<void>;
}

// ---- Resources of a session ----

export interface ResourceCollision {
  resourceType: "extension" | "skill" | "prompt" | "theme";
  name: string;
  winnerPath: string;
  loserPath: string;
  winnerSource?: string;
  loserSource?: string;
}
export interface ResourceDiagnostic {
  type: "warning" | "error" | "collision";
  message: string;
  path?: string;
  collision?: ResourceCollision;
}
export interface SkillFrontmatter {
  name?: string;
  description?: string;
  "disable-model-invocation"?: boolean;
  [key: string]: unknown;
}
export interface Skill {
  name: string;
  description: string;
  filePath: string;
  baseDir: string;
  sourceInfo: SourceInfo;
  disableModelInvocation: boolean;
}
export interface LoadSkillsResult {
  skills: Skill[];
  diagnostics: ResourceDiagnostic[];
}
export interface LoadSkillsFromDirOptions {
  dir: string;
  source: string;
}
export function loadSkills(options?: {
  cwd?: string;
  agentDir?: string;
  skillPaths?: string[];
  includeDefaults?: boolean;
}): LoadSkillsResult;
export function loadSkillsFromDir(options: LoadSkillsFromDirOptions): LoadSkillsResult;
export function formatSkillsForPrompt(skills: Skill[]): string;
export interface ParsedSkillBlock {
  name: string;
  location: string;
  content: string;
  userMessage: string | undefined;
}
export function parseSkillBlock(text: string): ParsedSkillBlock | null;
export function loadProjectContextFiles(options?: { cwd?: string; agentDir?: string }): ContextFile[];
export function createSyntheticSourceInfo(
  path: string,
  options: { source: string; scope?: string; origin?: string; baseDir?: string },
): SourceInfo;
interface ContextFile {
  path: string;
  content: string;
}
export interface PromptTemplate {
  name: string;
  description: string;
  argumentHint?: string;
  content: string;
  sourceInfo: SourceInfo;
  filePath: string;
}
export interface Extension {
  path: string;
  resolvedPath: string;
  hidden?: boolean;
  sourceInfo: SourceInfo;
  handlers: Map<string, ((...args: unknown[]) => Promise<unknown>)[]>;
  tools: Map<string, RegisteredTool>;
  messageRenderers: Map<string, MessageRenderer>;
  markdownTransformer?: MarkdownTransformer;
  entryRenderers?: Map<string, EntryRenderer>;
  commands: Map<string, RegisteredCommand>;
  flags: Map<string, ExtensionFlag>;
  shortcuts: Map<string, ExtensionShortcut>;
}
export interface LoadExtensionsResult {
  /**
   * Registrations of the `extensionFactories` (`<inline:1>`) cannot be read. Those of extensions
   * from files can be read; they run in an isolate of their own, so nothing of it can be changed or
   * called.
   */
  extensions: Extension[];
  errors: { path: string; error: string }[];
  runtime?: ExtensionRuntime;
}

/**
 * Loads the extensions of the two folders and of `configuredPaths`, whatever the settings are: for
 * a loader of your own.
 */
export function discoverAndLoadExtensions(
  configuredPaths: string[],
  cwd: string,
  agentDir?: string,
  /** The bus of extensions that are functions; the loaded ones have a bus of their own. */
  eventBus?: EventBus,
): Promise<LoadExtensionsResult & { runtime: ExtensionRuntime }>;

interface PromptsResult {
  prompts: PromptTemplate[];
  diagnostics: ResourceDiagnostic[];
}
interface ThemesResult {
  themes: Theme[];
  diagnostics: ResourceDiagnostic[];
}
/** The source of a resource. */
export interface PathMetadata {
  source: string;
  scope: "user" | "project" | "temporary";
  origin: "package" | "top-level";
  baseDir?: string;
}
interface More {
  path: string;
  metadata?: PathMetadata;
}
/** From newer versions: decides whether the project is trusted; it is not while the function runs. */
export interface ResourceLoaderReloadOptions {
  resolveProjectTrust?(request: { extensionsResult: LoadExtensionsResult }): Promise<boolean>;
}

export interface ResourceLoader {
  getExtensions(): LoadExtensionsResult;
  getSkills(): LoadSkillsResult;
  getPrompts(): PromptsResult;
  getThemes(): ThemesResult;
  getAgentsFiles(): { agentsFiles: ContextFile[] };
  getSystemPrompt(): string | undefined;
  getAppendSystemPrompt(): string[];
  extendResources(paths: { skillPaths?: More[]; promptPaths?: More[]; themePaths?: More[] }): void;
  reload(options?: ResourceLoaderReloadOptions): Promise<void>;
  /** These two are from newer versions; pi does not call them. */
  getSystemPromptSource?(): { path: string } | undefined;
  getAppendSystemPromptSources?(): { path: string }[];
}
export interface DefaultResourceLoaderOptions {
  cwd?: string;
  agentDir?: string;
  settingsManager?: SettingsManager;
  additionalSkillPaths?: string[];
  additionalPromptTemplatePaths?: string[];
  additionalThemePaths?: string[];
  noExtensions?: boolean;
  noSkills?: boolean;
  noPromptTemplates?: boolean;
  noThemes?: boolean;
  noContextFiles?: boolean;
  /** A text, or the path of a file that contains it, like the members below. */
  systemPrompt?: string;
  appendSystemPrompt?: string | string[];
  /** Files and packages in addition to those that are found; also used with `noExtensions`. */
  additionalExtensionPaths?: string[];
  /**
   * Functions that get the events of the session, may block tools and change what models get; other
   * members of `pi` throw.
   */
  extensionFactories?: InlineExtension[];
  /** The `pi.events` of these extensions. */
  eventBus?: EventBus;
  /** Selects the extensions that run; it must not add others. */
  extensionsOverride?(base: LoadExtensionsResult): LoadExtensionsResult;
  skillsOverride?(base: LoadSkillsResult): LoadSkillsResult;
  promptsOverride?(base: PromptsResult): PromptsResult;
  themesOverride?(base: ThemesResult): ThemesResult;
  agentsFilesOverride?(base: { agentsFiles: ContextFile[] }): { agentsFiles: ContextFile[] };
  systemPromptOverride?(base: string | undefined): string | undefined;
  appendSystemPromptOverride?(base: string[]): string[];
}
export class DefaultResourceLoader implements ResourceLoader {
  constructor(options?: DefaultResourceLoaderOptions);
  getExtensions(): LoadExtensionsResult & { runtime: ExtensionRuntime };
  getSkills(): LoadSkillsResult;
  getPrompts(): PromptsResult;
  getThemes(): ThemesResult;
  getAgentsFiles(): { agentsFiles: ContextFile[] };
  getSystemPrompt(): string | undefined;
  /** The source file; `undefined` if there is none. */
  getSystemPromptSource(): { path: string } | undefined;
  getAppendSystemPrompt(): string[];
  getAppendSystemPromptSources(): { path: string }[];
  extendResources(paths: { skillPaths?: More[]; promptPaths?: More[]; themePaths?: More[] }): void;
  reload(options?: ResourceLoaderReloadOptions): Promise<void>;
}

export interface ConfiguredPackage {
  source: string;
  scope: "user" | "project";
  /** Whether the settings select among the package's resources. */
  filtered: boolean;
  installedPath?: string;
}
export interface ResolvedResource {
  path: string;
  enabled: boolean;
  metadata: PathMetadata;
}
export interface ResolvedPaths {
  extensions: ResolvedResource[];
  skills: ResolvedResource[];
  prompts: ResolvedResource[];
  themes: ResolvedResource[];
}
/** Read-only: the program installs packages, and methods that would do so throw. */
export class DefaultPackageManager {
  constructor(options: { cwd: string; agentDir: string; settingsManager?: SettingsManager });
  listConfiguredPackages(): ConfiguredPackage[];
  getInstalledPath(source: string, scope: "user" | "project"): string | undefined;
  /** Like `resolve`, for these folders, files, and installed packages only. */
  resolveExtensionSources(sources: string[], options?: { local?: boolean; temporary?: boolean }): Promise<ResolvedPaths>;
  /** Returns the resources that pi finds; nothing is installed. */
  resolve(onMissing?: (source: string) => Promise<"install" | "skip" | "error">): Promise<ResolvedPaths>;
}

// Without this line every declaration would be exported.
export {};
/** The state that extensions of a session would share: a child session has none. */
export function createExtensionRuntime(): ExtensionRuntime;
