// Extensions that a child session gets as functions (`extensionFactories`), mostly guards of
// sub-agents. They get its events; their results count for its tools, for the start of a run and
// for requests; and the session has their tools. There is no user in a child session, so `pi` has
// no more members than that.
import type { EventBus } from "pi:host.ts";
import { AgentSession } from "pi:pi-coding-agent/agent-session/index.ts";
import type { CustomTool, EndedTurn, EndTurn } from "pi:pi-coding-agent/agent-session/types.ts";
import { turnEndContext } from "pi:pi-coding-agent/session-manager/turn-end-context.ts";
import type { Preview } from "pi:pi-coding-agent/session-manager/turn-end-context.ts";
import { contextOf } from "pi:pi-coding-agent/agent-session/extensions.ts";

type Event = { type: string; [member: string]: unknown };
type Handler = (event: Event, ctx: unknown) => unknown;

/** Events of the session that have handlers as well. */
const LISTENED_EVENTS = [
  "agent_start",
  "agent_end",
  "turn_start",
  "message_start",
  "message_update",
  "message_end",
  "tool_execution_start",
  "tool_execution_update",
  "tool_execution_end",
  "session_info_changed",
  "thinking_level_select",
];
/** Events whose handlers' results count, with the member that they replace. */
const REPLACED_MEMBERS: Record<string, string> = {
  before_agent_start: "systemPrompt",
  before_provider_request: "payload",
  context: "messages",
};
const EVENTS = [...LISTENED_EVENTS, ...Object.keys(REPLACED_MEMBERS), "turn_end", "tool_call", "tool_result", "session_start", "session_shutdown"];

/** Members of `pi` that a child session cannot support. */
const UNSUPPORTED_MEMBERS = [
  "exec",
  "getCommands",
  "getFlag",
  "getSettings",
  "registerCommand",
  "registerEntryRenderer",
  "registerFlag",
  "registerMessageRenderer",
  "registerProvider",
  "registerShortcut",
  "registerToolRenderer",
  "sendMessage",
  "setLabel",
  "unregisterProvider",
];

const notHere = (what: string) =>
  new Error(`${what} is not available to an extension of extensionFactories in this version of pi`);

/** An extension that was assembled in code instead of loaded. */
export interface MadeExtension {
  path: string;
  handlers?: Map<string, Handler[]>;
  tools?: Map<string, { definition: CustomTool }>;
  commands?: Map<string, unknown>;
  flags?: Map<string, unknown>;
  shortcuts?: Map<string, unknown>;
}
export type InlineExtension = ((pi: unknown) => unknown) | MadeExtension;

/** A tool call or result that a hook gets. */
interface ToolEvent {
  toolCall: { id: string; name: string };
  args: unknown;
  result?: { content?: unknown; details?: unknown; usage?: unknown };
  isError?: boolean;
}

interface Outcome {
  content?: unknown;
  details?: unknown;
  isError?: boolean;
  usage?: unknown;
}

export class InlineExtensions {
  readonly tools: CustomTool[] = [];
  #handlers = new Map<string, Handler[]>();
  #session: AgentSession | undefined;
  #events: EventBus | undefined;
  #turn = 0;
  /** Whether the end of the session was emitted. */
  #over = false;
  #level = "";
  /** The signal of events that cannot be aborted. */
  #quiet = new AbortController().signal;

  /** A failing factory fails the creation of the session: a guard must not be left out. */
  static async load(extensions: InlineExtension[], events: EventBus): Promise<InlineExtensions> {
    const all = new InlineExtensions();
    all.#events = events;
    for (const extension of extensions) {
      if (typeof extension === "function") await extension(all.#api());
      else all.#addAssembled(extension);
    }
    return all;
  }

  /** Adds an extension that other code has assembled, as the original's loaders return them. */
  #addAssembled({ path, handlers, tools, commands, flags, shortcuts }: MadeExtension): void {
    const unavailable = { commands, flags, shortcuts };
    for (const [name, registered] of Object.entries(unavailable)) {
      if (registered?.size) throw notHere(`${path}: what its \`${name}\` have`);
    }
    const { on } = this.#api() as { on(event: string, handler: Handler): void };
    for (const [event, all] of handlers ?? []) all.forEach((handler) => on(event, handler));
    for (const tool of tools?.values() ?? []) this.tools.push(tool.definition);
  }

