// `session.agent` of a child session, whose agent is the program. Members that cannot be set throw
// on assignment, because an assignment without effect would go unnoticed.
import type { AgentSession } from "pi:pi-coding-agent/agent-session/index.ts";
import { LiveMessages } from "pi:pi-coding-agent/agent-session/messages.ts";

export interface SessionEvent {
  type: string;
  attempt?: number;
  toolCallId?: string;
  message?: AssistantMessage | { role: string; content?: undefined; errorMessage?: string };
  [member: string]: unknown;
}

interface AssistantMessage {
  role: "assistant";
  content: { type: string; id?: string }[];
  errorMessage?: string;
}

/** The argument of `beforeToolCall` and `afterToolCall`. */
export interface ToolHookRequest {
  toolCall: { id: string };
  args: unknown;
  result?: unknown;
  isError?: boolean;
}

interface BeforeResult {
  block?: unknown;
  reason?: unknown;
  terminate?: unknown;
}

interface AfterResult {
  content?: unknown;
  details?: unknown;
  usage?: unknown;
  isError?: unknown;
  terminate?: unknown;
}

type Hook<T> = (about: object, signal?: AbortSignal) => Promise<T | undefined> | T | undefined;

/** Calls to the program. */
export interface SessionCalls {
  query<T>(name: string, args?: object): T;
  execute<T = void>(action: string, args?: object): Promise<T>;
  tools(): unknown[];
  /** Tells the program which hooks to call. */
  hooks(set: { before: boolean; after: boolean }): void;
  /** Whether the session is disposed. */
  isDisposed(): boolean;
}

interface Block {
  type: string;
  text?: string;
}

interface Message {
  role: string;
  content: string | Block[];
  [member: string]: unknown;
}

function refuse(what: string): never {
  throw new Error(
    `${what} cannot be set: pi itself runs this session. Give createAgentSession() what it is to ` +
      "have (model, tools, customTools, resourceLoader), or run an Agent of pi-agent-core",
  );
}

/** `agent.state`: the current state of the session. */
class SessionState {
  #session: AgentSession;
  #calls: SessionCalls;
  #pending = new Set<string>();
  #failure: string | undefined;
  #streaming: unknown;
  #lastResponse: AssistantMessage | undefined;
  /** Whether a run is active according to the events so far. */
  #runs = false;
  #messages: LiveMessages;

  constructor(session: AgentSession, calls: SessionCalls) {
    this.#session = session;
    this.#calls = calls;
    this.#messages = new LiveMessages(calls);
  }

  static sendMessages(state: SessionState): void {
    state.#messages.send();
  }

  static onEvent(state: SessionState, event: SessionEvent): void {
    const { type, message, toolCallId = "" } = event;
    if (type === "agent_start") state.#failure = undefined;
    if (type === "agent_start" || type === "agent_end") state.#runs = type === "agent_start";
    if (type === "message_end" && message?.role === "assistant") state.#lastResponse = message as AssistantMessage;
    if (type === "turn_end" && message?.errorMessage) state.#failure = message.errorMessage;
    if (type === "message_start" || type === "message_update") state.#streaming = message;
    if (type === "message_end" || type === "agent_end") state.#streaming = undefined;
    if (type === "tool_execution_start") state.#pending.add(toolCallId);
    if (type === "tool_execution_end") state.#pending.delete(toolCallId);
    if (type === "message_end" || type === "agent_end") state.#messages.grow(message);
  }

  /** The last response, which contains the calls that hooks get. */
  static lastResponse(state: SessionState): AssistantMessage | undefined {
    return state.#lastResponse;
  }

  get model(): unknown {
    return this.#session.model;
  }

  set model(model: unknown) {
    this.#calls.query("useModel", { model });
  }

  get thinkingLevel(): string {
    return this.#session.thinkingLevel;
  }

  set thinkingLevel(level: string) {
    this.#session.setThinkingLevel(level);
  }

  get isStreaming(): boolean {
    return this.#session.isStreaming;
  }

  /** The messages that the model gets. Changes of the list count like an assignment. */
  get messages(): unknown[] {
    return this.#messages.list(this.#runs);
  }

  /** Takes effect with the next run. The entries of the session stay as they are. */
  set messages(messages: readonly unknown[]) {
    this.#messages.set(messages, this.#runs);
  }

  get systemPrompt(): string {
    return this.#session.systemPrompt;
  }

  set systemPrompt(_text: string) {
    refuse("agent.state.systemPrompt");
  }

  /** The tools that the model is offered. */
  get tools(): unknown[] {
    return this.#calls.tools();
  }

  set tools(_tools: unknown[]) {
    refuse("agent.state.tools");
  }

  get errorMessage(): string | undefined {
    return this.#failure;
  }

  get streamingMessage(): unknown {
    return this.#streaming;
  }

