// `@mariozechner/pi-agent-core`: an agent that an extension runs itself.
import type {
  AssistantMessage,
  AssistantMessageEvent,
  AssistantMessageEventStream,
  Context,
  EventStream,
  ImageContent,
  Message,
  Model,
  SimpleStreamOptions,
  TextContent,
  ToolCall,
  ToolResultMessage,
  Transport,
  Usage,
} from "../pi-ai.js";
import type { AgentTool, AgentToolResult, ThinkingLevel, ToolExecutionMode } from "../pi-agent-core.js";
import type { AgentMessage } from "../sdk/session.js";

// deno-lint-ignore no-explicit-any
type AnyTool = AgentTool<any, any>;
type Awaitable<T> = T | Promise<T>;
export type QueueMode = "all" | "one-at-a-time";

export type StreamFn = (
  model: Model,
  context: Context,
  options?: SimpleStreamOptions,
) => Awaitable<AssistantMessageEventStream>;
export type AgentToolCall = ToolCall;
/** Extended by declaration merging with the author's own kinds of messages. */
// deno-lint-ignore no-empty-interface
export interface CustomAgentMessages {}

export interface BeforeToolCallResult {
  block?: boolean;
  reason?: string;
  terminate?: boolean;
}
export interface AfterToolCallResult {
  content?: (TextContent | ImageContent)[];
  details?: unknown;
  isError?: boolean;
  terminate?: boolean;
  usage?: Usage;
}
export interface BeforeToolCallContext {
  assistantMessage: AssistantMessage;
  toolCall: AgentToolCall;
  args: unknown;
  context: AgentContext;
}
export interface AfterToolCallContext extends BeforeToolCallContext {
  // deno-lint-ignore no-explicit-any
  result: AgentToolResult<any>;
  isError: boolean;
}
interface ToolHooks {
  toolExecution?: ToolExecutionMode;
  beforeToolCall?(context: BeforeToolCallContext, signal?: AbortSignal): Promise<BeforeToolCallResult | undefined>;
  afterToolCall?(context: AfterToolCallContext, signal?: AbortSignal): Promise<AfterToolCallResult | undefined>;
}
interface ContextHooks {
  transformContext?(messages: AgentMessage[], signal?: AbortSignal): Promise<AgentMessage[]>;
  getApiKey?(provider: string): Awaitable<string | undefined>;
}

export interface AgentContext {
  systemPrompt: string;
  messages: AgentMessage[];
  tools?: AnyTool[];
}
export interface AgentLoopConfig extends SimpleStreamOptions, ToolHooks, ContextHooks {
  model: Model;
  convertToLlm(messages: AgentMessage[]): Awaitable<Message[]>;
  getSteeringMessages?(): Promise<AgentMessage[]>;
  getFollowUpMessages?(): Promise<AgentMessage[]>;
}

/** A type alias, because an interface would not fit a record. */
type ToolCallFields = {
  toolCallId: string;
  toolName: string;
};
export type AgentEvent =
  | { type: "agent_start" }
  | { type: "agent_end"; messages: AgentMessage[] }
  | { type: "turn_start" }
  | { type: "turn_end"; message: AgentMessage; toolResults: ToolResultMessage[] }
  | { type: "message_start"; message: AgentMessage }
  | { type: "message_update"; message: AgentMessage; assistantMessageEvent: AssistantMessageEvent }
  | { type: "message_end"; message: AgentMessage }
  // deno-lint-ignore no-explicit-any
  | ({ type: "tool_execution_start"; args: any } & ToolCallFields)
  // deno-lint-ignore no-explicit-any
  | ({ type: "tool_execution_update"; args: any; partialResult: any } & ToolCallFields)
  // deno-lint-ignore no-explicit-any
  | ({ type: "tool_execution_end"; result: any; isError: boolean } & ToolCallFields);
export type AgentEventSink = (event: AgentEvent) => Awaitable<void>;

/** Yields the events; the result is the list of the run's messages. */
export function agentLoop(
  prompts: AgentMessage[],
  context: AgentContext,
  config: AgentLoopConfig,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): EventStream<AgentEvent, AgentMessage[]>;