  #api(): object {
    const session = (what: string): AgentSession => {
      if (this.#session) return this.#session;
      throw new Error(`pi.${what}: the session is not there yet. Call it from a handler`);
    };
    const api: Record<string, unknown> = {
      events: this.#events,
      on: (event: string, handler: Handler) => {
        if (!EVENTS.includes(event)) throw notHere(`pi.on("${event}")`);
        const handlers = this.#handlers.get(event) ?? [];
        this.#handlers.set(event, [...handlers, handler]);
        return () => {
          this.#handlers.set(event, this.#handlersOf(event).filter((registered) => registered !== handler));
        };
      },
      registerTool: (tool: CustomTool) => void this.tools.push(tool),
      getActiveTools: () => session("getActiveTools").getActiveToolNames(),
      setActiveTools: (names: string[]) => session("setActiveTools").setActiveToolsByName(names),
      getAllTools: () => session("getAllTools").getAllTools(),
      getThinkingLevel: () => session("getThinkingLevel").thinkingLevel,
      setThinkingLevel: (level: string) => session("setThinkingLevel").setThinkingLevel(level),
      setModel: async (model: { provider: string; id: string }) => {
        await session("setModel").setModel(model);
        return true;
      },
      sendUserMessage: (...args: Parameters<AgentSession["sendUserMessage"]>) =>
        session("sendUserMessage").sendUserMessage(...args),
      appendEntry: (customType: string, data?: unknown) =>
        AgentSession.appendEntry(session("appendEntry"), customType, data),
      getSessionName: () => session("getSessionName").sessionName,
      setSessionName: (name: string) => session("setSessionName").setSessionName(name),
    };
    for (const name of UNSUPPORTED_MEMBERS) {
      api[name] = () => {
        throw notHere(`pi.${name}`);
      };
    }
    return api;
  }

  #context(signal: AbortSignal): object {
    return contextOf(this.#session!, signal);
  }