  get pendingToolCalls(): ReadonlySet<string> {
    return new Set(this.#pending);
  }
}

/** The default hook: a new hook may call the previous one. */
const NO_HOOK = async () => undefined;

/** Members of `Agent` that a session ignores; assigning them throws. */
const UNSETTABLE_MEMBERS = [
  "streamFn",
  "transformContext",
  "convertToLlm",
  "getApiKey",
  "onPayload",
  "onResponse",
  "toolExecution",
  "thinkingBudgets",
  "transport",
  "maxRetryDelayMs",
];

const textOf = (content: string | Block[]) =>
  typeof content === "string"
    ? content
    : content.filter((block) => block.type === "text").map((block) => block.text).join("\n");
const imagesOf = (content: string | Block[]) =>
  typeof content === "string" ? [] : content.filter((block) => block.type === "image");

export class SessionAgent {
  #session: AgentSession;
  #calls: SessionCalls;
  #before: Hook<BeforeResult> | undefined = NO_HOOK;
  #after: Hook<AfterResult> | undefined = NO_HOOK;
  readonly state: SessionState;

  constructor(session: AgentSession, calls: SessionCalls) {
    this.#session = session;
    this.#calls = calls;
    this.state = Object.preventExtensions(new SessionState(session, calls));
    Object.preventExtensions(this);
  }

  static onEvent(agent: SessionAgent, event: SessionEvent): void {
    SessionState.onEvent(agent.state, event);
  }

  /** Sends changes of the list of messages to the program. */
  static sendMessages(agent: SessionAgent): void {
    SessionState.sendMessages(agent.state);
  }

  /** Returns the result of the hook, with its changes of the arguments in `args`. */
  static async callHook(agent: SessionAgent, what: "before" | "after", request: ToolHookRequest, signal: AbortSignal): Promise<object> {
    const assistantMessage = SessionState.lastResponse(agent.state);
    const called = assistantMessage?.content.find(({ type, id }) => type === "toolCall" && id === request.toolCall.id);
    const about = { ...request, assistantMessage, toolCall: called ?? request.toolCall, context: agent.state };
    if (what === "after") {
      const result = Object(await agent.#after?.(about, signal)) as AfterResult;
      // The hook may have changed the result in place.
      const { content, details, usage } = request.result as AfterResult;
      const flag = (value: unknown) => value === undefined || value === null ? undefined : Boolean(value);
      return {
        content: result.content ?? content,
        details: result.details ?? details,
        usage: result.usage ?? usage,
        isError: flag(result.isError),
        terminate: flag(result.terminate),
      };
    }
    const { block, reason, terminate } = await agent.#before?.(about, signal) ?? {};
    const blocked = block ? { reason: String(reason || "Tool execution was blocked"), terminate: terminate === true } : undefined;
    return { blocked, args: request.args };
  }

  #hook(): void {
    if (this.#calls.isDisposed()) return;
    const asks = (hook: unknown) => typeof hook === "function" && hook !== NO_HOOK;
    this.#calls.hooks({ before: asks(this.#before), after: asks(this.#after) });
  }

  get beforeToolCall(): Hook<BeforeResult> | undefined {
    return this.#before;
  }

  set beforeToolCall(hook: Hook<BeforeResult> | undefined) {
    this.#before = hook;
    this.#hook();
  }

  get afterToolCall(): Hook<AfterResult> | undefined {
    return this.#after;
  }

  set afterToolCall(hook: Hook<AfterResult> | undefined) {
    this.#after = hook;
    this.#hook();
  }

  get sessionId(): string {
    return this.#session.sessionId;
  }

  get steeringMode(): string {
    return this.#session.steeringMode;
  }

  set steeringMode(mode: string) {
    this.#session.setSteeringMode(mode);
  }

  get followUpMode(): string {
    return this.#session.followUpMode;
  }

  set followUpMode(mode: string) {
    this.#session.setFollowUpMode(mode);
  }

  subscribe(listener: (event: { type: string }) => void): () => void {
    return this.#session.subscribe(listener);
  }

  abort(): void {
    void this.#session.abort();
  }

  waitForIdle(): Promise<void> {
    return this.#calls.execute("waitForIdle");
  }

  prompt(input: string | Message | Message[], images?: unknown[]): Promise<void> {
    if (typeof input === "string") return this.#session.prompt(input, { images, expandPromptTemplates: false });
    const messages = Array.isArray(input) ? input : [input];
    const last = messages.at(-1);
    if (last?.role !== "user") {
      return Promise.reject(new Error("agent.prompt(): the last message must be one of the user, to be answered"));
    }
    if (messages.length > 1) this.state.messages.push(...messages.slice(0, -1));
    const { content } = last as Message;
    return this.#session.prompt(textOf(content), { images: imagesOf(content), expandPromptTemplates: false });
  }

  #queue(delivery: string, { content }: Message): void {
    this.#calls.query("queueMessage", { delivery, text: textOf(content), images: imagesOf(content) });
  }

  steer(message: Message): void {
    this.#queue("steer", message);
  }

  followUp(message: Message): void {
    this.#queue("followUp", message);
  }

  hasQueuedMessages(): boolean {
    return this.#session.pendingMessageCount > 0;
  }

  clearAllQueues(): void {
    this.#session.clearQueue();
  }

  /** Empties the queues and the messages that the model gets. */
  reset(): void {
    this.#session.clearQueue();
    this.state.messages = [];
  }

  continue(): Promise<void> {
    return Promise.reject(new Error("agent.continue() is not supported in a session: use prompt()"));
  }
}

for (const name of UNSETTABLE_MEMBERS) {
  const what = `agent.${name}`;
  Object.defineProperty(SessionAgent.prototype, name, { get: () => undefined, set: () => refuse(what) });
}
