// Events for `pi.on`, and the results that handlers may return.
import type { BoundaryResult, BoundaryState } from "./turn-end.js";
import type { BashOperations } from "./tools.js";
import type { ThinkingLevel } from "../pi-agent-core.js";
import type { BashResult, Skill } from "../sdk/agent-session.js";
import type { CompactionSettings } from "./settings.js";
import type { ProjectTrustEvent, ProjectTrustEventResult } from "./trust.js";
import type { AssistantMessageEvent, ImageContent, Model, SystemMessage, TextContent, ToolResultMessage, Usage } from "../pi-ai.js";
import type {
  AgentMessage,
  BranchSummaryEntry,
  CompactionEntry,
  CustomMessage,
  SessionEntry,
} from "../sdk/session.js";

export interface ResourcesDiscoverEvent {
  type: "resources_discover";
  cwd: string;
  reason: "startup" | "reload";
}
export interface ResourcesDiscoverResult {
  skillPaths?: string[];
  promptPaths?: string[];
  themePaths?: string[];
}

export interface SessionStartEvent {
  type: "session_start";
  reason: "startup" | "reload" | "new" | "resume" | "fork";
  previousSessionFile?: string;
}
export interface SessionShutdownEvent {
  type: "session_shutdown";
  reason: "quit" | "reload" | "new" | "resume" | "fork";
  /** The file of the new session. */
  targetSessionFile?: string;
}
export interface SessionBeforeSwitchEvent {
  type: "session_before_switch";
  reason: "new" | "resume";
  targetSessionFile?: string;
}
export interface SessionBeforeForkEvent {
  type: "session_before_fork";
  entryId: string;
  /** Whether the fork ends before a message of the user, or includes the entry. */
  position: "before" | "at";
}
export interface CancelResult {
  cancel?: boolean;
}
export type SessionBeforeSwitchResult = CancelResult;
export interface SessionBeforeForkResult extends CancelResult {
  /** Ignored, as in 0.67. */
  skipConversationRestore?: boolean;
}

export interface CompactionPreparation {
  firstKeptEntryId: string;
  messagesToSummarize: AgentMessage[];
  turnPrefixMessages: AgentMessage[];
  isSplitTurn: boolean;
  tokensBefore: number;
  previousSummary?: string;
  /** Paths as the model passed them to the tools. */
  fileOps: { read: Set<string>; written: Set<string>; edited: Set<string> };
  settings: Required<CompactionSettings>;
}
export interface SessionBeforeCompactEvent {
  type: "session_before_compact";
  preparation: CompactionPreparation;
  branchEntries: SessionEntry[];
  customInstructions?: string;
  reason: CompactionReason;
  /** Whether the request that was too long is repeated. */
  willRetry: boolean;
  signal: AbortSignal;
}
export type CompactionReason = "manual" | "threshold" | "overflow";
/** The compaction was not stored, or was cancelled. */
export interface SessionCompactFailedEvent {
  type: "session_compact_failed";
  reason: CompactionReason;
  errorMessage?: string;
  aborted: boolean;
  willRetry: boolean;
  /** Whether an extension supplied the summary. */
  fromExtension: boolean;
}
export interface SessionInfoChangedEvent {
  type: "session_info_changed";
  name?: string;
}
export interface CompactionResult<T = unknown> {
  summary: string;
  firstKeptEntryId: string;
  tokensBefore: number;
  /** An estimate; known once the summary is stored. */
  estimatedTokensAfter?: number;
  /** The usage of the summary; newer versions emit and store it. */
  usage?: Usage;
  details?: T;
}
export interface SessionBeforeCompactResult extends CancelResult {
  /** Members that are left out are taken from `preparation`. */
  compaction?: Pick<CompactionResult, "summary"> & Partial<CompactionResult>;
}
export interface SessionCompactEvent {
  type: "session_compact";
  compactionEntry: CompactionEntry;
  fromExtension: boolean;
  reason: "manual" | "threshold" | "overflow";
  /** Whether the request that was too long is repeated. */
  willRetry: boolean;
}

