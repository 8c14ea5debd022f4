// The entries of a session, and its manager.
import type { CustomAgentMessages } from "../ai/agent-loop.js";
import type { ImageContent, Message, TextContent, Usage } from "../pi-ai.js";

type Content = string | (TextContent | ImageContent)[];

/** A command that the user ran with `!`. */
export interface BashExecutionMessage {
  role: "bashExecution";
  command: string;
  output: string;
  exitCode: number | undefined;
  cancelled: boolean;
  truncated: boolean;
  fullOutputPath?: string;
  /** Whether the command was run with `!!`, so that the model does not get its output. */
  excludeFromContext?: boolean;
  timestamp: number;
}

/** A message of an extension. */
export interface CustomMessage<T = unknown> {
  role: "custom";
  customType: string;
  content: Content;
  display: boolean;
  details?: T;
  timestamp: number;
}

export interface BranchSummaryMessage {
  role: "branchSummary";
  summary: string;
  fromId: string;
  timestamp: number;
}

export interface CompactionSummaryMessage {
  role: "compactionSummary";
  summary: string;
  tokensBefore: number;
  timestamp: number;
}

export type AgentMessage =
  | Message
  | BashExecutionMessage
  | CustomMessage
  | BranchSummaryMessage
  | CompactionSummaryMessage
  | CustomAgentMessages[keyof CustomAgentMessages];

export interface SessionHeader {
  type: "session";
  version?: number;
  id: string;
  /** The time in ISO 8601. */
  timestamp: string;
  cwd: string;
  parentSession?: string;
}

export interface SessionEntryBase {
  type: string;
  id: string;
  parentId: string | null;
  timestamp: string;
}
export interface SessionMessageEntry extends SessionEntryBase {
  type: "message";
  message: AgentMessage;
}
export interface ThinkingLevelChangeEntry extends SessionEntryBase {
  type: "thinking_level_change";
  thinkingLevel: string;
}
export interface ModelChangeEntry extends SessionEntryBase {
  type: "model_change";
  provider: string;
  modelId: string;
}
export interface CompactionEntry<T = unknown> extends SessionEntryBase {
  type: "compaction";
  summary: string;
  firstKeptEntryId: string;
  tokensBefore: number;
  details?: T;
  /** The usage of the summary; newer versions store it. */
  usage?: Usage;
  fromHook?: boolean;
}
export interface BranchSummaryEntry<T = unknown> extends SessionEntryBase {
  type: "branch_summary";
  fromId: string;
  summary: string;
  details?: T;
  usage?: Usage;
  fromHook?: boolean;
}
/** Data of an extension that no model gets. */
export interface CustomEntry<T = unknown> extends SessionEntryBase {
  type: "custom";
  customType: string;
  data?: T;
}
/** A message of an extension that models get. */
export interface CustomMessageEntry<T = unknown> extends SessionEntryBase {
  type: "custom_message";
  customType: string;
  content: Content;
  details?: T;
  display: boolean;
}
export interface LabelEntry extends SessionEntryBase {
  type: "label";
  targetId: string;
  label: string | undefined;
}
export interface SessionInfoEntry extends SessionEntryBase {
  type: "session_info";
  name?: string;
}
/** Replaces the target for the model from here on; `null` removes it. */
export interface ContextEditEntry extends SessionEntryBase {
  type: "context_edit";
  targetId: string;
  replacement: { content: Content } | null;
}
export type SessionEntry =
  | SessionMessageEntry
  | ThinkingLevelChangeEntry
  | ModelChangeEntry
  | CompactionEntry
  | BranchSummaryEntry
  | CustomEntry
  | CustomMessageEntry
  | LabelEntry
  | SessionInfoEntry
  | ContextEditEntry;

/** A line of a session file. */
export type FileEntry = SessionHeader | SessionEntry;
export interface SessionTreeNode {
  entry: SessionEntry;
  children: SessionTreeNode[];
  label?: string;
  labelTimestamp?: string;
}

export interface SessionContext {
  messages: AgentMessage[];
  thinkingLevel: string;
  model: { provider: string; modelId: string } | null;
}

