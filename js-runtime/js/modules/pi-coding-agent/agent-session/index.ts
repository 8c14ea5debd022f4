// `AgentSession`: a handle on a child session, which the program runs.
import { host, hostSync } from "pi:host.ts";
import type { ResourceLoader } from "pi:pi-coding-agent/resource-loader.ts";
import { exportBranch } from "pi:pi-coding-agent/session-manager/file.ts";
import { printable } from "pi:pi-coding-agent/text/plain-text.ts";
import { type SessionEvent, SessionAgent } from "pi:pi-coding-agent/agent-session/agent.ts";
import type {
  Block,
  Command,
  CustomTool,
  Guards,
  Listener,
  Model,
  ProgramMessage,
  Opening,
  PromptOptions,
  ScopedModel,
  Services,
  State,
  UserMessageOptions,
} from "pi:pi-coding-agent/agent-session/types.ts";
import { type Bindings, contextOf, type ExtensionError, type Runner, SessionExtensions } from "pi:pi-coding-agent/agent-session/extensions.ts";
import { SetterEvents } from "pi:pi-coding-agent/agent-session/events.ts";
import { createView, type NewEntries, type View } from "pi:pi-coding-agent/session-manager/view.ts";
import { SessionManager } from "pi:pi-coding-agent/session-manager/index.ts";
import { builtInDefinition, createLocalBashOperations } from "pi:pi-coding-agent/tools/factories.ts";
import { type BashOperations, exec } from "pi:pi-coding-agent/tools/execute.ts";

const INTERNAL = Symbol();
/** Throws an exception that is reported as uncaught. */
const uncaught = (error: unknown) =>
  queueMicrotask(() => {
    throw error;
  });
const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** Queries that a disposed session still answers, with the last results of the program. */
const FINAL_QUERIES = [
  "state",
  "messages",
  "systemPrompt",
  "scopedModels",
  "activeTools",
  "allTools",
  "queues",
  "thinkingLevels",
  "forkMessages",
  "stats",
  "contextUsage",
  "lastAssistantText",
  "atWork",
];

function finalResults(token: number, query: (name: string) => unknown, view: View): Map<string, unknown> {
  const results = new Map<string, unknown>();
  for (const name of FINAL_QUERIES) results.set(name, query(name));
  results.set("state", { ...(results.get("state") as State), isStreaming: false, isCompacting: false });
  results.set("context", view.buildSessionContext());
  const [id, since] = [view.getSessionId(), view.getEntries().length];
  results.set("since", hostSync("child.entriesSince", { token, id, since }));
  return results;
}

type Entry = { type: string; [member: string]: unknown };
type Query = <T>(name: string, args: object) => T;

const APPEND_METHODS: Record<string, string> = {
  message: "appendMessage",
  thinking_level_change: "appendThinkingLevelChange",
  model_change: "appendModelChange",
  compaction: "appendCompaction",
  context_edit: "appendContextEdit",
};

/** Returns the entry's id. */
function entryWriter(query: Query): (entry: Entry) => string {
  return ({ type, customType, data, content, display, details, name, targetId, label }) => {
    switch (type) {
      case "custom":
        return query("appendEntry", { customType, data });
      case "custom_message":
        return query("appendMessage", { message: { customType, content, display, details } });
      case "session_info":
        return query("appendName", { name });
      case "label":
        return query("setLabel", { entryId: targetId, label });
      default:
        throw new Error(
          `sessionManager.${APPEND_METHODS[type] ?? type}() is not supported of a session that createAgentSession has begun: the ` +
            "session belongs to the agent. Use prompt(), setModel(), compact() and the like",
        );
    }
  };
}

/** Passes the output of commands to `onChunk` as well, as text for a screen. */
function withOutputListener(by: BashOperations, onChunk: (chunk: string) => void): BashOperations {
  return {
    exec(command, cwd, options) {
      const decoder = new TextDecoder();
      const onData = (data: unknown) => {
        options.onData(data);
        const text = printable(decoder.decode(data as Uint8Array, { stream: true })).replaceAll("\r", "");
        if (text) onChunk(text);
      };
      return by.exec(command, cwd, { ...options, onData });
    },
  };
}

