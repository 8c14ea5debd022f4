// Sessions of an extension's own, beside the one that it belongs to.
import type { ImageContent, Model, TextContent } from "./pi-ai.js";
import type { ThinkingLevel } from "./pi-agent-core.js";
import type { Agent, AgentEvent, AgentState } from "./agent-loop.js";
import type { EventBus, ExtensionFlag, ExtensionShortcut, InlineExtension, RegisteredCommand } from "./api.js";
import type { RegisteredTool, SourceInfo, ToolDefinition, ToolInfo } from "./api.js";
import type { ExtensionRuntime } from "./extension-runtime.js";
import type { EntryRenderer, MarkdownTransformer, MessageRenderer } from "./renderers.js";
import type { ContextUsage, ExtensionCommandContext, ExtensionContext, ExtensionMode, ExtensionUIContext } from "./context.js";
import type { Navigated } from "./context.js";
import type { CompactionReason, CompactionResult, InputSource, SessionStartEvent } from "./events.js";
import type { ModelRuntime } from "./model-runtime.js";
import type { AuthStorage, ModelRegistry, ScopedModel } from "./providers.js";
import type { AgentMessage, CustomMessage, SessionEntry, SessionManager } from "./session.js";
import type { SettingsManager } from "./settings.js";
import type { Theme } from "./theme.js";
import type { BashOperations } from "./tools.js";

type QueueMode = "all" | "one-at-a-time";

export type AgentSessionEvent =
  | Exclude<AgentEvent, { type: "agent_end" }>
  /** `willRetry`: the last request failed, and is going to be tried again. */
  | { type: "agent_end"; messages: AgentMessage[]; willRetry: boolean }
  /** By `pi.appendEntry` or a `turn_end` handler of one of the `extensionFactories`. */
  | { type: "entry_appended"; entry: SessionEntry }
  | { type: "session_info_changed"; name: string | undefined }
  /** Nothing is left to do. */
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
  /** Needed while the agent works. */
  streamingBehavior?: "steer" | "followUp";
  /** For extensions of the session, which has none. */
  source?: InputSource;
  /** Called once, when it is known whether it will be answered. */
  preflightResult?(accepted: boolean): void;
}

