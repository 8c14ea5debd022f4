// Types of the agent's messages, tools and options, as far as the loop uses them.

export interface Message {
  role: string;
  [member: string]: unknown;
}

export interface ToolCall {
  type: "toolCall";
  id: string;
  name: string;
  arguments: unknown;
}

export interface AssistantMessage extends Message {
  content: { type: string }[];
  stopReason: string;
  errorMessage?: string;
}

export interface ToolResult {
  content: unknown[];
  details?: unknown;
  /** Ends the run if all results of a response's calls set it. */
  terminate?: boolean;
}

export interface AgentTool {
  name: string;
  description: string;
  parameters: unknown;
  executionMode?: string;
  prepareArguments?(args: unknown): unknown;
  execute(
    toolCallId: string,
    params: unknown,
    signal?: AbortSignal,
    onUpdate?: (partial: unknown) => void,
  ): Promise<ToolResult>;
}

export interface AgentContext {
  systemPrompt: string;
  messages: Message[];
  tools?: AgentTool[];
}

export interface Model {
  id: string;
  api: string;
  provider: string;
}

export interface StreamEvent {
  type: string;
  partial?: unknown;
}

export interface Stream extends AsyncIterable<StreamEvent> {
  result(): Promise<unknown>;
}

export type StreamFn = (model: Model, context: unknown, options: object) => Stream | Promise<Stream>;

interface AboutCall {
  assistantMessage: AssistantMessage;
  toolCall: ToolCall;
  args: unknown;
  context: AgentContext;
}

type Maybe<T> = Promise<T | undefined> | T | undefined;

export interface Hooks {
  convertToLlm(messages: Message[]): Message[] | Promise<Message[]>;
  transformContext?(messages: Message[], signal?: AbortSignal): Promise<Message[]>;
  getApiKey?(provider: string): Maybe<string>;
  beforeToolCall?(about: AboutCall, signal?: AbortSignal): Maybe<{ block?: boolean; reason?: string; terminate?: boolean }>;
  afterToolCall?(
    about: AboutCall & { result: ToolResult; isError: boolean },
    signal?: AbortSignal,
  ): Maybe<Partial<ToolResult> & { isError?: boolean }>;
  toolExecution?: string;
}

export interface AgentLoopConfig extends Hooks {
  model: Model;
  getSteeringMessages?(): Promise<Message[]>;
  getFollowUpMessages?(): Promise<Message[]>;
  apiKey?: string;
  [option: string]: unknown;
}

export interface AgentEvent {
  type: string;
  message?: Message;
  messages?: Message[];
  toolCallId?: string;
  [member: string]: unknown;
}

export type Emit = (event: AgentEvent) => unknown;
