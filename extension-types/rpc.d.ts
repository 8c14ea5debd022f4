// The protocol of `pi --mode rpc`. Made of docs/rpc.schema.json by rpc.mjs; do not edit.

/**
 * A line of `pi --mode rpc`: docs/rpc.md.
 */
export type RpcLine = RpcCommand | RpcResponse | RpcEvent;
/**
 * A line that a client writes.
 */
export type RpcCommand = {
  /**
   * Returned in the response. Usually a string.
   */
  id?: unknown;
} & RpcCommand1;
export type RpcCommand1 =
  | {
      type: "prompt";
      message: string;
      images?: Picture[] | null;
      /**
       * Images and documents as clients before 0.20 send them.
       */
      attachments?: Attachment[] | null;
      /**
       * Required while the agent works.
       */
      streamingBehavior?: StreamingBehavior | null;
    }
  | {
      type: "steer";
      message: string;
      images?: Picture[] | null;
      attachments?: Attachment[] | null;
    }
  | {
      type: "follow_up";
      message: string;
      images?: Picture[] | null;
      attachments?: Attachment[] | null;
    }
  | {
      type: "abort";
    }
  | {
      type: "clear_queue";
    }
  | {
      type: "new_session";
      parentSession?: string | null;
    }
  | {
      type: "get_state";
    }
  | {
      type: "get_messages";
    }
  | {
      type: "set_model";
      provider: string;
      modelId: string;
    }
  | {
      type: "cycle_model";
    }
  | {
      type: "get_available_models";
    }
  | {
      type: "set_thinking_level";
      level: string;
    }
  | {
      type: "cycle_thinking_level";
    }
  | {
      type: "get_available_thinking_levels";
    }
  | {
      type: "set_steering_mode";
      mode: QueueMode;
    }
  | {
      type: "set_follow_up_mode";
      mode: QueueMode;
    }
  | {
      type: "compact";
      customInstructions?: string | null;
    }
  | {
      type: "set_auto_compaction";
      enabled: boolean;
    }
  | {
      type: "set_auto_retry";
      enabled: boolean;
    }
  | {
      type: "abort_retry";
    }
  | {
      type: "bash";
      command: string;
      excludeFromContext?: boolean | null;
    }
  | {
      type: "abort_bash";
    }
  | {
      type: "get_session_stats";
    }
  | {
      type: "export_html";
      outputPath?: string | null;
    }
  | {
      type: "switch_session";
      sessionPath: string;
    }
  | {
      type: "fork";
      entryId: string;
    }
  | {
      type: "branch";
      entryIndex?: number | null;
      entryId?: string | null;
    }
  | {
      type: "clone";
    }
  | {
      type: "get_fork_messages";
    }
  | {
      type: "get_branch_messages";
    }
  | {
      type: "get_entries";
      /**
       * Id of an entry; only entries after it are returned.
       */
      since?: string | null;
    }
  | {
      type: "get_tree";
    }
  | {
      type: "get_last_assistant_text";
    }
  | {
      type: "set_session_name";
      name: string;
    }
  | {
      type: "get_commands";
    }
  | ({
      type: "hello";
    } & Hello)
  | {
      type: "ping";
    }
  | {
      type: "get_events";
      /**
       * The `seq` of the last event that the client has seen.
       */
      since: number;
    }
  | {
      type: "get_extension_stats";
      /**
       * Measure the heap of each extension, too. No JavaScript runs meanwhile.
       */
      measureHeap?: boolean;
    }
  | {
      type: "wait_for_idle";
    }
  | {
      type: "reload";
      /**
       * Name of a quarantined extension that is loaded again.
       */
      extension?: string | null;
    }
  | {
      type: "trust";
    }
  | {
      type: "permission_response";
      id: string;
      option: PermissionOption;
      /**
       * The reason of the answer, which the model gets.
       */
      reason?: string | null;
    }
  | {
      type: "extension_ui_response";
      id: string;
      value?: string | null;
      confirmed?: boolean | null;
      cancelled?: boolean | null;
    }
  | {
      type: "queue_message";
      message: string;
      images?: Picture[] | null;
      attachments?: Attachment[] | null;
    }
  | {
      type: "reset";
      parentSession?: string | null;
    }
  | {
      type: "set_queue_mode";
      mode: QueueMode;
    };
/**
 * An image as `{"type":"image","data","mimeType"}`, or as Anthropic's API takes it, with a
 * `source` of type `base64`.
 */