export interface TreePreparation {
  targetId: string;
  oldLeafId: string | null;
  commonAncestorId: string | null;
  entriesToSummarize: SessionEntry[];
  userWantsSummary: boolean;
  customInstructions?: string;
  replaceInstructions?: boolean;
  label?: string;
}
export interface SessionBeforeTreeEvent {
  type: "session_before_tree";
  preparation: TreePreparation;
  signal: AbortSignal;
}
export interface SessionBeforeTreeResult extends CancelResult {
  summary?: { summary: string; details?: unknown; usage?: Usage };
  customInstructions?: string;
  replaceInstructions?: boolean;
  label?: string;
}
export interface SessionTreeEvent {
  type: "session_tree";
  newLeafId: string | null;
  oldLeafId: string | null;
  summaryEntry?: BranchSummaryEntry;
  fromExtension?: boolean;
}

export interface ContextEvent {
  type: "context";
  /** May be changed in place. */
  messages: AgentMessage[];
}
export interface ContextEventResult {
  messages?: AgentMessage[];
}
export interface BeforeProviderRequestEvent {
  type: "before_provider_request";
  /** The request in the format of the provider's API. */
  payload: unknown;
}
/** The new payload. */
export type BeforeProviderRequestEventResult = unknown;
export interface AfterProviderResponseEvent {
  type: "after_provider_response";
  status: number;
  headers: Record<string, string>;
}

export interface BeforeAgentStartEvent {
  type: "before_agent_start";
  messageType: "user";
  prompt: string;
  images?: ImageContent[];
  systemPrompt: string;
  /** May be changed in place; ignored if a handler returns a `systemPrompt`. */
  systemPromptOptions: SystemPromptOptions;
}
/** The parts of the system prompt. */
export interface SystemPromptOptions {
  /** Replaces the beginning of the prompt. */
  customPrompt?: string;
  selectedTools: string[];
  toolSnippets: Record<string, string>;
  toolGuidelines: Record<string, string[]>;
  promptGuidelines: string[];
  appendSystemPrompt?: string;
  cwd: string;
  contextFiles: { path: string; content: string }[];
  skills: Skill[];
  /**
   * Additional sections, by the names of their tags (lower-case letters, digits, `_` and `-`); a
   * section of pi with the same name (`rules`, `skills`, …) is replaced.
   */
  sections: Record<string, string | null>;
  /** The whole prompt. */
  forceSystemPrompt?: string;
}
export type NormalizedBuildSystemPromptOptions = SystemPromptOptions;
/** Options with defaults for all members but `cwd`. */
export type BuildSystemPromptOptions = Partial<SystemPromptOptions> & Pick<SystemPromptOptions, "cwd">;
export interface BeforeAgentStartEventResult {
  message?: Pick<CustomMessage, "customType" | "content" | "display" | "details">;
  systemPrompt?: string;
}
/** The whole request: the first message has the role `system` and contains the prompt and the tools. */
export interface ContextWithSystemEvent {
  type: "context_with_system";
  messages: (AgentMessage | SystemMessage)[];
}
export interface ContextWithSystemEventResult {
  messages?: (AgentMessage | SystemMessage)[];
}
/** A part of a response in the provider's own format. */
export interface ProviderStreamEvent {
  type: "provider_stream_event";
  provider: string;
  api: string;
  model: string;
  /** Must not be changed. */
  data: unknown;
}
export interface AgentStartEvent {
  type: "agent_start";
}
export interface AgentEndEvent {
  type: "agent_end";
  messages: AgentMessage[];
}
export interface TurnStartEvent {
  type: "turn_start";
  turnIndex: number;
  timestamp: number;
}
export interface TurnEndEvent extends BoundaryState {
  type: "turn_end";
  turnIndex: number;
  message: AgentMessage;
  toolResults: ToolResultMessage[];
  messageEntryId: string;
  toolResultEntryIds: string[];
}
/** Emitted when no work is left, unless handlers propose some. */
export interface AgentBeforeSettleEvent extends BoundaryState {
  type: "agent_before_settle";
}
export type TurnEndEventResult = BoundaryResult;
export type AgentBeforeSettleEventResult = BoundaryResult;
export interface MessageStartEvent {
  type: "message_start";
  /** May be changed in place, except at the start of a response. */
  message: AgentMessage;
}
export interface MessageUpdateEvent {
  type: "message_update";
  message: AgentMessage;
  assistantMessageEvent: AssistantMessageEvent;
}
export interface MessageEndEvent {
  type: "message_end";
  /** May be changed in place. */
  message: AgentMessage;
}
/** Replaces the message that has ended by another one with the same role. */
export interface MessageEndEventResult {
  message?: AgentMessage;
}