export class AgentSession {
  readonly sessionManager: SessionManager;
  #services: Services;
  #extensions: SessionExtensions;
  #inline: Opening["inline"];
  #token: number;
  #tools: Map<string, CustomTool>;
  #listeners = new Set<Listener>();
  #running = new Map<number, AbortController>();
  /** The number of the current retry; 0 if no request is repeated. */
  #attempt = 0;
  /** The number of running commands. */
  #commands = 0;
  #commandNumber = 0;
  /** Operations by the number of the command that uses them. */
  #operations = new Map<number, BashOperations>();
  #disposed = false;
  /** The last results, once the session is disposed. */
  #finalResults = new Map<string, unknown>();
  #view: View;
  #agent: SessionAgent;
  #changes: SetterEvents;
  /** Hooks of the inline extensions, if one of them handles such an event. */
  #guards: Guards | undefined;

  constructor(key: unknown, token: number, { sessionManager, customTools, services, inline, begins }: Opening) {
    if (key !== INTERNAL) {
      throw new TypeError("new AgentSession() is not supported: use createAgentSession()");
    }
    this.#token = token;
    this.#tools = new Map(customTools.map((tool) => [tool.name, tool]));
    const view: View = createView(
      (id, since) => {
        const last = this.#finalResults.get("since") as NewEntries | undefined;
        return last ? { ...last, entries: [] } : hostSync<NewEntries>("child.entriesSince", { token, id, since });
      },
      () => this.#finalResults.get("context") ?? hostSync("child.context", { token }),
    );
    this.#view = view;
    const calls = {
      query: <T>(name: string, args?: object) => this.#query<T>(name, args),
      execute: <T>(action: string, args?: object) => this.#execute<T>(action, args),
      isDisposed: () => this.#disposed,
    };
    this.#agent = new SessionAgent(this, { ...calls, tools: () => this.#offered(), hooks: (set) => this.#hooks(set) });
    this.#extensions = new SessionExtensions(calls, inline, begins);
    this.#inline = inline;
    if (sessionManager) SessionManager.handOver(sessionManager).show(view, entryWriter(calls.query));
    this.sessionManager = sessionManager ?? (view as unknown as SessionManager);
    this.#services = services;
    this.#changes = new SetterEvents(this, (event) => this.#onEvent(event));
    void this.#listen();
  }

  static async open(opening: Opening): Promise<AgentSession> {
    const { sessionManager, customTools, options } = opening;
    const described = customTools.map(({ execute: _, prepareArguments, ...rest }) => ({
      ...rest,
      prepares: typeof prepareArguments === "function",
    }));
    const { token } = await host<{ token: number }>("child.open", {
      session: sessionManager && SessionManager.handOver(sessionManager).token,
      custom_tools: described,
      options,
    });
    return new AgentSession(INTERNAL, token, opening);
  }

  /** Appends an entry of an inline extension. Other entries are announced by events. */
  static appendEntry(session: AgentSession, customType: string, data?: unknown): void {
    session.#appended(session.#query<string>("appendEntry", { customType, data }));
  }

  static guard(session: AgentSession, guards: Guards): void {
    session.#guards = guards;
    session.#hooks({ turnEnd: guards.endTurn !== undefined, changes: guards.changes });
  }

  /** Checks entries that handlers propose (throws for an invalid one), or previews the context with them. */
  static drafts<T>(session: AgentSession, what: "check" | "preview", entries: unknown[]): T {
    return session.#query(`${what}Drafts`, { entries });
  }

  #hooks(set: { before?: boolean; after?: boolean; turnEnd?: boolean; changes?: string[] }): void {
    hostSync("child.setHooks", { token: this.#token, ...set });
  }

  #appended(id: string): void {
    this.#onEvent({ type: "entry_appended", entry: this.sessionManager.getEntry(id) });
  }