export type Picture = Plain | Sourced;
export type StreamingBehavior = "steer" | "followUp";
/**
 * How many queued messages are delivered at a time.
 */
export type QueueMode = "all" | "one-at-a-time";
/**
 * An answer to a [`PermissionRequest`].
 */
export type PermissionOption = ("allow_once" | "deny") | "allow_session" | "allow_always";
/**
 * The answer to a command.
 */
export type RpcResponse = RpcDataResponse | RpcDoneResponse | RpcErrorResponse;
/**
 * The `data` by command. Commands that are not listed have no `data`.
 */
export type RpcDataResponse = {
  id?: unknown;
  type: "response";
  success: true;
} & RpcDataResponse1;
export type RpcDataResponse1 =
  | {
      command: "prompt";
      data: Disposed;
    }
  | {
      command: "steer";
      data: Disposed;
    }
  | {
      command: "follow_up";
      data: Disposed;
    }
  | {
      command: "clear_queue";
      data: Queues;
    }
  | {
      command: "new_session";
      data: Cancelled;
    }
  | {
      command: "switch_session";
      data: Cancelled;
    }
  | {
      command: "clone";
      data: Cancelled;
    }
  | {
      command: "fork";
      data: ForkedText;
    }
  | {
      command: "branch";
      data: ForkedText;
    }
  | {
      command: "get_state";
      data: SessionState;
    }
  | {
      command: "get_messages";
      data: Messages;
    }
  | {
      command: "set_model";
      data: Model;
    }
  | {
      command: "cycle_model";
      data: CycledModel | null;
    }
  | {
      command: "get_available_models";
      data: Models;
    }
  | {
      command: "cycle_thinking_level";
      data: Level | null;
    }
  | {
      command: "get_available_thinking_levels";
      data: Levels;
    }
  | {
      command: "compact";
      data: Compacted;
    }
  | {
      command: "bash";
      data: UserCommandResult;
    }
  | {
      command: "get_session_stats";
      data: SessionStats;
    }
  | {
      command: "export_html";
      data: Path;
    }
  | {
      command: "get_fork_messages";
      data: ForkMessages;
    }
  | {
      command: "get_branch_messages";
      data: BranchMessages;
    }
  | {
      command: "get_entries";
      data: Entries;
    }
  | {
      command: "get_tree";
      data: Tree;
    }
  | {
      command: "get_last_assistant_text";
      data: Text;
    }
  | {
      command: "get_commands";
      data: Commands;
    }
  | {
      command: "hello";
      data: Greeting;
    }
  | {
      command: "ping";
      data: Pong;
    }
  | {
      command: "get_events";
      data: Events;
    }
  | {
      command: "get_extension_stats";
      data: Statistics;
    }
  | {
      command: "reload";
      data: Reloaded;
    }
  | {
      command: "trust";
      data: Trust;
    }
  | {
      command: "queue_message";
      data: Disposed;
    }
  | {
      command: "reset";
      data: Cancelled;
    };
/**
 * The result of an accepted prompt.
 */
export type Disposition = "started" | "queued" | "handled";
export type Modality = "text" | "image";
/**
 * The effort of a model's thinking.
 */
export type ThinkingLevel = ("off" | "minimal" | "low" | "medium" | "high" | "xhigh") | "max";
export type AgentMessage =
  | ({
      role: "user";
    } & UserMessage)
  | ({
      role: "assistant";
    } & AssistantMessage)
  | ({
      role: "toolResult";
    } & ToolResultMessage)
  | ({
      role: "bashExecution";
    } & BashExecutionMessage)
  | ({
      role: "custom";
    } & CustomMessage)
  | ({
      role: "branchSummary";
    } & BranchSummaryMessage)
  | ({
      role: "compactionSummary";
    } & CompactionSummaryMessage);
export type UserContent = string | ContentBlock[];
/**
 * One part of a message of a user or a tool: text or an image.
 */
export type ContentBlock =
  | ({
      type: "text";
    } & TextContent)
  | ({
      type: "image";
    } & ImageContent);
export type AssistantBlock =
  | ({
      type: "text";
    } & TextContent)
  | ({
      type: "thinking";
    } & ThinkingContent)
  | ({
      type: "toolCall";
    } & ToolCall);
export type StopReason = "stop" | "length" | "toolUse" | "error" | "aborted";
export type CommandSource = "extension" | "prompt" | "skill";
export type SourceScope = ("user" | "project") | "temporary";
export type Origin = "package" | "top-level";
/**
 * A line that pi writes without a command.
 */