interface ToolExecution {
  toolCallId: string;
  toolName: string;
}
export interface ToolExecutionStartEvent extends ToolExecution {
  type: "tool_execution_start";
  /** May be changed in place: the tool gets the changed arguments. */
  // deno-lint-ignore no-explicit-any
  args: any;
}
export interface ToolExecutionUpdateEvent extends ToolExecution {
  type: "tool_execution_update";
  // deno-lint-ignore no-explicit-any
  args: any;
  // deno-lint-ignore no-explicit-any
  partialResult: any;
}
export interface ToolExecutionEndEvent extends ToolExecution {
  type: "tool_execution_end";
  /** May be changed in place: the model gets the changed value. */
  // deno-lint-ignore no-explicit-any
  result: any;
  isError: boolean;
  /** The duration of the tool's run; absent if it did not run. */
  durationMs?: number;
}

export type ModelSelectSource = "set" | "cycle" | "restore";
export interface ModelSelectEvent {
  type: "model_select";
  model: Model;
  previousModel: Model | undefined;
  source: ModelSelectSource;
}

export interface ThinkingLevelSelectEvent {
  type: "thinking_level_select";
  level: ThinkingLevel;
  previousLevel: ThinkingLevel;
}
/** Emitted when no retry, compaction or queued message is left. */
export interface AgentSettledEvent {
  type: "agent_settled";
  aborted: boolean;
}
/** A dialog was opened, or closed. */
interface UIPrompt {
  reason: "ui_prompt";
  kind: UIPromptKind;
  title?: string;
}
export type UIPromptKind = "select" | "confirm" | "input" | "editor";
export interface UIPromptStartEvent extends UIPrompt {
  type: "ui_prompt_start";
}
export interface UIPromptEndEvent extends UIPrompt {
  type: "ui_prompt_end";
}
/** `headers` may be changed in place; `null` removes one. */
export interface BeforeProviderHeadersEvent {
  type: "before_provider_headers";
  headers: Record<string, string | null>;
}

/** Arguments of the built-in tools. */
export interface BuiltInToolInputs {
  bash: { command: string; timeout?: number };
  read: { path: string; offset?: number; limit?: number };
  edit: { path: string; edits: { oldText: string; newText: string }[] };
  write: { path: string; content: string };
  grep: {
    pattern: string;
    path?: string;
    glob?: string;
    ignoreCase?: boolean;
    literal?: boolean;
    context?: number;
    limit?: number;
  };
  find: { pattern: string; path?: string; limit?: number };
  ls: { path?: string; limit?: number };
}

/** `input` may be changed in place. `isToolCallEventType` narrows the type to a built-in tool. */
export interface ToolCallEvent extends ToolExecution {
  type: "tool_call";
  input: Record<string, unknown>;
}
export interface ToolCallEventResult {
  block?: boolean;
  /** The text for the model. */
  reason?: string;
  /** With `block`: the agent may stop; see `AgentToolResult`. */
  terminate?: boolean;
}
// deno-lint-ignore no-explicit-any
export interface ToolResultEvent<TDetails = any> extends ToolExecution {
  type: "tool_result";
  input: Record<string, unknown>;
  content: (TextContent | ImageContent)[];
  details: TDetails;
  isError: boolean;
  /** The usage of models that the tool has called. */
  usage?: Usage;
  /** The result for programs; models do not get it. */
  structuredContent?: unknown;
}
export interface ToolResultEventResult {
  /** Removes `structuredContent` unless a new one is returned, because the two may disagree. */
  content?: (TextContent | ImageContent)[];
  details?: unknown;
  isError?: boolean;
  usage?: Usage;
  structuredContent?: unknown;
}

