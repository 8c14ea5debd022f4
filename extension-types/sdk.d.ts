// Sessions that an extension runs beside its own, and other things to build with.
import type { ToolDefinition } from "./api.js";
import type { ContextUsage, Navigated } from "./context.js";
import type { CompactionResult } from "./events.js";
import type { ImageContent, Model, TextContent } from "./pi-ai.js";
import type { AgentMessage, CustomMessage, SessionManager } from "./session.js";
import type { BuiltInTool } from "./tools.js";

// deno-lint-ignore no-explicit-any
export type AgentSessionEvent = { type: string; [member: string]: any };

export interface PromptOptions {
  expandPromptTemplates?: boolean;
  images?: ImageContent[];
  streamingBehavior?: "steer" | "followUp";
}

/** Made by `createAgentSession`; what is set in it is not kept in the settings. */
export class AgentSession {
  private constructor();
  readonly agent: {
    subscribe(listener: (event: AgentSessionEvent) => void): () => void;
    abort(): void;
    waitForIdle(): Promise<void>;
    prompt(text: string, images?: ImageContent[]): Promise<void>;
    readonly state: AgentSession["state"];
    readonly sessionId: string;
  };
  readonly sessionManager: SessionManager;
  readonly modelRegistry: unknown;
  readonly settingsManager: unknown;
  readonly resourceLoader: unknown;
  readonly state: {
    model?: Model;
    thinkingLevel: string;
    isStreaming: boolean;
    messages: AgentMessage[];
    systemPrompt: string;
    tools: unknown[];
  };
  readonly model: Model | undefined;
  readonly thinkingLevel: string;
  readonly isStreaming: boolean;
  readonly isCompacting: boolean;
  readonly isRetrying: boolean;
  readonly messages: AgentMessage[];
  readonly systemPrompt: string;
  readonly steeringMode: string;
  readonly followUpMode: string;
  readonly sessionFile: string | undefined;
  readonly sessionId: string;
  readonly sessionName: string | undefined;
  readonly autoCompactionEnabled: boolean;
  readonly pendingMessageCount: number;
  readonly scopedModels: unknown[];
  readonly extensionRunner: undefined;
  subscribe(listener: (event: AgentSessionEvent) => void): () => void;
  dispose(): void;
  hasExtensionHandlers(eventType: string): boolean;
  bindExtensions(bindings?: unknown): Promise<void>;
  getActiveToolNames(): string[];
  setActiveToolsByName(names: string[]): void;
  getAllTools(): unknown[];
  getToolDefinition(name: string): unknown;
  /** Resolves when the agent is done; at once if the prompt was queued. */
  prompt(text: string, options?: PromptOptions): Promise<void>;
  steer(text: string, images?: ImageContent[]): Promise<void>;
  followUp(text: string, images?: ImageContent[]): Promise<void>;
  sendCustomMessage(
    message: Pick<CustomMessage, "customType" | "content" | "display" | "details">,
    options?: { triggerTurn?: boolean; deliverAs?: "steer" | "followUp" | "nextTurn" },
  ): Promise<void>;
  sendUserMessage(
    content: string | (TextContent | ImageContent)[],
    options?: { deliverAs?: "steer" | "followUp" },
  ): Promise<void>;
  clearQueue(): { steering: string[]; followUp: string[] };
  getSteeringMessages(): string[];
  getFollowUpMessages(): string[];
  abort(): Promise<void>;
  setModel(model: Pick<Model, "provider" | "id">): Promise<void>;
  cycleModel(): Promise<{ model: Model; thinkingLevel: string; isScoped: boolean } | undefined>;
  setThinkingLevel(level: string): void;
  cycleThinkingLevel(): string | undefined;
  getAvailableThinkingLevels(): string[];
  supportsThinking(): boolean;
  supportsXhighThinking(): boolean;
  setSteeringMode(mode: "all" | "one-at-a-time"): void;
  setFollowUpMode(mode: "all" | "one-at-a-time"): void;
  compact(customInstructions?: string): Promise<CompactionResult>;
  abortCompaction(): void;
  abortBranchSummary(): void;
  setAutoCompactionEnabled(enabled: boolean): void;
  setAutoRetryEnabled(enabled: boolean): void;
  abortRetry(): void;
  executeBash(
    command: string,
    onChunk?: (chunk: string) => void,
    options?: { excludeFromContext?: boolean },
  ): Promise<{ output: string; exitCode?: number; cancelled: boolean; truncated: boolean }>;
  abortBash(): void;
  setSessionName(name: string): void;
  navigateTree(targetId: string, options?: object): Promise<Navigated>;
  getUserMessagesForForking(): { entryId: string; text: string }[];
  // deno-lint-ignore no-explicit-any
  getSessionStats(): any;
  getContextUsage(): ContextUsage | undefined;
  exportToHtml(path?: string): Promise<string>;
  getLastAssistantText(): string | undefined;
  reload(): Promise<void>;
  fork(entryId: string): Promise<{ cancelled: boolean; text?: string }>;
  newSession(options?: { parentSession?: string }): Promise<{ cancelled: boolean }>;
  switchSession(path: string): Promise<{ cancelled: boolean }>;
}