export type RpcEvent = RpcEvent1 & {
  /**
   * Counts from 1. Only for clients that asked for the capability `seq`.
   */
  seq?: number;
};
export type RpcEvent1 = Event | OlderEvent;
export type Event =
  | {
      type: "agent_start";
    }
  | {
      type: "agent_end";
      messages: AgentMessage[];
      /**
       * Whether the last request failed and will be retried. Not set for handlers of
       * extensions, which are called before that is decided.
       */
      willRetry?: boolean;
    }
  | {
      type: "turn_start";
    }
  | {
      type: "turn_end";
      message: AgentMessage;
      toolResults: AgentMessage[];
    }
  | {
      type: "message_start";
      message: AgentMessage;
    }
  | ({
      type: "message_update";
    } & WrittenUpdate)
  | {
      type: "message_end";
      message: AgentMessage;
    }
  | {
      type: "tool_execution_start";
      toolCallId: string;
      toolName: string;
      args: unknown;
    }
  | {
      type: "tool_execution_update";
      toolCallId: string;
      toolName: string;
      args: unknown;
      partialResult: ToolOutput;
    }
  | {
      type: "tool_execution_end";
      toolCallId: string;
      toolName: string;
      result: ToolOutput;
      isError: boolean;
      /**
       * Milliseconds that the tool ran; absent if it did not run.
       */
      durationMs?: number;
    }
  | {
      type: "queue_update";
      steering: string[];
      followUp: string[];
    }
  | {
      type: "session_info_changed";
      name?: string;
    }
  | {
      type: "thinking_level_changed";
      level: ThinkingLevel;
    }
  | {
      type: "entry_appended";
      entry: Entry;
    }
  | {
      type: "bash_execution_update";
      /**
       * The `id` of the `bash` command.
       */
      id?: unknown;
      delta: string;
    }
  | {
      type: "agent_settled";
      aborted: boolean;
    }
  | {
      type: "auto_retry_start";
      attempt: number;
      maxAttempts: number;
      delayMs: number;
      errorMessage: string;
    }
  | {
      type: "auto_retry_end";
      success: boolean;
      attempt: number;
      finalError?: string;
    }
  | {
      type: "compaction_start";
      reason: CompactionReason;
    }
  | {
      type: "compaction_end";
      reason: CompactionReason;
      result?: Compacted;
      aborted: boolean;
      /**
       * Whether the request that exceeded the context is made again.
       */
      willRetry: boolean;
      errorMessage?: string;
    }
  | {
      type: "summarization_retry_scheduled";
      attempt: number;
      maxAttempts: number;
      delayMs: number;
      errorMessage: string;
    }
  | ({
      type: "summarization_retry_attempt_start";
    } & SummarySource)
  | {
      type: "summarization_retry_finished";
    }
  | ({
      type: "extension_error";
    } & ExtensionError)
  | ({
      type: "extension_warning";
    } & ExtensionWarning)
  | ({
      type: "extension_wait_start";
    } & ExtensionWait)
  | ({
      type: "extension_wait_end";
    } & WaitEnd)
  | ({
      type: "extension_ui_request";
    } & UiRequest)
  | ({
      type: "extension_ui_end";
    } & UiEnd)
  | ({
      type: "project_trust_request";
    } & ProjectTrustRequest)
  | ({
      type: "permission_request";
    } & PermissionRequest)
  | {
      type: "permission_request_end";
      /**
       * The `id` of the request.
       */
      id: string;
    };
/**
 * One step of an answer. Serialised as `assistantMessageEvent` of `message_update`, with
 * `partial` added there.
 */
export type WrittenStep = {
  /**
   * The answer so far; absent for clients with the capability `deltaUpdates`.
   */
  partial?: AnswerSoFar;
  /**
   * Set for the call of a `toolcall_start`.
   */
  id?: string;
  /**
   * Set for the call of a `toolcall_start`.
   */
  toolName?: string;
} & WrittenStep1;
export type WrittenStep1 =
  | {
      type: "start";
    }
  | {
      type: "text_start";
      contentIndex: number;
    }
  | {
      type: "text_delta";
      contentIndex: number;
      delta: string;
    }
  | {
      type: "text_end";
      contentIndex: number;
      content: string;
    }
  | {
      type: "thinking_start";
      contentIndex: number;
    }
  | {
      type: "thinking_delta";
      contentIndex: number;
      delta: string;
    }
  | {
      type: "thinking_end";
      contentIndex: number;
      content: string;
    }
  | {
      type: "toolcall_start";
      contentIndex: number;
    }
  | {
      type: "toolcall_delta";
      contentIndex: number;
      delta: string;
    }
  | {
      type: "toolcall_end";
      contentIndex: number;
      toolCall: AssistantBlock;
    };
