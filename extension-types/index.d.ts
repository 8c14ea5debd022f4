// `@mariozechner/pi-coding-agent`: the API of extensions.
import type { EventBusController } from "./extension/api.js";
import type {
  BuiltInToolInputs,
  CompactionPreparation,
  CompactionResult,
  ToolCallEvent,
  ToolResultEvent,
} from "./extension/events.js";
import type { AssistantMessageEventStream, Context, Message, Model, SimpleStreamOptions, Usage } from "./pi-ai.js";
import type { ThinkingLevel } from "./pi-agent-core.js";
import type { Component, Container, TUI } from "./pi-tui.js";
import type {
  AgentMessage,
  CompactionEntry,
  ReadonlySessionManager,
  SessionContext,
  SessionEntry,
  SessionHeader,
} from "./sdk/session.js";
import type { CompactionSettings } from "./extension/settings.js";
import type { Theme } from "./tui/theme.js";

export type * from "./extension/turn-end.js";
export type * from "./extension/context.js";
export type * from "./extension/events.js";
export type * from "./extension/extension-runtime.js";
export * from "./sdk/session.js";
export type { AgentToolResult, AgentToolUpdateCallback, ToolExecutionMode } from "./pi-agent-core.js";
export type { AppKeybinding } from "./extension/keybindings.js";
export type { KeybindingsManager } from "./pi-tui.js";
export * from "./extension/api.js";
export * from "./sdk/cli-arguments.js";
export * from "./tui/components.js";
export type * from "./extension/renderers.js";
export * from "./tui/screens.js";
export * from "./ai/model-runtime.js";
export * from "./ai/providers.js";
export * from "./sdk/rpc-client.js";
export type * from "./sdk/rpc-names.js";
export * from "./sdk/agent-session.js";
export * from "./extension/settings.js";
export * from "./tui/theme.js";
export type * from "./extension/tool-types.js";
export * from "./extension/tools.js";
export * from "./extension/trust.js";

export const VERSION: string;
/** `.pi`: the folder of pi's files in a project, and in the home folder. */
export const CONFIG_DIR_NAME: string;
export function getAgentDir(): string;
/** `PI_PACKAGE_DIR`, or the folder of this program. */
export function getPackageDir(): string;
/** Paths in that folder; whether they exist depends on the installation of pi. */
export function getReadmePath(): string;
export function getDocsPath(): string;
export function getExamplesPath(): string;
export function createEventBus(): EventBusController;

/** Narrows an event to the calls of one tool; the arguments of built-in tools are typed. */
export function isToolCallEventType<K extends keyof BuiltInToolInputs>(
  toolName: K,
  event: ToolCallEvent,
): event is ToolCallEvent & { toolName: K; input: BuiltInToolInputs[K] };
export function isToolCallEventType<TName extends string, TInput extends Record<string, unknown>>(
  toolName: TName,
  event: ToolCallEvent,
): event is ToolCallEvent & { toolName: TName; input: TInput };

type IsResult<K extends string> = (event: ToolResultEvent) => event is ToolResultEvent & { toolName: K };
export const isBashToolResult: IsResult<"bash">;
/** For a tool that other programs may have. */
export const isPowerShellToolResult: IsResult<"powershell">;
export const isReadToolResult: IsResult<"read">;
export const isEditToolResult: IsResult<"edit">;
export const isWriteToolResult: IsResult<"write">;
export const isGrepToolResult: IsResult<"grep">;
export const isFindToolResult: IsResult<"find">;
export const isLsToolResult: IsResult<"ls">;

/** Runs `fn` while no tool and no other extension changes the file. */
export function withFileMutationQueue<T>(filePath: string, fn: () => Promise<T>): Promise<T>;

export const DEFAULT_MAX_BYTES: number;
export const DEFAULT_MAX_LINES: number;
export interface TruncationOptions {
  maxLines?: number;
  maxBytes?: number;
}
export interface TruncationResult {
  content: string;
  truncated: boolean;
  truncatedBy: "lines" | "bytes" | null;
  totalLines: number;
  totalBytes: number;
  outputLines: number;
  outputBytes: number;
  lastLinePartial: boolean;
  firstLineExceedsLimit: boolean;
  maxLines: number;
  maxBytes: number;
}
export function formatSize(bytes: number): string;
export function truncateHead(content: string, options?: TruncationOptions): TruncationResult;
export function truncateTail(content: string, options?: TruncationOptions): TruncationResult;
export function truncateLine(line: string, maxChars?: number): { text: string; wasTruncated: boolean };

export function convertToLlm(messages: AgentMessage[]): Message[];
export function serializeConversation(messages: Message[]): string;
export const CURRENT_SESSION_VERSION: number;
export function parseSessionEntries(content: string): (SessionHeader | SessionEntry)[];
/** The context at a leaf, by default the last entry. */
export function buildSessionContext(
  entries: SessionEntry[],
  leafId?: string | null,
  byId?: Map<string, SessionEntry>,
): SessionContext;
/** The entries that the model gets; the default leaf is the last entry. */
export function buildContextEntries(
  entries: SessionEntry[],
  leafId?: string | null,
  byId?: Map<string, SessionEntry>,
): SessionEntry[];
export interface SessionProjection extends SessionContext {
  entries: { sourceEntry: SessionEntry; messages: AgentMessage[] }[];
}
/** The messages that the model gets, each with its entry. */
export function buildSessionProjection(
  entries: SessionEntry[],
  leafId?: string | null,
  byId?: Map<string, SessionEntry>,
): SessionProjection;
/** The MIME type of an image file that models accept; `null` for any other file. */
export function detectSupportedImageMimeTypeFromFile(filePath: string): Promise<string | null>;
/** The messages that an entry adds to the conversation. */
export function sessionEntryToContextMessages(entry: SessionEntry): AgentMessage[];
/** Converts the entries of an older file, header first, to this version, in place. */
export function migrateSessionEntries(entries: (SessionHeader | SessionEntry)[]): void;
export function getLatestCompactionEntry(entries: SessionEntry[]): CompactionEntry | null;