  /** Delivers events until the session is disposed: the program waits while they are not fetched. */
  async #listen(): Promise<void> {
    for (;;) {
      const batch = await host<ProgramMessage[]>("child.nextEvents", { token: this.#token });
      if (batch.length === 0) return;
      for (const message of batch) {
        if (message.kind === "event") this.#onEvent(message.event);
        else if (message.kind === "appended") this.#appended(message.id);
        else if (message.kind === "error") uncaught(new Error(message.problem));
        else if (message.kind === "abort") this.#running.get(message.call)?.abort();
        else void this.#handleCall(message);
      }
    }
  }

  #onEvent(event: SessionEvent): void {
    if (event.type === "extension_error") return this.#extensions.fail(event as unknown as ExtensionError);
    if (event.type === "auto_retry_start") this.#attempt = event.attempt ?? 1;
    if (event.type === "auto_retry_end") this.#attempt = 0;
    const own = (event: SessionEvent) => SessionAgent.onEvent(this.#agent, event);
    for (const listener of [own, ...this.#listeners]) {
      try {
        listener(event);
      } catch (error) {
        uncaught(error);
      }
    }
  }

  async #handleCall(message: ProgramMessage & { kind: "call" }): Promise<void> {
    const { call, name } = message;
    const token = this.#token;
    const controller = new AbortController();
    this.#running.set(call, controller);
    const respond = (response: object) => {
      if (!this.#disposed) hostSync("child.respond", { token, call, ...response });
    };
    try {
      if (message.task === "bash") return respond({ value: await this.#runCommand(message.args, controller.signal) });
      if (message.task === "before" || message.task === "after") {
        return respond({ value: await SessionAgent.callHook(this.#agent, message.task, message.args, controller.signal) });
      }
      if (message.task === "turnEnd") return respond({ value: await this.#guards?.endTurn?.(message.args, controller.signal) });
      if (message.task === "change") return respond({ value: await this.#guards?.change(message.args, controller.signal) });
      const tool = this.#tools.get(name) as CustomTool;
      if (message.task === "prepare") return respond({ value: await tool.prepareArguments?.(message.args) });
      const { callId, params, reportsStart } = message.args;
      const onUpdate = (value: unknown) => {
        if (!this.#disposed) hostSync("child.toolUpdate", { token, call, value });
      };
      const executing = tool.execute(callId, params, controller.signal, onUpdate, contextOf(this, controller.signal));
      if (reportsStart && !this.#disposed) hostSync("child.toolStarted", { token, call });
      respond({ value: await executing });
    } catch (error) {
      respond({ error: textOf(error) });
    } finally {
      this.#running.delete(call);
    }
  }

  #runCommand({ operations, token, command, cwd }: Command, signal: AbortSignal): Promise<unknown> {
    const by = this.#operations.get(operations);
    if (!by) throw new Error("The command was aborted");
    return exec(by, [command, cwd], signal, (data) => host("user_bash.data", { token, data }));
  }

  #query<T>(action: string, args: object = {}): T {
    if (this.#finalResults.has(action)) return structuredClone(this.#finalResults.get(action)) as T;
    return hostSync<T>("child.query", { token: this.#token, action, args });
  }

  /** Starts an action. All of it that needs no waiting is done when this returns. */
  async #execute<T = void>(action: string, args: object = {}): Promise<T> {
    if (!this.#disposed) SessionAgent.sendMessages(this.#agent);
    const call = hostSync<number>("child.startAction", { token: this.#token, action, args });
    return await host<T>("child.awaitAction", { token: this.#token, call });
  }

  get #state(): State {
    return this.#query<State>("state");
  }

  /** Returns a function that unsubscribes the listener. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Ends the session; stored entries stay. */
  dispose(): void {
    if (this.#disposed) return;
    this.#inline?.shutDown();
    this.#disposed = true;
    this.#listeners.clear();
    for (const controller of this.#running.values()) controller.abort();
    try {
      this.#finalResults = finalResults(this.#token, (name) => this.#query(name), this.#view);
    } finally {
      hostSync("child.close", { token: this.#token });
    }
  }

  get modelRegistry(): unknown {
    return this.#services.modelRegistry;
  }

  get modelRuntime(): unknown {
    return this.#services.modelRuntime;
  }

  get settingsManager(): unknown {
    return this.#services.settingsManager;
  }

  get resourceLoader(): unknown {
    return this.#services.resourceLoader;
  }

  get agent(): SessionAgent {
    return this.#agent;
  }

  get state(): SessionAgent["state"] {
    return this.#agent.state;
  }

  get model(): Model | undefined {
    return this.#state.model;
  }

  get thinkingLevel(): string {
    return this.#state.thinkingLevel;
  }

  get isStreaming(): boolean {
    return this.#state.isStreaming;
  }

  get isCompacting(): boolean {
    return this.#state.isCompacting;
  }

  get isIdle(): boolean {
    return !this.isStreaming && !this.isCompacting;
  }

  get isRetrying(): boolean {
    return this.#attempt > 0;
  }

  get retryAttempt(): number {
    return this.#attempt;
  }

  get autoRetryEnabled(): boolean {
    return this.#query<{ autoRetry: boolean }>("atWork").autoRetry;
  }

  get messages(): unknown[] {
    return this.#agent.state.messages;
  }

  get systemPrompt(): string {
    return this.#query("systemPrompt");
  }

  get steeringMode(): string {
    return this.#state.steeringMode;
  }

  get followUpMode(): string {
    return this.#state.followUpMode;
  }

  get sessionFile(): string | undefined {
    return this.#state.sessionFile;
  }

  get sessionId(): string {
    return this.#state.sessionId;
  }

  get sessionName(): string | undefined {
    return this.#state.sessionName;
  }

  get autoCompactionEnabled(): boolean {
    return this.#state.autoCompactionEnabled;
  }

  get pendingMessageCount(): number {
    return this.#state.pendingMessageCount;
  }

  get scopedModels(): unknown[] {
    return this.#query("scopedModels");
  }

  /** Sets the models that `cycleModel` goes through; with none it uses all available ones. */
  setScopedModels(models: ScopedModel[]): void {
    this.#query("setScopedModels", { models });
  }

  /** The templates of the resource loader with which the session was created. */
  get promptTemplates(): unknown[] {
    const loader = this.resourceLoader as ResourceLoader | undefined;
    return loader?.getPrompts?.().prompts ?? [];
  }

  get extensionRunner(): Runner {
    return this.#extensions.runner;
  }

  hasExtensionHandlers(event: string): boolean {
    return this.#extensions.hasHandlers(event);
  }

  bindExtensions(bindings?: Bindings): Promise<void> {
    return this.#extensions.bind(bindings);
  }

  getActiveToolNames(): string[] {
    return this.#query("activeTools");
  }

  setActiveToolsByName(names: string[]): void {
    this.#query("setActiveTools", { names });
  }

  getAllTools(): unknown[] {
    return this.#query("allTools");
  }

  getToolDefinition(name: string): CustomTool | undefined {
    return this.#tools.get(name) ?? builtInDefinition(name, this.sessionManager.getCwd());
  }

  /** The tools that the model is offered, in a form that other code can run. */
  #offered(): unknown[] {
    const active = new Set(this.getActiveToolNames());
    const known = this.getAllTools() as { name: string }[];
    return known.filter(({ name }) => active.has(name)).map((described) => {
      const tool = this.getToolDefinition(described.name);
      const execute: CustomTool["execute"] = (id, params, signal, onUpdate) => {
        if (tool) return tool.execute(id, params, signal, onUpdate, contextOf(this, signal as AbortSignal));
        throw new Error(`${described.name} is a tool of an extension of the session, which runs elsewhere`);
      };
      return { ...described, label: tool?.label ?? described.name, execute };
    });
  }

  /** Resolves when the agent is done; at once for a prompt that is queued. */
  async prompt(text: string, options: PromptOptions = {}): Promise<void> {
    const { expandPromptTemplates: expand, images, streamingBehavior, preflightResult } = options;
    const done = this.#execute("prompt", { text, expand, images, streamingBehavior });
    if (!preflightResult) return await done;
    let isReported = false;
    const reportOnce = (accepted: boolean) => {
      if (!isReported) preflightResult(accepted);
      isReported = true;
    };
    const end = this.subscribe(({ type }) => type === "agent_start" && reportOnce(true));
    try {
      await done;
      reportOnce(true);
    } catch (error) {
      reportOnce(false);
      throw error;
    } finally {
      end();
    }
  }

  steer(text: string, images?: unknown[]): Promise<void> {
    return this.#execute("queue", { delivery: "steer", text, images });
  }

  followUp(text: string, images?: unknown[]): Promise<void> {
    return this.#execute("queue", { delivery: "followUp", text, images });
  }

  /** Resolves when the agent is done if the message starts a run. */
  sendCustomMessage(message: unknown, options?: { triggerTurn?: boolean }): Promise<void> {
    return this.#execute("sendMessage", { message, options });
  }

  /** Like `prompt`, with content instead of text. */
  sendUserMessage(content: string | Block[], options: UserMessageOptions = {}): Promise<void> {
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const texts = blocks.filter((block) => block.type === "text").map((block) => block.text);
    return this.prompt(texts.join("\n"), {
      expandPromptTemplates: options?.expandPromptTemplates ?? false,
      images: blocks.filter((block) => block.type === "image"),
      streamingBehavior: options?.deliverAs,
    });
  }

  /** Returns the removed messages. */
  clearQueue(): { steering: string[]; followUp: string[] } {
    const waiting = this.#query<{ steering: string[]; followUp: string[] }>("queues");
    void this.#execute("clearQueue");
    return waiting;
  }

  getSteeringMessages(): string[] {
    return this.#query<{ steering: string[] }>("queues").steering;
  }

  getFollowUpMessages(): string[] {
    return this.#query<{ followUp: string[] }>("queues").followUp;
  }

  /** Waits until the active run has ended, and all runs that it started. */
  waitForIdle(): Promise<void> {
    return this.#agent.waitForIdle();
  }

  abort(): Promise<void> {
    return this.#execute("abort");
  }

  async setModel(model: Model): Promise<void> {
    await this.#changes.emitLevelChange(() => this.#execute("setModel", { model }));
  }

  async cycleModel(direction: "forward" | "backward" = "forward"): Promise<unknown> {
    return await this.#changes.emitLevelChange(() => this.#execute("cycleModel", { direction })) ?? undefined;
  }

  setThinkingLevel(level: string): void {
    this.#changes.emitLevelChange(() => this.#query("setThinkingLevel", { level }));
  }

  cycleThinkingLevel(): string | undefined {
    return this.#changes.emitLevelChange(() => this.#query<string | undefined>("cycleThinkingLevel")) ?? undefined;
  }

  getAvailableThinkingLevels(): string[] {
    return this.#query<string[] | undefined>("thinkingLevels") ?? ["off"];
  }

  supportsThinking(): boolean {
    return this.getAvailableThinkingLevels().length > 1;
  }

  supportsXhighThinking(): boolean {
    return this.getAvailableThinkingLevels().includes("xhigh");
  }

  setSteeringMode(mode: string): void {
    this.#query("setQueueMode", { delivery: "steer", mode });
  }

  setFollowUpMode(mode: string): void {
    this.#query("setQueueMode", { delivery: "followUp", mode });
  }

  compact(customInstructions?: string): Promise<unknown> {
    return this.#execute("compact", { customInstructions });
  }

  abortCompaction(): void {
    this.#query("abortSummary");
  }

  abortBranchSummary(): void {
    this.#query("abortSummary");
  }

  setAutoCompactionEnabled(enabled: boolean): void {
    this.#query("setAutoCompaction", { enabled });
  }

  setAutoRetryEnabled(enabled: boolean): void {
    this.#query("setAutoRetry", { enabled });
  }

  abortRetry(): void {
    this.#query("abortRetry");
  }

  /** `onChunk` gets the output of the command as it arrives, from `operations` if given. */
  async executeBash(
    command: string,
    onChunk?: (chunk: string) => void,
    options: { excludeFromContext?: boolean; operations?: BashOperations } = {},
  ): Promise<unknown> {
    const { excludeFromContext } = options;
    const by = options.operations ?? (onChunk && createLocalBashOperations());
    const number = this.#commandNumber += 1;
    if (by) this.#operations.set(number, onChunk ? withOutputListener(by, onChunk) : by);
    this.#commands++;
    try {
      return await this.#execute("bash", { command, excludeFromContext, operations: by && number });
    } finally {
      this.#commands--;
      this.#operations.delete(number);
    }
  }

  /** Appends a command to the conversation that other code has run. */
  recordBashResult(command: string, result: object, options: { excludeFromContext?: boolean } = {}): void {
    this.#query("recordBash", { command, result, excludeFromContext: options.excludeFromContext });
  }

  get isBashRunning(): boolean {
    return this.#commands > 0;
  }

  get hasPendingBashMessages(): boolean {
    return this.#query<{ pendingBash: boolean }>("atWork").pendingBash;
  }

  abortBash(): void {
    this.#query("abortBash");
  }

  setSessionName(name: string): void {
    this.#query("setName", { name });
    this.#changes.emitName();
  }

  navigateTree(targetId: string, options?: object): Promise<unknown> {
    return this.#execute("navigateTree", { targetId, options });
  }

  getUserMessagesForForking(): { entryId: string; text: string }[] {
    return this.#query("forkMessages");
  }

  getSessionStats(): unknown {
    return this.#query("stats");
  }

  getContextUsage(): unknown {
    return this.#query("contextUsage");
  }

  exportToHtml(path?: string): Promise<string> {
    return this.#execute("exportHtml", { path });
  }

  /** Writes the current branch as a session of its own. Returns the path. */
  exportToJsonl(outputPath?: string): string {
    return exportBranch(this.sessionManager, outputPath);
  }

  getLastAssistantText(): string | undefined {
    return this.#query<string | undefined>("lastAssistantText") ?? undefined;
  }

  reload(): Promise<void> {
    return this.#execute("reload");
  }

  fork(entryId: string): Promise<{ cancelled: boolean; text?: string }> {
    return this.#execute("fork", { entryId });
  }

  newSession(options: { parentSession?: string } = {}): Promise<{ cancelled: boolean }> {
    return this.#execute("newSession", options);
  }

  switchSession(path: string): Promise<{ cancelled: boolean }> {
    return this.#execute("switchSession", { path });
  }
}