/**
 * The reason of a compaction.
 */
export type CompactionReason = "manual" | "threshold" | "overflow";
/**
 * The kind of summary.
 */
export type SummarySource =
  | {
      source: "compaction";
      reason: CompactionReason;
    }
  | {
      source: "branchSummary";
    };
export type WaitOutcome = "settled" | "abandoned" | "cancelled" | "stopped";
/**
 * A dialog or a message of an extension for the user.
 */
export type UiRequest = {
  id: string;
} & UiRequest1;
export type UiRequest1 =
  | {
      method: "select";
      title: string;
      options: string[];
      /**
       * Timeout in milliseconds.
       */
      timeout?: number;
    }
  | {
      method: "confirm";
      title: string;
      message: string;
      timeout?: number;
    }
  | {
      method: "input";
      title: string;
      placeholder?: string;
      timeout?: number;
    }
  | {
      method: "editor";
      title: string;
      prefill?: string;
    }
  | {
      method: "notify";
      message: string;
      notifyType?: string;
    }
  | {
      method: "setStatus";
      statusKey: string;
      statusText?: string;
    }
  | {
      method: "setWidget";
      widgetKey: string;
      widgetLines?: string[];
      widgetPlacement?: string;
    }
  | {
      method: "setTitle";
      title: string;
    }
  | {
      method: "set_editor_text";
      text: string;
    };
/**
 * Why the user is asked.
 */
export type TrustReason = "unanswered" | "changed";
/**
 * The purpose of a file.
 */
export type FileRole =
  ("extension" | "systemPrompt" | "settings" | "mcp" | "skill" | "prompt") | "package" | "import" | "link";
export type Change = "added" | "changed" | "removed";
/**
 * Events of automatic compactions by their names before 0.60.
 */
export type OlderEvent =
  | {
      type: "auto_compaction_start";
      reason: CompactionReason;
    }
  | {
      type: "auto_compaction_end";
      /**
       * `null` if nothing was compacted.
       */
      result: Compacted | null;
      aborted: boolean;
      willRetry: boolean;
      errorMessage?: string;
    };
/**
 * The `errorCode` of a response. Codes are added, never renamed.
 */
export type ErrorCode =
  | "parse_error"
  | "line_too_long"
  | "unknown_command"
  | "invalid_command"
  | "busy"
  | "aborted"
  | "not_queueable"
  | "no_model"
  | "model_not_found"
  | "auth"
  | "unsupported_api"
  | "nothing_to_do"
  | "summary_failed"
  | "invalid_entry"
  | "invalid_name"
  | "session_unavailable"
  | "session_locked"
  | "events_gone"
  | "failed";

export interface Plain {
  type?: "image" | null;
  /**
   * Base64.
   */
  data: string;
  mimeType: string;
}
export interface Sourced {
  type?: "image" | null;
  source: ImageSource;
}
export interface ImageSource {
  /**
   * Only `base64`.
   */
  type?: string | null;
  mediaType?: string | null;
  data?: string | null;
}
/**
 * An image or a document in the form that clients of 0.16 to 0.19 send.
 */
export interface Attachment {
  /**
   * `image` or `document`.
   */
  type: string;
  fileName?: string | null;
  mimeType?: string | null;
  /**
   * Base64.
   */
  content?: string | null;
  /**
   * Text of a document.
   */
  extractedText?: string | null;
}
/**
 * Every member is optional. Without any, the session is as it is without `hello`.
 */
