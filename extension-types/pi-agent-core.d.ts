// `@mariozechner/pi-agent-core`: an agent that an extension makes of its own functions, and types.
import type { Static, TSchema } from "@sinclair/typebox";
import type {
  AssistantMessageEventStream,
  ImageContent,
  Model,
  TextContent,
  ThinkingLevel as Thinking,
  Tool,
} from "./pi-ai.js";

export type { AgentMessage } from "./session.js";

export type ThinkingLevel = "off" | Thinking;
export type ToolExecutionMode = "sequential" | "parallel";

export interface AgentToolResult<TDetails> {
  /** For the model. */
  content: (TextContent | ImageContent)[];
  /** For the user interface and for extensions; stored in the session. */
  details: TDetails;
}

export type AgentToolUpdateCallback<TDetails = unknown> = (partialResult: AgentToolResult<TDetails>) => void;

export interface AgentTool<TParameters extends TSchema = TSchema, TDetails = unknown> extends Tool<TParameters> {
  label: string;
  execute(
    toolCallId: string,
    params: Static<TParameters>,
    signal?: AbortSignal,
    onUpdate?: AgentToolUpdateCallback<TDetails>,
  ): Promise<AgentToolResult<TDetails>>;
}

/** A message, or one of the extension's own kind, which `convertToLlm` has to know. */
// deno-lint-ignore no-explicit-any
type AnyMessage = any;
// deno-lint-ignore no-explicit-any
type AnyTool = AgentTool<any, any>;

export interface AgentContext {
  systemPrompt: string;
  messages: AnyMessage[];
  tools?: AnyTool[];
}
// deno-lint-ignore no-explicit-any
export type AgentEvent = { type: string; [member: string]: any };
// deno-lint-ignore no-explicit-any
export type StreamFn = (model: any, context: any, options: any) => any;

interface AgentHooks {
  convertToLlm(messages: AnyMessage[]): AnyMessage[] | Promise<AnyMessage[]>;
  transformContext?(messages: AnyMessage[], signal?: AbortSignal): Promise<AnyMessage[]>;
  getApiKey?(provider: string): string | undefined | Promise<string | undefined>;
  beforeToolCall?(
    // deno-lint-ignore no-explicit-any
    about: any,
    signal?: AbortSignal,
  ): Promise<{ block?: boolean; reason?: string } | undefined>;
  afterToolCall?(
    // deno-lint-ignore no-explicit-any
    about: any,
    signal?: AbortSignal,
  ): Promise<{ content?: (TextContent | ImageContent)[]; details?: unknown; isError?: boolean } | undefined>;
  toolExecution?: ToolExecutionMode;
}
export interface AgentLoopConfig extends AgentHooks {
  model: Model;
  getSteeringMessages?(): Promise<AnyMessage[]>;
  getFollowUpMessages?(): Promise<AnyMessage[]>;
  apiKey?: string;
  reasoning?: Thinking;
}

type QueueMode = "all" | "one-at-a-time";
export interface AgentState {
  systemPrompt: string;
  model: Model;
  thinkingLevel: ThinkingLevel;
  /** Lists that are put in are copied. */
  tools: AnyTool[];
  messages: AnyMessage[];
  readonly isStreaming: boolean;
  readonly streamingMessage?: AnyMessage;
  readonly pendingToolCalls: ReadonlySet<string>;
  readonly errorMessage?: string;
}
export interface AgentOptions extends Partial<AgentHooks> {
  initialState?: Partial<AgentState>;
  streamFn?: StreamFn;
  steeringMode?: QueueMode;
  followUpMode?: QueueMode;
  sessionId?: string;
  thinkingBudgets?: unknown;
}
/** A conversation of the extension's own. */
export class Agent {
  constructor(options?: AgentOptions);
  readonly state: AgentState;
  readonly signal: AbortSignal | undefined;
  steeringMode: QueueMode;
  followUpMode: QueueMode;
  sessionId?: string;
  streamFn: StreamFn;
  toolExecution: ToolExecutionMode;
  subscribe(listener: (event: AgentEvent, signal: AbortSignal) => Promise<void> | void): () => void;
  prompt(input: string, images?: ImageContent[]): Promise<void>;
  prompt(message: AnyMessage | AnyMessage[]): Promise<void>;
  continue(): Promise<void>;
  steer(message: AnyMessage): void;
  followUp(message: AnyMessage): void;
  clearSteeringQueue(): void;
  clearFollowUpQueue(): void;
  clearAllQueues(): void;
  hasQueuedMessages(): boolean;
  abort(): void;
  waitForIdle(): Promise<void>;
  reset(): void;
}

type Emit = (event: AgentEvent) => Promise<void> | void;
interface AgentStream extends AsyncIterable<AgentEvent> {
  result(): Promise<AnyMessage[]>;
}
export function agentLoop(
  prompts: AnyMessage[],
  context: AgentContext,
  config: AgentLoopConfig,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): AgentStream;
export function agentLoopContinue(
  context: AgentContext,
  config: AgentLoopConfig,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): AgentStream;
export function runAgentLoop(
  prompts: AnyMessage[],
  context: AgentContext,
  config: AgentLoopConfig,
  emit: Emit,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): Promise<AnyMessage[]>;
export function runAgentLoopContinue(
  context: AgentContext,
  config: AgentLoopConfig,
  emit: Emit,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): Promise<AnyMessage[]>;
/** Asks through a server that has the keys. */
export function streamProxy(
  model: Model,
  context: unknown,
  options: { authToken: string; proxyUrl: string; signal?: AbortSignal },
): AssistantMessageEventStream;
