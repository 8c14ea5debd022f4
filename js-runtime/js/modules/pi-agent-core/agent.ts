// `Agent`: a conversation, the queues of waiting messages, and one loop at a time.
import { streamSimple } from "pi:pi-ai/stream.ts";
import { runAgentLoop, runAgentLoopContinue } from "pi:pi-agent-core/loop.ts";
import type {
  AgentContext,
  AgentEvent,
  AgentLoopConfig,
  AgentTool,
  Hooks,
  Message,
  Model,
  StreamFn,
} from "pi:pi-agent-core/types.ts";

type QueueMode = "all" | "one-at-a-time";
type Listener = (event: AgentEvent, signal: AbortSignal) => unknown;

interface AgentOptions extends Partial<Hooks> {
  initialState?: Partial<AgentState>;
  streamFn?: StreamFn;
  onPayload?: unknown;
  onResponse?: unknown;
  steeringMode?: QueueMode;
  followUpMode?: QueueMode;
  sessionId?: string;
  thinkingBudgets?: unknown;
  transport?: string;
  maxRetryDelayMs?: number;
}

const NO_MODEL: Model = Object.freeze({
  id: "unknown",
  name: "unknown",
  api: "unknown",
  provider: "unknown",
  baseUrl: "",
  reasoning: false,
  input: [],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 0,
  maxTokens: 0,
});

/** Assigned lists are copied. */
class AgentState {
  systemPrompt: string;
  model: Model;
  thinkingLevel: string;
  isStreaming = false;
  streamingMessage: Message | undefined;
  pendingToolCalls: ReadonlySet<string> = new Set();
  errorMessage: string | undefined;
  private _tools: AgentTool[];
  private _messages: Message[];

  constructor(initialState: Partial<AgentState> = {}) {
    this.systemPrompt = initialState.systemPrompt ?? "";
    this.model = initialState.model ?? NO_MODEL;
    this.thinkingLevel = initialState.thinkingLevel ?? "off";
    this._tools = [...(initialState.tools ?? [])];
    this._messages = [...(initialState.messages ?? [])];
  }

  get tools(): AgentTool[] {
    return this._tools;
  }

  set tools(tools: AgentTool[]) {
    this._tools = [...tools];
  }

  get messages(): Message[] {
    return this._messages;
  }

  set messages(messages: Message[]) {
    this._messages = [...messages];
  }
}

class Queue {
  mode: QueueMode;
  private waiting: Message[] = [];

  constructor(mode: QueueMode = "one-at-a-time") {
    this.mode = mode;
  }

  get isEmpty(): boolean {
    return this.waiting.length === 0;
  }

  add(message: Message): void {
    this.waiting.push(message);
  }

  takeNext(): Message[] {
    return this.waiting.splice(0, this.mode === "all" ? this.waiting.length : 1);
  }

  clear(): void {
    this.waiting = [];
  }
}

const KNOWN_ROLES = ["user", "assistant", "toolResult"];

export class Agent {
  convertToLlm: Hooks["convertToLlm"];
  transformContext: Hooks["transformContext"];
  getApiKey: Hooks["getApiKey"];
  beforeToolCall: Hooks["beforeToolCall"];
  afterToolCall: Hooks["afterToolCall"];
  streamFn: StreamFn;
  onPayload: unknown;
  onResponse: unknown;
  sessionId: string | undefined;
  thinkingBudgets: unknown;
  transport: string;
  maxRetryDelayMs: number | undefined;
  toolExecution: string;
  private _current: AgentState;
  private listeners = new Set<Listener>();
  private _steering: Queue;
  private _followUps: Queue;
  private _run: { controller: AbortController; ended: Promise<void> } | undefined;

  constructor(options: AgentOptions = {}) {
    this._current = new AgentState(options.initialState);
    this.convertToLlm = options.convertToLlm ??
      ((messages) => messages.filter(({ role }) => KNOWN_ROLES.includes(role)));
    this.transformContext = options.transformContext;
    this.getApiKey = options.getApiKey;
    this.beforeToolCall = options.beforeToolCall;
    this.afterToolCall = options.afterToolCall;
    this.streamFn = options.streamFn ?? (streamSimple as unknown as StreamFn);
    this.onPayload = options.onPayload;
    this.onResponse = options.onResponse;
    this.sessionId = options.sessionId;
    this.thinkingBudgets = options.thinkingBudgets;
    this.transport = options.transport ?? "sse";
    this.maxRetryDelayMs = options.maxRetryDelayMs;
    this.toolExecution = options.toolExecution ?? "parallel";
    this._steering = new Queue(options.steeringMode);
    this._followUps = new Queue(options.followUpMode);
  }

  /** Listeners are awaited, one after the other. */
  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  get state(): AgentState {
    return this._current;
  }

  get steeringMode(): QueueMode {
    return this._steering.mode;
  }

  set steeringMode(mode: QueueMode) {
    this._steering.mode = mode;
  }

  get followUpMode(): QueueMode {
    return this._followUps.mode;
  }

  set followUpMode(mode: QueueMode) {
    this._followUps.mode = mode;
  }

  steer(message: Message): void {
    this._steering.add(message);
  }

  followUp(message: Message): void {
    this._followUps.add(message);
  }

  clearSteeringQueue(): void {
    this._steering.clear();
  }

  clearFollowUpQueue(): void {
    this._followUps.clear();
  }