export interface Hello {
  /**
   * The newest protocol version that the client speaks.
   */
  protocolVersion?: number | null;
  /**
   * Name of the client, for the log.
   */
  client?: string | null;
  /**
   * Capabilities that the client asks for, of those that the response lists as
   * `capabilities`. Unknown names are missing in the response's `enabled`.
   */
  capabilities?: string[] | null;
  /**
   * The methods of `ctx.ui` that the client supports. If this is missing, extensions are
   * not told which methods are unsupported.
   */
  ui?: string[] | null;
}
export interface Disposed {
  disposition: Disposition;
}
export interface Queues {
  steering: string[];
  followUp: string[];
}
export interface Cancelled {
  /**
   * An extension objected.
   */
  cancelled: boolean;
}
export interface ForkedText {
  text?: string;
  cancelled: boolean;
}
export interface SessionState {
  model?: Model;
  /**
   * Why no model is set, and how to set one. Only present without `model`.
   */
  modelError?: string;
  thinkingLevel: ThinkingLevel;
  isStreaming: boolean;
  isCompacting: boolean;
  steeringMode: QueueMode;
  followUpMode: QueueMode;
  sessionFile?: string;
  sessionId: string;
  sessionName?: string;
  autoCompactionEnabled: boolean;
  messageCount: number;
  pendingMessageCount: number;
  /**
   * Name of `steeringMode` before 0.20.
   */
  queueMode: QueueMode;
  /**
   * Name of `pendingMessageCount` before 0.20.
   */
  queuedMessageCount: number;
  /**
   * The original's version that clients compare, and this program's: `0.87.1+rs.0.1.0`.
   */
  version: string;
}
export interface Model {
  id: string;
  name: string;
  /**
   * Name of the model's wire API; see [`super::apis`].
   */
  api: string;
  provider: string;
  baseUrl: string;
  /**
   * True if the model can think before it answers.
   */
  reasoning: boolean;
  input: Modality[];
  cost: ModelCost;
  /**
   * Context window in tokens.
   */
  contextWindow: number;
  /**
   * Maximum number of tokens in one answer.
   */
  maxTokens: number;
  headers?: {
    [k: string]: string;
  };
  /**
   * The API's names of thinking levels, and the levels that the model does not have.
   */
  thinkingLevelMap?: {
    [k: string]: string | null;
  };
  /**
   * Members for every request to an OpenAI-compatible API, such as `top_p`. Newer versions of
   * the original have them.
   */
  samplingParams?: {
    [k: string]: unknown;
  };
  /**
   * Members for requests with one thinking level; they override those of `sampling_params`.
   */
  samplingParamsByThinkingLevel?: {
    [k: string]: {
      [k: string]: unknown;
    };
  };
  /**
   * Deviations of an OpenAI-compatible server; read by `openai_completions`.
   */
  compat?: unknown;
}
/**
 * Prices in US dollars per million tokens.
 */
export interface ModelCost {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  /**
   * Prices of long requests.
   */
  tiers?: CostTier[];
}
/**
 * Prices of requests with more input tokens than a limit; cached tokens count as input.
 */
export interface CostTier {
  inputTokensAbove: number;
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
}
export interface Messages {
  messages: AgentMessage[];
}
export interface UserMessage {
  content: UserContent;
  /**
   * Milliseconds since the Unix epoch, like all timestamps in these types.
   */
  timestamp: number;
}
export interface TextContent {
  text: string;
  /**
   * Opaque data that the provider wants back.
   */
  textSignature?: string;
}
export interface ImageContent {
  /**
   * Image data in base64.
   */
  data: string;
  /**
   * `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
   */
  mimeType: string;
}
export interface AssistantMessage {
  content: AssistantBlock[];
  /**
   * Name of the wire API that produced the answer (`anthropic-messages`, …).
   */
  api: string;
  provider: string;
  /**
   * The model's id.
   */
  model: string;
  responseId?: string;
  usage: Usage;
  stopReason: StopReason;
  errorMessage?: string;
  timestamp: number;
}
export interface ThinkingContent {
  thinking: string;
  thinkingSignature?: string;
  /**
   * True if the provider hid the text; the signature holds it encrypted.
   */
  redacted?: boolean;
}
export interface ToolCall {
  id: string;
  name: string;
  /**
   * An object. While the call is streamed, it has the members that have arrived.
   */
  arguments: unknown;
  /**
   * The reason why `arguments` is empty: the text of the model was no JSON object, or was cut
   * off. The reason quotes that text. The call is kept and does not run.
   */
  argumentsError?: string;
  thoughtSignature?: string;
  /**
   * The text of the arguments so far; only while the call is streamed.
   */
  partialJson?: string;
}
/**
 * Token counts as the provider reports them, and their cost.
 */
export interface Usage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  totalTokens: number;
  cost: Cost;
}
/**
 * Cost in US dollars.
 */
export interface Cost {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  total: number;
}
export interface ToolResultMessage {
  toolCallId: string;
  toolName: string;
  content: ContentBlock[];
  /**
   * Data for the user interface and for extensions; models do not get it.
   */
  details?: unknown;
  /**
   * The [`Usage`] of models that the tool called, in the tool's own form.
   */
  usage?: unknown;
  isError: boolean;
  timestamp: number;
}
/**
 * A shell command that the user ran.
 */