export interface UserBashEvent {
  type: "user_bash";
  command: string;
  excludeFromContext: boolean;
  cwd: string;
}
export interface UserBashEventResult {
  operations?: BashOperations;
  result?: BashResult;
}

export type InputSource = "interactive" | "rpc" | "extension";
export interface InputEvent {
  type: "input";
  text: string;
  images?: ImageContent[];
  source: InputSource;
  /** How the prompt is queued while the agent runs. */
  streamingBehavior?: "steer" | "followUp";
}
export type InputEventResult =
  | { action: "continue" }
  | { action: "transform"; text: string; images?: ImageContent[] }
  | { action: "handled" };

/** By name: the event, and the result that a handler may return. */
export interface ExtensionEvents {
  project_trust: [ProjectTrustEvent, ProjectTrustEventResult];
  resources_discover: [ResourcesDiscoverEvent, ResourcesDiscoverResult];
  session_start: [SessionStartEvent, unknown];
  session_shutdown: [SessionShutdownEvent, unknown];
  session_before_switch: [SessionBeforeSwitchEvent, SessionBeforeSwitchResult];
  session_before_fork: [SessionBeforeForkEvent, SessionBeforeForkResult];
  session_before_compact: [SessionBeforeCompactEvent, SessionBeforeCompactResult];
  session_compact: [SessionCompactEvent, unknown];
  session_before_tree: [SessionBeforeTreeEvent, SessionBeforeTreeResult];
  session_tree: [SessionTreeEvent, unknown];
  context: [ContextEvent, ContextEventResult];
  before_provider_request: [BeforeProviderRequestEvent, unknown];
  after_provider_response: [AfterProviderResponseEvent, unknown];
  provider_stream_event: [ProviderStreamEvent, unknown];
  context_with_system: [ContextWithSystemEvent, ContextWithSystemEventResult];
  before_agent_start: [BeforeAgentStartEvent, BeforeAgentStartEventResult];
  agent_start: [AgentStartEvent, unknown];
  agent_end: [AgentEndEvent, unknown];
  turn_start: [TurnStartEvent, unknown];
  turn_end: [TurnEndEvent, TurnEndEventResult];
  agent_before_settle: [AgentBeforeSettleEvent, AgentBeforeSettleEventResult];
  message_start: [MessageStartEvent, unknown];
  message_update: [MessageUpdateEvent, unknown];
  message_end: [MessageEndEvent, MessageEndEventResult];
  tool_execution_start: [ToolExecutionStartEvent, unknown];
  tool_execution_update: [ToolExecutionUpdateEvent, unknown];
  tool_execution_end: [ToolExecutionEndEvent, unknown];
  model_select: [ModelSelectEvent, unknown];
  thinking_level_select: [ThinkingLevelSelectEvent, unknown];
  session_info_changed: [SessionInfoChangedEvent, unknown];
  session_compact_failed: [SessionCompactFailedEvent, unknown];
  agent_settled: [AgentSettledEvent, unknown];
  ui_prompt_start: [UIPromptStartEvent, unknown];
  ui_prompt_end: [UIPromptEndEvent, unknown];
  before_provider_headers: [BeforeProviderHeadersEvent, unknown];
  tool_call: [ToolCallEvent, ToolCallEventResult];
  tool_result: [ToolResultEvent, ToolResultEventResult];
  user_bash: [UserBashEvent, UserBashEventResult];
  input: [InputEvent, InputEventResult];
}
export type ExtensionEvent = ExtensionEvents[keyof ExtensionEvents][0];

// Without this line every declaration would be exported.
export {};