export interface CreateAgentSessionOptions {
  cwd?: string;
  agentDir?: string;
  model?: Model;
  thinkingLevel?: string;
  /** Built-in tools, or their names. */
  tools?: (string | BuiltInTool)[];
  // deno-lint-ignore no-explicit-any
  customTools?: ToolDefinition<any, any, any>[];
  /** A new one in the usual place if not given. It is the session's from then on. */
  sessionManager?: SessionManager;
  resourceLoader?: ResourceLoader;
  authStorage?: unknown;
  settingsManager?: unknown;
  modelRegistry?: unknown;
}
export interface CreateAgentSessionResult {
  session: AgentSession;
  extensionsResult: unknown;
  modelFallbackMessage: string | undefined;
}
/** No extensions are loaded into it. */
export function createAgentSession(options?: CreateAgentSessionOptions): Promise<CreateAgentSessionResult>;

export interface AgentSessionServices {
  cwd: string;
  agentDir: string;
  authStorage: unknown;
  settingsManager: unknown;
  modelRegistry: unknown;
  resourceLoader: ResourceLoader;
  diagnostics: unknown[];
}
export function createAgentSessionServices(
  options: { cwd: string; agentDir?: string; resourceLoaderOptions?: DefaultResourceLoaderOptions },
): Promise<AgentSessionServices>;
export function createAgentSessionFromServices(
  options: CreateAgentSessionOptions & { services: AgentSessionServices },
): Promise<CreateAgentSessionResult>;

export interface CreateRuntimeOptions {
  cwd: string;
  agentDir: string;
  sessionManager: SessionManager;
  sessionStartEvent?: object;
}
type CreateRuntime = (
  options: CreateRuntimeOptions,
) => Promise<CreateAgentSessionResult & { services: AgentSessionServices; diagnostics: unknown[] }>;
export class AgentSessionRuntime {
  constructor(
    session: AgentSession,
    services: AgentSessionServices,
    create: CreateRuntime,
    diagnostics?: unknown[],
    modelFallbackMessage?: string,
  );
  readonly session: AgentSession;
  readonly services: AgentSessionServices;
  readonly cwd: string;
  readonly diagnostics: unknown[];
  readonly modelFallbackMessage: string | undefined;
  switchSession(sessionPath: string, cwdOverride?: string): Promise<{ cancelled: boolean }>;
  newSession(
    options?: { parentSession?: string; setup?(sessionManager: SessionManager): Promise<void> | void },
  ): Promise<{ cancelled: boolean }>;
  fork(entryId: string): Promise<{ cancelled: boolean; selectedText?: string }>;
  importFromJsonl(inputPath: string, cwdOverride?: string): Promise<{ cancelled: boolean }>;
  dispose(): Promise<void>;
}
export function createAgentSessionRuntime(
  create: CreateRuntime,
  options: CreateRuntimeOptions,
): Promise<AgentSessionRuntime>;
export function createExtensionRuntime(): object;

export interface Skill {
  name: string;
  description: string;
  filePath: string;
  baseDir: string;
  sourceInfo: unknown;
  disableModelInvocation: boolean;
}
export interface ResourceDiagnostic {
  type: string;
  message: string;
  path?: string;
}
export interface LoadSkillsResult {
  skills: Skill[];
  diagnostics: ResourceDiagnostic[];
}
export interface ContextFile {
  path: string;
  content: string;
}
export function loadSkills(
  options?: { cwd?: string; agentDir?: string; skillPaths?: string[]; includeDefaults?: boolean },
): LoadSkillsResult;
export function loadSkillsFromDir(options: { dir: string; source?: string }): LoadSkillsResult;
export function formatSkillsForPrompt(skills: Skill[]): string;
export function loadProjectContextFiles(options?: { cwd?: string; agentDir?: string }): ContextFile[];
export interface ParsedSkillBlock {
  name: string;
  location: string;
  content: string;
  userMessage: string | undefined;
}
export function parseSkillBlock(text: string): ParsedSkillBlock | null;
export function createSyntheticSourceInfo(
  path: string,
  from: { source: string; scope?: string; origin?: string; baseDir?: string },
): { path: string; source: string; scope?: string; origin?: string; baseDir?: string };