export interface BashExecutionMessage {
  command: string;
  output: string;
  exitCode?: number;
  cancelled: boolean;
  truncated: boolean;
  fullOutputPath?: string;
  timestamp: number;
  excludeFromContext?: boolean;
}
/**
 * A message that an extension added to the conversation.
 */
export interface CustomMessage {
  customType?: string;
  content: UserContent;
  /**
   * Whether the message is shown to the user.
   */
  display: boolean;
  details?: unknown;
  timestamp: number;
}
export interface BranchSummaryMessage {
  summary: string;
  fromId: string;
  timestamp: number;
}
export interface CompactionSummaryMessage {
  summary: string;
  tokensBefore: number;
  timestamp: number;
}
/**
 * The model and the thinking level after `cycle_model`.
 */
export interface CycledModel {
  model: Model;
  thinkingLevel: ThinkingLevel;
  /**
   * Whether only the models of `--models` were cycled through.
   */
  isScoped: boolean;
}
export interface Models {
  models: Model[];
}
export interface Level {
  level: ThinkingLevel;
}
export interface Levels {
  levels: ThinkingLevel[];
}
/**
 * The result of a compaction: also the response to `compact`, and what an extension may return
 * instead.
 */
export interface Compacted {
  summary: string;
  firstKeptEntryId: string;
  tokensBefore: number;
  /**
   * Estimated tokens of the new context; known once the summary is stored.
   */
  estimatedTokensAfter?: number;
  details?: unknown;
}
/**
 * The data of RPC's response to `bash`, and of the stored message.
 */
export interface UserCommandResult {
  output: string;
  /**
   * `None` if the command was cancelled.
   */
  exitCode?: number;
  cancelled: boolean;
  truncated: boolean;
  /**
   * File with the whole output, if it was long.
   */
  fullOutputPath?: string;
}
export interface SessionStats {
  sessionFile?: string;
  sessionId: string;
  userMessages: number;
  assistantMessages: number;
  toolCalls: number;
  toolResults: number;
  totalMessages: number;
  tokens: TokenTotals;
  /**
   * US dollars.
   */
  cost: number;
  contextUsage?: ContextUsage;
}
export interface TokenTotals {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  total: number;
}
/**
 * Usage of the model's context window.
 */
export interface ContextUsage {
  /**
   * `None` right after a compaction, until the model answered again.
   */
  tokens: number | null;
  contextWindow: number;
  percent: number | null;
}
export interface Path {
  path: string;
}
export interface ForkMessages {
  messages: ForkMessage[];
}
export interface ForkMessage {
  entryId: string;
  text: string;
}
export interface BranchMessages {
  messages: BranchMessage[];
}
export interface BranchMessage {
  entryIndex: number;
  entryId: string;
  text: string;
}
/**
 * Entries as they are in the file.
 */
export interface Entries {
  entries: Entry[];
  /**
   * `null` if there is no value.
   */
  leafId: string | null;
}
/**
 * A line of the session file (docs/sessions.md); the other members depend on `type`.
 */
export interface Entry {
  type: string;
  id: string;
  /**
   * `null` if there is no value.
   */
  parentId: string | null;
  timestamp: string;
  [k: string]: unknown;
}
export interface Tree {
  tree: TreeNode[];
  /**
   * `null` if there is no value.
   */
  leafId: string | null;
}
export interface TreeNode {
  entry: Entry;
  children: TreeNode[];
  label?: string;
  labelTimestamp?: string;
}
export interface Text {
  text?: string;
}
export interface Commands {
  commands: Command[];
}
/**
 * A slash command of an extension, a template or a skill.
 */
export interface Command {
  name: string;
  description?: string;
  source: CommandSource;
  sourceInfo: SourceInfo;
  /**
   * `sourceInfo.path`, as before 0.60.
   */
  path: string;
  /**
   * `user`, `project` or `path`, as before 0.60.
   */
  location: string;
}
export interface SourceInfo {
  path: string;
  /**
   * `auto`, `local`, `cli`, `builtin`, `sdk`, `inline`, `extension:<name>` or the source of
   * a package as in the settings.
   */
  source: string;
  scope: SourceScope;
  origin: Origin;
  baseDir?: string;
}
/**
 * Identifies this program and lists its capabilities.
 */
