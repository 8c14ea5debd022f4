// `session.agent` of a session that an extension runs: the program is its agent. What can
// be set is, anything else is refused: an assignment that does nothing would be believed.
import type { AgentSession } from "pi:pi-coding-agent/agent-session/index.ts";
import { LiveMessages } from "pi:pi-coding-agent/agent-session/messages.ts";

export interface Heard {
  type: string;
  attempt?: number;
  toolCallId?: string;
  message?: Answer | { role: string; content?: undefined; errorMessage?: string };
  [member: string]: unknown;
}

interface Answer {
  role: "assistant";
  content: { type: string; id?: string }[];
  errorMessage?: string;
}

/** The argument of `beforeToolCall` and `afterToolCall`. */
export interface Asked {
  toolCall: { id: string };
  args: unknown;
  result?: unknown;
  isError?: boolean;
}

interface Before {
  block?: unknown;
  reason?: unknown;
  terminate?: unknown;
}

interface After {
  content?: unknown;
  details?: unknown;
  usage?: unknown;
  isError?: unknown;
  terminate?: unknown;
}

type Hook<T> = (about: object, signal?: AbortSignal) => Promise<T | undefined> | T | undefined;

/** Functions that reach the program. */
export interface Reach {
  ask<T>(question: string, args?: object): T;
  act<T = void>(action: string, args?: object): Promise<T>;
  tools(): unknown[];
  /** Tells the program which hooks to call. */
  hooks(set: { before: boolean; after: boolean }): void;
  /** Whether the session is disposed. */
  over(): boolean;
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
  #reach: Reach;
  #pending = new Set<string>();
  #failure: string | undefined;
  #streaming: unknown;
  #answer: Answer | undefined;
  /** Whether a run is active according to the events so far. */
  #runs = false;
  #messages: LiveMessages;

  constructor(session: AgentSession, reach: Reach) {
    this.#session = session;
    this.#reach = reach;
    this.#messages = new LiveMessages(reach);
  }

  static tell(state: SessionState): void {
    state.#messages.tell();
  }

  static hear(state: SessionState, event: Heard): void {
    const { type, message, toolCallId = "" } = event;
    if (type === "agent_start") state.#failure = undefined;
    if (type === "agent_start" || type === "agent_end") state.#runs = type === "agent_start";
    if (type === "message_end" && message?.role === "assistant") state.#answer = message as Answer;
    if (type === "turn_end" && message?.errorMessage) state.#failure = message.errorMessage;
    if (type === "message_start" || type === "message_update") state.#streaming = message;
    if (type === "message_end" || type === "agent_end") state.#streaming = undefined;
    if (type === "tool_execution_start") state.#pending.add(toolCallId);
    if (type === "tool_execution_end") state.#pending.delete(toolCallId);
    if (type === "message_end" || type === "agent_end") state.#messages.follow(message);
  }

  /** The last response, which contains the calls that hooks get. */
  static answer(state: SessionState): Answer | undefined {
    return state.#answer;
  }

  get model(): unknown {
    return this.#session.model;
  }

  set model(model: unknown) {
    this.#reach.ask("useModel", { model });
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
    return this.#reach.tools();
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
const NOTHING = async () => undefined;

/** Members of `Agent` that a session ignores; assigning them throws. */
const REFUSED = [
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
  #reach: Reach;
  #before: Hook<Before> | undefined = NOTHING;
  #after: Hook<After> | undefined = NOTHING;
  readonly state: SessionState;

  constructor(session: AgentSession, reach: Reach) {
    this.#session = session;
    this.#reach = reach;
    this.state = Object.preventExtensions(new SessionState(session, reach));
    Object.preventExtensions(this);
  }

  static hear(agent: SessionAgent, event: Heard): void {
    SessionState.hear(agent.state, event);
  }

  /** The program learns what was done to the list of messages. */
  static tell(agent: SessionAgent): void {
    SessionState.tell(agent.state);
  }

  /** Returns the result of the hook, with its changes of the arguments in `args`. */
  static async ask(agent: SessionAgent, what: "before" | "after", asked: Asked, signal: AbortSignal): Promise<object> {
    const assistantMessage = SessionState.answer(agent.state);
    const called = assistantMessage?.content.find(({ type, id }) => type === "toolCall" && id === asked.toolCall.id);
    const about = { ...asked, assistantMessage, toolCall: called ?? asked.toolCall, context: agent.state };
    if (what === "after") {
      const said = Object(await agent.#after?.(about, signal)) as After;
      // The hook may have changed the result in place.
      const { content, details, usage } = asked.result as After;
      const flag = (value: unknown) => value === undefined || value === null ? undefined : Boolean(value);
      return {
        content: said.content ?? content,
        details: said.details ?? details,
        usage: said.usage ?? usage,
        isError: flag(said.isError),
        terminate: flag(said.terminate),
      };
    }
    const { block, reason, terminate } = await agent.#before?.(about, signal) ?? {};
    const blocked = block ? { reason: String(reason || "Tool execution was blocked"), terminate: terminate === true } : undefined;
    return { blocked, args: asked.args };
  }

  #hook(): void {
    if (this.#reach.over()) return;
    const asks = (hook: unknown) => typeof hook === "function" && hook !== NOTHING;
    this.#reach.hooks({ before: asks(this.#before), after: asks(this.#after) });
  }

  get beforeToolCall(): Hook<Before> | undefined {
    return this.#before;
  }

  set beforeToolCall(hook: Hook<Before> | undefined) {
    this.#before = hook;
    this.#hook();
  }

  get afterToolCall(): Hook<After> | undefined {
    return this.#after;
  }

  set afterToolCall(hook: Hook<After> | undefined) {
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
    return this.#reach.act("waitForIdle");
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
    this.#reach.ask("queueMessage", { delivery, text: textOf(content), images: imagesOf(content) });
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

for (const name of REFUSED) {
  const what = `agent.${name}`;
  Object.defineProperty(SessionAgent.prototype, name, { get: () => undefined, set: () => refuse(what) });
}