  clearAllQueues(): void {
    this.clearSteeringQueue();
    this.clearFollowUpQueue();
  }

  hasQueuedMessages(): boolean {
    return !this._steering.isEmpty || !this._followUps.isEmpty;
  }

  get signal(): AbortSignal | undefined {
    return this._run?.controller.signal;
  }

  abort(): void {
    this._run?.controller.abort();
  }

  waitForIdle(): Promise<void> {
    return this._run?.ended ?? Promise.resolve();
  }

  reset(): void {
    this._current.messages = [];
    this._settle();
    this._current.errorMessage = undefined;
    this.clearAllQueues();
  }

  async prompt(input: string | Message | Message[], images: unknown[] = []): Promise<void> {
    if (this._run) {
      throw new Error(
        "Agent is already processing a prompt. Use steer() or followUp() to queue messages, or wait for completion.",
      );
    }
    if (Array.isArray(input)) return await this._begin(input);
    if (typeof input !== "string") return await this._begin([input]);
    const content = [{ type: "text", text: input }, ...images];
    await this._begin([{ role: "user", content, timestamp: Date.now() }]);
  }

  /** Continues with the last message of the conversation, or with waiting messages. */
  async continue(): Promise<void> {
    if (this._run) throw new Error("Agent is already processing. Wait for completion before continuing.");
    const last = this._current.messages.at(-1);
    if (!last) throw new Error("No messages to continue from");
    if (last.role !== "assistant") return await this._begin();
    const steering = this._steering.takeNext();
    if (steering.length > 0) return await this._begin(steering, true);
    const followUps = this._followUps.takeNext();
    if (followUps.length === 0) throw new Error("Cannot continue from message role: assistant");
    await this._begin(followUps);
  }

  private async _begin(prompts?: Message[], steered = false): Promise<void> {
    const controller = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const current = this._current;
    this._run = { controller, ended };
    current.isStreaming = true;
    current.streamingMessage = current.errorMessage = undefined;
    const { systemPrompt, messages, tools } = current;
    const context: AgentContext = { systemPrompt, messages: [...messages], tools: [...tools] };
    const emit = (event: AgentEvent) => this._onEvent(event, controller.signal);
    const config = this._config(steered);
    try {
      await (prompts
        ? runAgentLoop(prompts, context, config, emit, controller.signal, this.streamFn)
        : runAgentLoopContinue(context, config, emit, controller.signal, this.streamFn));
    } catch (error) {
      await this._fail(error, controller.signal);
    } finally {
      this._settle();
      this._run = undefined;
      resolve();
    }
  }

  private _settle(): void {
    this._current.isStreaming = false;
    this._current.streamingMessage = undefined;
    this._current.pendingToolCalls = new Set();
  }

  /** Steering messages that started the run are not taken from the queue again. */
  private _config(steered: boolean): AgentLoopConfig {
    const { model, thinkingLevel } = this._current;
    let fromQueue = !steered;
    return {
      model,
      reasoning: thinkingLevel === "off" ? undefined : thinkingLevel,
      sessionId: this.sessionId,
      onPayload: this.onPayload,
      onResponse: this.onResponse,
      transport: this.transport,
      thinkingBudgets: this.thinkingBudgets,
      maxRetryDelayMs: this.maxRetryDelayMs,
      toolExecution: this.toolExecution,
      beforeToolCall: this.beforeToolCall,
      afterToolCall: this.afterToolCall,
      convertToLlm: this.convertToLlm,
      transformContext: this.transformContext,
      getApiKey: this.getApiKey,
      getSteeringMessages: async () => {
        if (fromQueue) return this._steering.takeNext();
        fromQueue = true;
        return [];
      },
      getFollowUpMessages: async () => this._followUps.takeNext(),
    };
  }

  private async _fail(error: unknown, signal: AbortSignal): Promise<void> {
    const { api, provider, id } = this._current.model;
    const none = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
    const errorMessage = error instanceof Error ? error.message : String(error);
    const failure: Message = {
      role: "assistant",
      content: [{ type: "text", text: "" }],
      api,
      provider,
      model: id,
      usage: { ...none, totalTokens: 0, cost: { ...none, total: 0 } },
      stopReason: signal.aborted ? "aborted" : "error",
      errorMessage,
      timestamp: Date.now(),
    };
    this._current.messages.push(failure);
    this._current.errorMessage = errorMessage;
    await this._onEvent({ type: "agent_end", messages: [failure] }, signal);
  }

  private async _onEvent(event: AgentEvent, signal: AbortSignal): Promise<void> {
    const current = this._current;
    const calls = new Set(current.pendingToolCalls);
    if (event.type === "message_start" || event.type === "message_update") {
      current.streamingMessage = event.message;
    } else if (event.type === "message_end") {
      current.streamingMessage = undefined;
      current.messages.push(event.message as Message);
    } else if (event.type === "tool_execution_start") {
      current.pendingToolCalls = calls.add(event.toolCallId as string);
    } else if (event.type === "tool_execution_end") {
      calls.delete(event.toolCallId as string);
      current.pendingToolCalls = calls;
    } else if (event.type === "turn_end" && event.message?.errorMessage) {
      current.errorMessage = event.message.errorMessage as string;
    } else if (event.type === "agent_end") {
      current.streamingMessage = undefined;
    }
    for (const listener of this.listeners) await listener(event, signal);
  }
}