export interface Greeting {
  protocolVersion: number;
  server: Server;
  /**
   * Capabilities that a client may ask for.
   */
  capabilities: string[];
  /**
   * The known ones of the capabilities that the client asked for.
   */
  enabled: string[];
  /**
   * The methods of `ctx.ui` that pi can send to a client.
   *
   * @minItems 9
   * @maxItems 9
   */
  ui: [string, string, string, string, string, string, string, string, string];
  commands: string[];
  /**
   * Number of the last event before this response.
   */
  seq: number;
}
export interface Server {
  name: string;
  version: string;
  /**
   * The version of the original whose clients work unchanged.
   */
  compatibleWith: string;
}
export interface Pong {
  /**
   * Number of the last event before this response.
   */
  seq: number;
}
/**
 * Events as they were written, except that `message_update` lacks the message so far.
 */
export interface Events {
  events: RpcEvent[];
  /**
   * Number of the last event.
   */
  latest: number;
}
/**
 * A `message_update` in the forms that it has on the wire.
 */
export interface WrittenUpdate {
  /**
   * The answer so far; absent for clients with the capability `deltaUpdates`.
   */
  message?: AnswerSoFar;
  /**
   * Tokens used so far.
   */
  usage?: Usage;
  assistantMessageEvent: WrittenStep;
}
export interface AnswerSoFar {
  role: "assistant";
  content: AssistantBlock[];
  /**
   * Name of the wire API that produced the answer (`anthropic-messages`, …).
   */
  api: string;
  provider: string;
  /**
   * The model's id.
   */
  model: string;
  responseId?: string;
  usage: Usage;
  stopReason: StopReason;
  errorMessage?: string;
  timestamp: number;
}
/**
 * The result of a tool call: content for the model, details for the user.
 */
export interface ToolOutput {
  content: ContentBlock[];
  details?: unknown;
  /**
   * Asks the agent to stop here, which it does if all results of an answer's calls ask for it.
   */
  terminate?: boolean;
  [k: string]: unknown;
}
/**
 * An error of an extension; the agent continues.
 */
export interface ExtensionError {
  /**
   * Path of the file of the extension or the skill, `command:<name>` or `<runtime>`.
   */
  extensionPath: string;
  /**
   * The event that was being handled, or `command`, `load`, `send_message`, …
   */
  event: string;
  /**
   * Message of the thrown error.
   */
  error: string;
  /**
   * The stack as JavaScript writes it: class, message and positions.
   */
  stack?: string;
  extension?: ExtensionName;
  /**
   * Position in the author's source, as far as source maps are available.
   */
  location?: Location;
  /**
   * The source lines around the position, with the line marked.
   */
  codeFrame?: string;
}
export interface ExtensionName {
  /**
   * Name of the package, or of the file without its extension.
   */
  name: string;
  version?: string;
}
/**
 * A source position. Lines and columns count from 1, columns in UTF-16 code units.
 */
export interface Location {
  file: string;
  line: number;
  column: number;
}
/**
 * A diagnostic for the author of an extension that still works: a misspelt name, a key that is
 * built in.
 */
export interface ExtensionWarning {
  /**
   * Path of the extension's file, or `<session>`.
   */
  extensionPath: string;
  /**
   * The event that was being handled, or `load`, `register_provider`, …
   */
  event: string;
  message: string;
  /**
   * The stack as JavaScript writes it: class, message and positions.
   */
  stack?: string;
  extension?: ExtensionName;
  /**
   * Position in the author's source, as far as source maps are available.
   */
  location?: Location;
  /**
   * The source lines around the position, with the line marked.
   */
  codeFrame?: string;
}
/**
 * A slow extension that pi waits for.
 */
export interface ExtensionWait {
  extensionPath: string;
  /**
   * The event that is being handled, or `load`, `command`, `tool:<name>`.
   */
  event: string;
  elapsedMs: number;
  /**
   * Time limit in milliseconds after which pi continues without the extension. Time in which
   * a dialog is open does not count.
   */
  limitMs: number;
}
/**
 * A slow extension that pi waits for.
 */
export interface WaitEnd {
  extensionPath: string;
  /**
   * The event that is being handled, or `load`, `command`, `tool:<name>`.
   */
  event: string;
  elapsedMs: number;
  /**
   * Time limit in milliseconds after which pi continues without the extension. Time in which
   * a dialog is open does not count.
   */
  limitMs: number;
  outcome: WaitOutcome;
}
/**
 * The end of a dialog, by the id of its request.
 */
export interface UiEnd {
  id: string;
}
/**
 * The question whether a project is trusted, for programs. The dialog that follows has the same
 * `options`.
 */
export interface ProjectTrustRequest {
  cwd: string;
  reason: TrustReason;
  /**
   * Files and packages of the project, the newest first; its changes, if it was trusted before.
   */
  resources: Listed[];
  options: string[];
}
/**
 * A file or package that would be used.
 */