/** `ctx.sessionManager`. */
export interface ReadonlySessionManager {
  getCwd(): string;
  getSessionDir(): string;
  getSessionId(): string;
  getSessionFile(): string | undefined;
  isPersisted(): boolean;
  getLeafId(): string | null;
  getLeafEntry(): SessionEntry | undefined;
  getEntry(id: string): SessionEntry | undefined;
  getChildren(parentId: string | null): SessionEntry[];
  getLabel(id: string): string | undefined;
  /** The entries from the first one to the leaf, or to `fromId`. */
  getBranch(fromId?: string): SessionEntry[];
  getHeader(): SessionHeader | null;
  getEntries(): SessionEntry[];
  getTree(): SessionTreeNode[];
  getSessionName(): string | undefined;
  buildSessionContext(): SessionContext;
  /** The latest compaction of the branch, the entries that it kept, and those after it. */
  buildContextEntries(): SessionEntry[];
}

export interface NewSessionOptions {
  id?: string;
  /** The file of the session that this one continues. */
  parentSession?: string;
}

/** A session in a list. */
export interface SessionInfo {
  path: string;
  id: string;
  cwd: string;
  name?: string;
  parentSessionPath?: string;
  created: Date;
  /** The time of the last message of the user or the model. */
  modified: Date;
  messageCount: number;
  firstMessage: string;
  allMessagesText: string;
}

type Progress = (loaded: number, total: number) => void;

/**
 * A session besides the current one. Its file is locked only while it is written; writing to a
 * session that a pi has open is an error.
 */
export class SessionManager implements ReadonlySessionManager {
  private constructor();
  static create(cwd: string, sessionDir?: string, options?: NewSessionOptions): SessionManager;
  static open(path: string, sessionDir?: string, cwdOverride?: string): SessionManager;
  static continueRecent(cwd: string, sessionDir?: string): SessionManager;
  static inMemory(cwd?: string, options?: NewSessionOptions): SessionManager;
  /** The original becomes the parent of the copy, whatever `options` contain. */
  static forkFrom(
    sourcePath: string,
    targetCwd: string,
    sessionDir?: string,
    options?: NewSessionOptions,
  ): SessionManager;
  static list(cwd: string, sessionDir?: string, onProgress?: Progress): Promise<SessionInfo[]>;
  static listAll(onProgress?: Progress): Promise<SessionInfo[]>;
  /** Sessions of one folder, whatever folder they work in. */
  static listAll(sessionDir?: string, onProgress?: Progress): Promise<SessionInfo[]>;

  getCwd(): string;
  getSessionDir(): string;
  getSessionId(): string;
  getSessionFile(): string | undefined;
  isPersisted(): boolean;
  getLeafId(): string | null;
  getLeafEntry(): SessionEntry | undefined;
  getEntry(id: string): SessionEntry | undefined;
  getChildren(parentId: string | null): SessionEntry[];
  getLabel(id: string): string | undefined;
  getBranch(fromId?: string): SessionEntry[];
  getHeader(): SessionHeader | null;
  getEntries(): SessionEntry[];
  getTree(): SessionTreeNode[];
  getSessionName(): string | undefined;
  buildSessionContext(): SessionContext;
  /** The latest compaction of the branch, the entries that it kept, and those after it. */
  buildContextEntries(): SessionEntry[];

  /** The methods below return the id of the new entry, which becomes a child of the leaf. */
  appendMessage(message: Message | CustomMessage | BashExecutionMessage): string;
  appendThinkingLevelChange(thinkingLevel: string): string;
  appendModelChange(provider: string, modelId: string): string;
  appendCompaction<T = unknown>(
    summary: string,
    firstKeptEntryId: string,
    tokensBefore: number,
    details?: T,
    fromHook?: boolean,
  ): string;
  appendCustomEntry(customType: string, data?: unknown): string;
  appendCustomMessageEntry<T = unknown>(
    customType: string,
    content: Content,
    display: boolean,
    details?: T,
  ): string;
  appendSessionInfo(name: string): string;
  appendLabelChange(targetId: string, label: string | undefined): string;
  appendContextEdit(targetId: string, replacement: ContextEditEntry["replacement"]): string;

  /** Moves the leaf. */
  branch(branchFromId: string): void;
  resetLeaf(): void;
  branchWithSummary(
    branchFromId: string | null,
    summary: string,
    details?: unknown,
    fromHook?: boolean,
  ): string;
  /** The methods below replace the session in this manager, and return its file. */
  createBranchedSession(leafId: string): string | undefined;
  newSession(options?: NewSessionOptions): string | undefined;
  setSessionFile(sessionFile: string): void;
}

// Without this line every declaration would be exported.
export {};