/** What a session is told; where a member is missing, pi looks for itself. */
export interface ResourceLoader {
  getExtensions?(): unknown;
  getSkills?(): LoadSkillsResult;
  getPrompts?(): { prompts: unknown[]; diagnostics: ResourceDiagnostic[] };
  getThemes?(): { themes: unknown[]; diagnostics: ResourceDiagnostic[] };
  getAgentsFiles?(): { agentsFiles: ContextFile[] };
  getSystemPrompt?(): string | undefined;
  getAppendSystemPrompt?(): string[];
}
export interface DefaultResourceLoaderOptions {
  cwd?: string;
  agentDir?: string;
  additionalSkillPaths?: string[];
  additionalPromptTemplatePaths?: string[];
  noExtensions?: boolean;
  noSkills?: boolean;
  noPromptTemplates?: boolean;
  noThemes?: boolean;
  noContextFiles?: boolean;
  /** A text, or the name of a file that has it. */
  systemPrompt?: string;
  appendSystemPrompt?: string | string[];
  skillsOverride?(base: LoadSkillsResult): LoadSkillsResult;
  agentsFilesOverride?(base: { agentsFiles: ContextFile[] }): { agentsFiles: ContextFile[] };
  systemPromptOverride?(base: string | undefined): string | undefined;
  appendSystemPromptOverride?(base: string[]): string[];
}
export class DefaultResourceLoader implements ResourceLoader {
  constructor(options?: DefaultResourceLoaderOptions);
  reload(): Promise<void>;
  getExtensions(): { extensions: never[]; errors: never[] };
  getSkills(): LoadSkillsResult;
  getPrompts(): { prompts: unknown[]; diagnostics: ResourceDiagnostic[] };
  getThemes(): { themes: unknown[]; diagnostics: ResourceDiagnostic[] };
  getAgentsFiles(): { agentsFiles: ContextFile[] };
  getSystemPrompt(): string | undefined;
  getAppendSystemPrompt(): string[];
  extendResources(paths: { skillPaths?: { path: string }[] }): void;
}

export interface RpcClientOptions {
  cwd?: string;
  env?: Record<string, string>;
  provider?: string;
  model?: string;
  args?: string[];
}
/** Another pi, as a child process. */
export class RpcClient {
  constructor(options?: RpcClientOptions);
  start(): Promise<void>;
  stop(): Promise<void>;
  onEvent(listener: (event: AgentSessionEvent) => void): () => void;
  getStderr(): string;
  prompt(message: string, images?: ImageContent[]): Promise<void>;
  steer(message: string, images?: ImageContent[]): Promise<void>;
  followUp(message: string, images?: ImageContent[]): Promise<void>;
  abort(): Promise<void>;
  newSession(parentSession?: string): Promise<{ cancelled: boolean }>;
  // deno-lint-ignore no-explicit-any
  getState(): Promise<any>;
  setModel(provider: string, modelId: string): Promise<Model>;
  cycleModel(): Promise<{ model: Model; thinkingLevel: string; isScoped: boolean } | null>;
  getAvailableModels(): Promise<Model[]>;
  setThinkingLevel(level: string): Promise<void>;
  cycleThinkingLevel(): Promise<{ level: string } | null>;
  setSteeringMode(mode: "all" | "one-at-a-time"): Promise<void>;
  setFollowUpMode(mode: "all" | "one-at-a-time"): Promise<void>;
  compact(customInstructions?: string): Promise<CompactionResult>;
  setAutoCompaction(enabled: boolean): Promise<void>;
  setAutoRetry(enabled: boolean): Promise<void>;
  abortRetry(): Promise<void>;
  bash(command: string): Promise<{ output: string; exitCode?: number }>;
  abortBash(): Promise<void>;
  // deno-lint-ignore no-explicit-any
  getSessionStats(): Promise<any>;
  exportHtml(outputPath?: string): Promise<{ path: string }>;
  switchSession(sessionPath: string): Promise<{ cancelled: boolean }>;
  fork(entryId: string): Promise<{ text: string; cancelled: boolean }>;
  getForkMessages(): Promise<{ entryId: string; text: string }[]>;
  getLastAssistantText(): Promise<string | null>;
  setSessionName(name: string): Promise<void>;
  getMessages(): Promise<AgentMessage[]>;
  getCommands(): Promise<unknown[]>;
  waitForIdle(timeout?: number): Promise<void>;
  collectEvents(timeout?: number): Promise<AgentSessionEvent[]>;
  promptAndWait(message: string, images?: ImageContent[], timeout?: number): Promise<AgentSessionEvent[]>;
}