export interface Listed {
  role: FileRole;
  /**
   * The path, relative to the project if it is inside, or the source of a package.
   */
  name: string;
  /**
   * The change since the folder was trusted.
   */
  change?: Change;
}
/**
 * The question to the user whether a tool call may run. Extensions neither see nor answer it.
 */
export interface PermissionRequest {
  id: string;
  tool: string;
  toolCallId: string;
  /**
   * The input that runs if the call is allowed.
   */
  input: unknown;
  /**
   * A short text about the call. The command of `bash` may have several lines.
   */
  title: string;
  /**
   * The child session that makes the call, by its name or else its id.
   */
  childSession?: string;
  /**
   * Files that the call is known to use.
   */
  locations: PermissionLocation[];
  /**
   * The change of the file, as a unified diff.
   */
  diff?: string;
  annotations?: PermissionAnnotations;
  options: PermissionOption[];
  /**
   * The reason of the question: the rule, or what was not understood.
   */
  reason?: string;
  /**
   * The rules that `allow_session` and `allow_always` add.
   */
  rules?: string[];
}
export interface PermissionLocation {
  /**
   * An absolute path.
   */
  path: string;
}
/**
 * Facts about the tool, by the names of the Model Context Protocol.
 */
export interface PermissionAnnotations {
  readOnlyHint: boolean;
  destructiveHint: boolean;
}
export interface Statistics {
  extensions: ExtensionStats[];
  /**
   * Heap of all extensions together. Absent without an isolate, or while JavaScript runs
   * without a pause.
   */
  heap?: HeapStats;
}
/**
 * Statistics as a client gets them; times are milliseconds.
 */
export interface ExtensionStats {
  /**
   * Name of the package, or of the file without its extension.
   */
  name: string;
  version?: string;
  path: string;
  loaded: boolean;
  /**
   * Why the extension is not loaded.
   */
  error?: string;
  /**
   * Number of loads; `loadMs` is the duration of the last one.
   */
  loads: number;
  loadMs: number;
  calls: number;
  failures: number;
  totalMs: number;
  /**
   * Time on the JavaScript thread that all extensions share, sampled twenty times a
   * second.
   */
  busyMs: number;
  slowest?: Slowest;
  /**
   * Bytes of V8's heap that only this extension keeps alive. Absent unless requested.
   */
  heapBytes?: number;
  /**
   * By event, `command` or `tool:<name>`.
   */
  events: {
    [k: string]: EventStats;
  };
}
export interface Slowest {
  event: string;
  ms: number;
}
export interface EventStats {
  calls: number;
  failures: number;
  totalMs: number;
  slowestMs: number;
}
/**
 * Sizes in bytes.
 */
export interface HeapStats {
  used: number;
  total: number;
  limit: number;
  /**
   * Memory outside the heap, mostly array buffers.
   */
  external: number;
  /**
   * Bytes that several extensions keep alive together. Absent unless requested.
   */
  shared?: number;
  /**
   * Why the heap could not be measured per extension, if that was requested.
   */
  unmeasured?: string;
}
export interface Reloaded {
  /**
   * Extensions that were loaded from their files.
   */
  loaded: string[];
  /**
   * Extensions whose files do not load and whose last good version goes on.
   */
  kept: Failed[];
  /**
   * Extensions that ran before the reload and no longer exist.
   */
  gone: string[];
  /**
   * Extensions that are not loaded at all.
   */
  failed: Failed[];
}
export interface Failed {
  path: string;
  error: string;
}
/**
 * The result of the question about the project.
 */
export interface Trust {
  /**
   * The folder brings something that needs trust. Otherwise no question was asked.
   */
  needsTrust: boolean;
  /**
   * The user has answered. Otherwise nothing was changed.
   */
  answered: boolean;
  /**
   * The resources of the folder are used now.
   */
  trusted: boolean;
}
export interface RpcDoneResponse {
  id?: unknown;
  type: "response";
  command:
    | "abort"
    | "set_thinking_level"
    | "set_steering_mode"
    | "set_queue_mode"
    | "set_follow_up_mode"
    | "set_auto_compaction"
    | "set_auto_retry"
    | "abort_retry"
    | "abort_bash"
    | "set_session_name"
    | "wait_for_idle";
  success: true;
}
export interface RpcErrorResponse {
  id?: unknown;
  type: "response";
  /**
   * The command, or `parse` if the line is no command.
   */
  command: string;
  success: false;
  error: string;
  errorCode: ErrorCode;
}