export function agentLoopContinue(
  context: AgentContext,
  config: AgentLoopConfig,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): EventStream<AgentEvent, AgentMessage[]>;
export function runAgentLoop(
  prompts: AgentMessage[],
  context: AgentContext,
  config: AgentLoopConfig,
  emit: AgentEventSink,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): Promise<AgentMessage[]>;
export function runAgentLoopContinue(
  context: AgentContext,
  config: AgentLoopConfig,
  emit: AgentEventSink,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): Promise<AgentMessage[]>;

export interface AgentState {
  systemPrompt: string;
  model: Model;
  thinkingLevel: ThinkingLevel;
  tools: AnyTool[];
  messages: AgentMessage[];
  readonly isStreaming: boolean;
  readonly streamingMessage?: AgentMessage;
  readonly pendingToolCalls: ReadonlySet<string>;
  readonly errorMessage?: string;
}
type Initial = "systemPrompt" | "model" | "thinkingLevel" | "tools" | "messages";
export interface AgentOptions
  extends ToolHooks, ContextHooks, Pick<SimpleStreamOptions, "onPayload" | "onResponse" | "thinkingBudgets"> {
  initialState?: Partial<Pick<AgentState, Initial>>;
  convertToLlm?(messages: AgentMessage[]): Awaitable<Message[]>;
  streamFn?: StreamFn;
  steeringMode?: QueueMode;
  followUpMode?: QueueMode;
  sessionId?: string;
  transport?: Transport;
  maxRetryDelayMs?: number;
}
export class Agent {
  convertToLlm: (messages: AgentMessage[]) => Awaitable<Message[]>;
  transformContext?: (messages: AgentMessage[], signal?: AbortSignal) => Promise<AgentMessage[]>;
  streamFn: StreamFn;
  getApiKey?: (provider: string) => Awaitable<string | undefined>;
  onPayload?: SimpleStreamOptions["onPayload"];
  onResponse?: SimpleStreamOptions["onResponse"];
  beforeToolCall?: ToolHooks["beforeToolCall"];
  afterToolCall?: ToolHooks["afterToolCall"];
  sessionId?: string;
  thinkingBudgets?: SimpleStreamOptions["thinkingBudgets"];
  transport: Transport;
  maxRetryDelayMs?: number;
  toolExecution: ToolExecutionMode;
  steeringMode: QueueMode;
  followUpMode: QueueMode;
  readonly state: AgentState;
  readonly signal: AbortSignal | undefined;
  constructor(options?: AgentOptions);
  /** Returns a function that unsubscribes the listener. */
  subscribe(listener: (event: AgentEvent, signal: AbortSignal) => Awaitable<void>): () => void;
  prompt(message: AgentMessage | AgentMessage[]): Promise<void>;
  prompt(input: string, images?: ImageContent[]): Promise<void>;
  continue(): Promise<void>;
  steer(message: AgentMessage): void;
  followUp(message: AgentMessage): void;
  clearSteeringQueue(): void;
  clearFollowUpQueue(): void;
  clearAllQueues(): void;
  hasQueuedMessages(): boolean;
  abort(): void;
  waitForIdle(): Promise<void>;
  reset(): void;
}

export interface ProxyStreamOptions extends SimpleStreamOptions {
  authToken: string;
  proxyUrl: string;
}
/** An event from a proxy, without the message so far. */
export type ProxyAssistantMessageEvent =
  | { type: "start" }
  | AtIndex<"text_start" | "thinking_start" | "toolcall_end">
  | AtIndex<"text_delta" | "thinking_delta" | "toolcall_delta", { delta: string }>
  | AtIndex<"text_end" | "thinking_end", { contentSignature?: string }>
  | AtIndex<"toolcall_start", { id: string; toolName: string }>
  | { type: "done"; reason: "stop" | "length" | "toolUse"; usage: Usage }
  | { type: "error"; reason: "aborted" | "error"; errorMessage?: string; usage: Usage };
type AtIndex<K extends string, Rest = unknown> = K extends unknown ? { type: K; contentIndex: number } & Rest : never;
export function streamProxy(model: Model, context: Context, options: ProxyStreamOptions): AssistantMessageEventStream;

// Without this line every declaration would be exported.
export {};