/** Of a command that a user or an extension runs, not the model. */
export interface BashResult {
  output: string;
  /** Not there if it was cancelled. */
  exitCode: number | undefined;
  cancelled: boolean;
  truncated: boolean;
  /** The whole output, when it was long. */
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

/** Setting its prompt or its tools throws: a resource loader and `setActiveToolsByName` say them. */
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
/** Only `onError` is looked at: nobody can be asked in such a session. */
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
/** What of the original's runner there is. */
export interface SessionExtensionRunner {
  hasHandlers(eventType: string): boolean;
  /** Of `session_shutdown`; others throw. Who disposes of the session need not emit it. */
  emit(event: { type: string; [member: string]: unknown }): Promise<void>;
  /** Returns what ends it. */
  onError(listener: (error: ExtensionError) => void): () => void;
}
interface BashOptions {
  /** The model is not told of it. */
  excludeFromContext?: boolean;
}

export class AgentSession {
  private constructor();
  readonly sessionManager: SessionManager;
  readonly settingsManager: SettingsManager;
  readonly modelRegistry: ModelRegistry;
  readonly modelRuntime: ModelRuntime;
  readonly resourceLoader: ResourceLoader;
  /** What runs it, pi itself: what else is set in it, its streams above all, is refused. */
  readonly agent: SessionAgent;
  readonly state: SessionState;
  readonly model: Model | undefined;
  readonly thinkingLevel: ThinkingLevel;
  readonly isStreaming: boolean;
  readonly isCompacting: boolean;
  /** No run, no compaction. */
  readonly isIdle: boolean;
  readonly isRetrying: boolean;
  /** From 1 while a request that failed is tried again, else 0. */
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
  /** Returns what ends it. */
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
  /** Until the run that goes on has ended, and all that it made begin. */
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
    /** With `operations` it does not run on this machine, but where they say. */
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
  /** The branch that is open, as a session file of its own; returns its path. */
  exportToJsonl(outputPath?: string): string;
  getLastAssistantText(): string | undefined;
  reload(): Promise<void>;
  /** The extensions that were loaded for it hear of `session_start` now. */
  bindExtensions(bindings: ExtensionBindings): Promise<void>;
  hasExtensionHandlers(eventType: string): boolean;
  readonly extensionRunner: SessionExtensionRunner;
}

export interface CreateAgentSessionOptions {
  cwd?: string;
  agentDir?: string;
  /** Where models and keys are looked up; of these the first that is given counts. */
  modelRuntime?: ModelRuntime;
  modelRegistry?: ModelRegistry;
  authStorage?: AuthStorage;
  model?: Model;
  thinkingLevel?: ThinkingLevel;
  scopedModels?: ScopedModel[];
  /**
   * Built-in ones; without it what the settings say, or `read`, `bash`, `edit` and `write`. A list of names is one of
   * all tools that there are, `customTools` included. Of a tool only the name is looked at.
   */
  tools?: ({ name: string } | string)[];
  /** Without `tools`: no tools at all, or only `customTools`. */
  noTools?: "all" | "builtin";
  /** Names of tools that are not there in any case. */
  excludeTools?: string[];
  // deno-lint-ignore no-explicit-any
  customTools?: ToolDefinition<any, any, any>[];
  resourceLoader?: ResourceLoader;
  sessionManager?: SessionManager;
  settingsManager?: SettingsManager;
  /** What its extensions hear first; else that it starts. */
  sessionStartEvent?: SessionStartEvent;
  /** Of flags that its extensions have registered. */
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
  /** For the extensions of the session that is made of these. */
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
  /** Of newer versions. */
  resourceLoaderReloadOptions?: ResourceLoaderReloadOptions;
  /** Of flags that the extensions have registered. */
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
/** A session that may be replaced by another one. */
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

// ---- What a session is given ----

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
   * Of the `extensionFactories` (`<inline:1>`) what they register cannot be read. Of those from files it can be looked
   * at; they run in an isolate of their own, so nothing of it can be changed or called.
   */
  extensions: Extension[];
  errors: { path: string; error: string }[];
  runtime?: ExtensionRuntime;
}

/** Those of the two folders and of `configuredPaths`, whatever the settings say: for a loader of your own. */
export function discoverAndLoadExtensions(
  configuredPaths: string[],
  cwd: string,
  agentDir?: string,
  /** For extensions that are functions: these have one of their own. */
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
/** Where a resource comes from. */
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
/** Of newer versions: whether what the project brings counts, which it does not while it is asked. */
export interface ResourceLoaderReloadOptions {
  resolveProjectTrust?(asked: { extensionsResult: LoadExtensionsResult }): Promise<boolean>;
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
  /** These two are of newer versions: nobody asks for them here. */
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
  /** A text, or the path of a file that has it; so are those after it. */
  systemPrompt?: string;
  appendSystemPrompt?: string | string[];
  /** Files and packages, beside those that are found; also with `noExtensions`. */
  additionalExtensionPaths?: string[];
  /** They hear what happens in the session, may block tools and change what models are told; what else of `pi` they call throws. */
  extensionFactories?: InlineExtension[];
  /** What is `pi.events` for them. */
  eventBus?: EventBus;
  /** Which of the extensions run; others than those that it is given are refused. */
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
  /** The file that it is from; nothing if it is not from one. */
  getSystemPromptSource(): { path: string } | undefined;
  getAppendSystemPrompt(): string[];
  getAppendSystemPromptSources(): { path: string }[];
  extendResources(paths: { skillPaths?: More[]; promptPaths?: More[]; themePaths?: More[] }): void;
  reload(options?: ResourceLoaderReloadOptions): Promise<void>;
}

export interface ConfiguredPackage {
  source: string;
  scope: "user" | "project";
  /** The settings choose among what it brings. */
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
/** To look at: installing and the like is the program's, and throws. */
export class DefaultPackageManager {
  constructor(options: { cwd: string; agentDir: string; settingsManager?: SettingsManager });
  listConfiguredPackages(): ConfiguredPackage[];
  getInstalledPath(source: string, scope: "user" | "project"): string | undefined;
  /** The same as `resolve` of folders, files, and packages that are installed. */
  resolveExtensionSources(sources: string[], options?: { local?: boolean; temporary?: boolean }): Promise<ResolvedPaths>;
  /** What pi finds; nothing is installed. */
  resolve(onMissing?: (source: string) => Promise<"install" | "skip" | "error">): Promise<ResolvedPaths>;
}

// Only what says so is exported.
export {};
/** What extensions of a session would share: there are none in one that an extension runs. */
export function createExtensionRuntime(): ExtensionRuntime;