export const DEFAULT_COMPACTION_SETTINGS: Required<CompactionSettings>;
export function estimateTokens(message: AgentMessage): number;
export function calculateContextTokens(usage: Usage): number;
/** The usage of the last response that was neither aborted nor failed. */
export function getLastAssistantUsage(entries: SessionEntry[]): Usage | undefined;
export function shouldCompact(contextTokens: number, contextWindow: number, settings: Required<CompactionSettings>): boolean;
/** Finds the cut point in `entries[startIndex...endIndex]`. */
export function findCutPoint(
  entries: SessionEntry[],
  startIndex: number,
  endIndex: number,
  keepRecentTokens: number,
): CutPointResult;
/** The index at which the turn of an entry begins; -1 if it is before `startIndex`. */
export function findTurnStartIndex(entries: SessionEntry[], entryIndex: number, startIndex: number): number;
/** Compacts as pi itself does, with the given model. */
/**
 * From newer versions. With `streamFn` the extension requests the summary itself; nothing is
 * repeated without `retry`.
 */
type SummaryArguments = [
  thinkingLevel?: ThinkingLevel,
  streamFn?: SummaryStream,
  env?: Record<string, string>,
  retry?: SummaryRetry,
  callbacks?: SummaryRetryCallbacks,
  sessionId?: string,
];
type SummaryStream = (
  model: Model,
  context: Context,
  options?: SimpleStreamOptions,
) => AssistantMessageEventStream | Promise<AssistantMessageEventStream>;
interface SummaryRetry {
  enabled: boolean;
  maxRetries: number;
  baseDelayMs: number;
  maxAgentDelayMs?: number;
}
interface SummaryRetryCallbacks {
  onRetryScheduled?(attempt: number, maxAttempts: number, delayMs: number, errorMessage: string): void | Promise<void>;
  onRetryAttemptStart?(): void | Promise<void>;
  onRetryFinished?(success: boolean, attempt: number, finalError?: string): void | Promise<void>;
}
export function compact(
  preparation: CompactionPreparation,
  model: Model,
  apiKey: string | undefined,
  headers?: Record<string, string>,
  customInstructions?: string,
  signal?: AbortSignal,
  ...newer: SummaryArguments
): Promise<CompactionResult>;
export function generateSummary(
  currentMessages: AgentMessage[],
  model: Model,
  reserveTokens: number,
  apiKey: string | undefined,
  headers?: Record<string, string>,
  signal?: AbortSignal,
  customInstructions?: string,
  previousSummary?: string,
  ...newer: SummaryArguments
): Promise<string>;
export function collectEntriesForBranchSummary(
  session: ReadonlySessionManager,
  oldLeafId: string | null,
  targetId: string,
): CollectEntriesResult;
/** The end of a branch, as much as fits into a budget (0: all of it). */
export function prepareBranchEntries(
  entries: SessionEntry[],
  tokenBudget?: number,
): BranchPreparation;
export type FileOperations = CompactionPreparation["fileOps"];
export interface CutPointResult {
  firstKeptEntryIndex: number;
  turnStartIndex: number;
  isSplitTurn: boolean;
}
export interface CollectEntriesResult {
  entries: SessionEntry[];
  commonAncestorId: string | null;
}
export interface BranchPreparation {
  messages: AgentMessage[];
  fileOps: FileOperations;
  totalTokens: number;
}
export interface GenerateBranchSummaryOptions {
  model: Model;
  apiKey?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  customInstructions?: string;
  replaceInstructions?: boolean;
  reserveTokens?: number;
  /** The members below are from newer versions. */
  env?: Record<string, string>;
  streamFn?: SummaryStream;
  retry?: SummaryRetry;
  callbacks?: SummaryRetryCallbacks;
}
export interface BranchSummaryResult {
  summary?: string;
  readFiles?: string[];
  modifiedFiles?: string[];
  aborted?: boolean;
  error?: string;
}
export function generateBranchSummary(
  entries: SessionEntry[],
  options: GenerateBranchSummaryOptions,
): Promise<BranchSummaryResult>;

export function parseFrontmatter<T extends Record<string, unknown> = Record<string, unknown>>(
  content: string,
): { frontmatter: T; body: string };
export function stripFrontmatter(content: string): string;
export function getLanguageFromPath(filePath: string): string | undefined;

export function keyText(keybinding: string): string;
export function keyHint(keybinding: string, description: string): string;
export function rawKeyHint(key: string, description: string): string;

export class DynamicBorder implements Component {
  constructor(color?: (text: string) => string);
  invalidate(): void;
  render(width: number): string[];
}
export class BorderedLoader extends Container {
  constructor(tui: TUI, theme: Theme, message: string, options?: { cancellable?: boolean });
  readonly signal: AbortSignal;
  set onAbort(handler: (() => void) | undefined);
  handleInput(data: string): void;
  dispose(): void;
}

// Without this line every declaration would be exported.
export {};