  #handlersOf(event: string): Handler[] {
    return this.#handlers.get(event) ?? [];
  }

  /** Subscribes the extensions; resolves when their `session_start` handlers are done. */
  async join(session: AgentSession, begins: Event = { type: "session_start", reason: "startup" }): Promise<void> {
    this.#session = session;
    this.#level = session.thinkingLevel;
    const hasHandler = (event: string) => this.#handlersOf(event).length > 0;
    const changes = Object.keys(REPLACED_MEMBERS).filter(hasHandler);
    if (hasHandler("turn_end") || changes.length > 0) {
      const endTurn: EndTurn = (event, signal) => this.#endTurn(event, signal);
      const change = (event: EndedTurn, signal: AbortSignal) => this.#change(event, signal);
      AgentSession.guard(session, { endTurn: hasHandler("turn_end") ? endTurn : undefined, changes, change });
    }
    if (LISTENED_EVENTS.some((event) => this.#handlersOf(event).length > 0)) session.subscribe((event) => this.#onEvent(event));
    const { agent } = session;
    if (this.#handlersOf("tool_call").length > 0) agent.beforeToolCall = (about, signal) => this.#before(about as ToolEvent, signal);
    if (this.#handlersOf("tool_result").length > 0) agent.afterToolCall = (about, signal) => this.#after(about as ToolEvent, signal);
    await this.#emit(begins);
  }

  hasHandlers(event: string): boolean {
    return this.#handlersOf(event).length > 0;
  }

  shutDown(): void {
    if (this.#over) return;
    this.#over = true;
    void this.#emit({ type: "session_shutdown", reason: "quit" });
  }

  async #emit(event: Event): Promise<void> {
    for (const handler of this.#handlersOf(event.type)) await handler(event, this.#context(this.#quiet));
  }

  #onEvent(event: Event): void {
    if (event.type === "agent_start") this.#turn = 0;
    const converted = this.#convert(event);
    if (event.type === "turn_end") {
      // The handlers of `turn_end` were called already.
      this.#turn += 1;
      return;
    }
    // An exception of a handler is reported as uncaught.
    for (const handler of this.#handlersOf(converted.type)) void (async () => handler(converted, this.#context(this.#quiet)))();
  }

  /** Converts an event for listeners of the session to one for handlers. */
  #convert(event: Event): Event {
    if (event.type === "turn_start") return { ...event, turnIndex: this.#turn, timestamp: Date.now() };
    if (event.type !== "thinking_level_changed") return event;
    const [previousLevel, level] = [this.#level, event.level as string];
    this.#level = level;
    return { type: "thinking_level_select", level, previousLevel };
  }

  /**
   * Calls the handlers of `turn_end`. Each sees the proposals of those before it. An invalid
   * proposal is reported, and the previous ones stay.
   */
  async #endTurn(turn: EndedTurn, signal: AbortSignal): Promise<{ entries: unknown[]; continue: boolean }> {
    const session = this.#session!;
    const proposals: { entries: unknown[]; continue: boolean } = { entries: [], continue: false };
    // Handlers get a copy through JSON, because only their result counts.
    const copied = (): typeof proposals => JSON.parse(JSON.stringify(proposals));
    const event = { ...turn, ...copied() };
    const context = () => turnEndContext(() => AgentSession.drafts<Preview>(session, "preview", proposals.entries));
    Object.defineProperty(event, "context", { get: context, enumerable: false });
    for (const handler of this.#handlersOf("turn_end")) {
      try {
        const answer = (await handler(event, this.#context(signal)) ?? {}) as Partial<typeof proposals>;
        if (answer.entries) {
          if (!Array.isArray(answer.entries)) throw new TypeError("turn_end: entries must be an array");
          AgentSession.drafts(session, "check", answer.entries);
          proposals.entries = answer.entries;
        }
        if (answer.continue !== undefined) proposals.continue = Boolean(answer.continue);
      } catch (error) {
        // The turn has ended, whatever the handlers do.
        queueMicrotask(() => {
          throw error;
        });
      }
      Object.assign(event, copied());
    }
    return proposals;
  }

  /** Each handler gets the event as the one before it has left it. */
  async #change(received: EndedTurn, signal: AbortSignal): Promise<object> {
    const event = { ...received };
    const messages: unknown[] = [];
    for (const handler of this.#handlersOf(received.type)) {
      try {
        const answer = await handler(event, this.#context(signal)) as Record<string, unknown> | undefined;
        // A payload is the result itself, any other value is a member of it.
        const isPayload = received.type === "before_provider_request";
        const value = isPayload ? answer : answer?.[REPLACED_MEMBERS[received.type]];
        if (value !== undefined) event[REPLACED_MEMBERS[received.type]] = value;
        if (received.type === "before_agent_start" && answer?.message) messages.push(answer.message);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
    return messages.length > 0 ? { ...event, messages } : event;
  }

  async #before({ toolCall, args }: ToolEvent, signal = this.#quiet): Promise<{ block: true; reason?: string } | undefined> {
    const event = { type: "tool_call", toolName: toolCall.name, toolCallId: toolCall.id, input: args };
    for (const handler of this.#handlersOf("tool_call")) {
      const answer = await handler(event, this.#context(signal)) as { block?: boolean; reason?: string } | undefined;
      if (answer?.block) return { block: true, reason: answer.reason };
    }
    return undefined;
  }

  async #after({ toolCall, args, result, isError }: ToolEvent, signal = this.#quiet): Promise<Outcome> {
    const outcome: Outcome = { content: result?.content, details: result?.details, isError };
    if (result?.usage !== undefined) outcome.usage = result.usage;
    for (const handler of this.#handlersOf("tool_result")) {
      const event = { type: "tool_result", toolName: toolCall.name, toolCallId: toolCall.id, input: args, ...outcome };
      const answer = (await handler(event, this.#context(signal)) ?? {}) as Outcome;
      for (const name of ["content", "details", "isError", "usage"] as const) {
        if (answer[name] !== undefined) Object.assign(outcome, { [name]: answer[name] });
      }
    }
    return outcome;
  }
}
