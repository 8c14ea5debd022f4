// `AgentSession`: a handle on a child session, which the program runs.
import { host, hostSync } from "pi:host.ts";
import type { ResourceLoader } from "pi:pi-coding-agent/resource-loader.ts";
import { exportBranch } from "pi:pi-coding-agent/session-manager/file.ts";
import { printable } from "pi:pi-coding-agent/text/plain-text.ts";
import { type Heard, SessionAgent } from "pi:pi-coding-agent/agent-session/agent.ts";
import type {
  Block,
  Command,
  CustomTool,
  Guards,
  Listener,
  Model,
  News,
  Opening,
  PromptOptions,
  ScopedModel,
  Services,
  State,
  UserMessageOptions,
} from "pi:pi-coding-agent/agent-session/types.ts";
import { type Bindings, contextOf, type ExtensionError, type Runner, SessionExtensions } from "pi:pi-coding-agent/agent-session/extensions.ts";
import { SessionChanges } from "pi:pi-coding-agent/agent-session/events.ts";
import { createView, type Since, type View } from "pi:pi-coding-agent/session-manager/view.ts";
import { SessionManager } from "pi:pi-coding-agent/session-manager/index.ts";
import { builtInDefinition, createLocalBashOperations } from "pi:pi-coding-agent/tools/factories.ts";
import { type BashOperations, exec } from "pi:pi-coding-agent/tools/execute.ts";

const OURS = Symbol();
/** Throws an exception that is reported as uncaught. */
const uncaught = (error: unknown) =>
  queueMicrotask(() => {
    throw error;
  });
const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** Questions that a disposed session still answers, with the last answers of the program. */
const KEPT = [
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

function lastAnswers(token: number, ask: (question: string) => unknown, view: View): Map<string, unknown> {
  const kept = new Map<string, unknown>();
  for (const question of KEPT) kept.set(question, ask(question));
  kept.set("state", { ...(kept.get("state") as State), isStreaming: false, isCompacting: false });
  kept.set("context", view.buildSessionContext());
  const [id, since] = [view.getSessionId(), view.getEntries().length];
  kept.set("since", hostSync("second.since", { token, id, since }));
  return kept;
}

type Entry = { type: string; [member: string]: unknown };
type Ask = <T>(question: string, args: object) => T;

const CALLS: Record<string, string> = {
  message: "appendMessage",
  thinking_level_change: "appendThinkingLevelChange",
  model_change: "appendModelChange",
  compaction: "appendCompaction",
  context_edit: "appendContextEdit",
};

/** Gives the entry's id. */
function writing(ask: Ask): (entry: Entry) => string {
  return ({ type, customType, data, content, display, details, name, targetId, label }) => {
    switch (type) {
      case "custom":
        return ask("appendEntry", { customType, data });
      case "custom_message":
        return ask("appendMessage", { message: { customType, content, display, details } });
      case "session_info":
        return ask("appendName", { name });
      case "label":
        return ask("setLabel", { entryId: targetId, label });
      default:
        throw new Error(
          `sessionManager.${CALLS[type] ?? type}() is not supported of a session that createAgentSession has begun: the ` +
            "session belongs to the agent. Use prompt(), setModel(), compact() and the like",
        );
    }
  };
}

/** Passes the output of commands to `onChunk` as well, as text for a screen. */
function overheard(by: BashOperations, onChunk: (chunk: string) => void): BashOperations {
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
  /** Attempts at the request that failed last, while it is tried again. */
  #attempt = 0;
  /** Commands that run. */
  #commands = 0;
  #commandNumber = 0;
  /** Operations by the number of the command that uses them. */
  #operations = new Map<number, BashOperations>();
  #disposed = false;
  /** The last answers, once it is disposed of. */
  #kept = new Map<string, unknown>();
  #view: View;
  #agent: SessionAgent;
  #changes: SessionChanges;
  /** Hooks of the inline extensions, if one of them handles such an event. */
  #guards: Guards | undefined;

  constructor(key: unknown, token: number, { sessionManager, customTools, services, inline, begins }: Opening) {
    if (key !== OURS) {
      throw new TypeError("new AgentSession() is not supported: use createAgentSession()");
    }
    this.#token = token;
    this.#tools = new Map(customTools.map((tool) => [tool.name, tool]));
    const view: View = createView(
      (id, since) => {
        const last = this.#kept.get("since") as Since | undefined;
        return last ? { ...last, entries: [] } : hostSync<Since>("second.since", { token, id, since });
      },
      () => this.#kept.get("context") ?? hostSync("second.context", { token }),
    );
    this.#view = view;
    const reach = {
      ask: <T>(question: string, args?: object) => this.#ask<T>(question, args),
      act: <T>(action: string, args?: object) => this.#act<T>(action, args),
      over: () => this.#disposed,
    };
    this.#agent = new SessionAgent(this, { ...reach, tools: () => this.#offered(), hooks: (set) => this.#hooks(set) });
    this.#extensions = new SessionExtensions(reach, inline, begins);
    this.#inline = inline;
    if (sessionManager) SessionManager.handOver(sessionManager).show(view, writing(reach.ask));
    this.sessionManager = sessionManager ?? (view as unknown as SessionManager);
    this.#services = services;
    this.#changes = new SessionChanges(this, (event) => this.#hear(event));
    void this.#listen();
  }

  static async open(opening: Opening): Promise<AgentSession> {
    const { sessionManager, customTools, options } = opening;
    const described = customTools.map(({ execute: _, prepareArguments, ...rest }) => ({
      ...rest,
      prepares: typeof prepareArguments === "function",
    }));
    const { token } = await host<{ token: number }>("second.open", {
      session: sessionManager && SessionManager.handOver(sessionManager).token,
      custom_tools: described,
      options,
    });
    return new AgentSession(OURS, token, opening);
  }

  /** Appends an entry of an inline extension. Other entries are announced by events. */
  static appendEntry(session: AgentSession, customType: string, data?: unknown): void {
    session.#appended(session.#ask<string>("appendEntry", { customType, data }));
  }

  static guard(session: AgentSession, guards: Guards): void {
    session.#guards = guards;
    session.#hooks({ turnEnd: guards.endTurn !== undefined, changes: guards.changes });
  }

  /** Checks entries that handlers propose (throws for an invalid one), or previews the context with them. */
  static drafts<T>(session: AgentSession, what: "check" | "preview", entries: unknown[]): T {
    return session.#ask(`${what}Drafts`, { entries });
  }

  #hooks(set: { before?: boolean; after?: boolean; turnEnd?: boolean; changes?: string[] }): void {
    hostSync("second.hooks", { token: this.#token, ...set });
  }

  #appended(id: string): void {
    this.#hear({ type: "entry_appended", entry: this.sessionManager.getEntry(id) });
  }

  /** Delivers events until the session is disposed: the program waits while they are not fetched. */
  async #listen(): Promise<void> {
    for (;;) {
      const batch = await host<News[]>("second.next", { token: this.#token });
      if (batch.length === 0) return;
      for (const news of batch) {
        if (news.kind === "event") this.#hear(news.event);
        else if (news.kind === "appended") this.#appended(news.id);
        else if (news.kind === "complaint") uncaught(new Error(news.problem));
        else if (news.kind === "abort") this.#running.get(news.call)?.abort();
        else void this.#callTool(news);
      }
    }
  }

  #hear(event: Heard): void {
    if (event.type === "extension_error") return this.#extensions.fail(event as unknown as ExtensionError);
    if (event.type === "auto_retry_start") this.#attempt = event.attempt ?? 1;
    if (event.type === "auto_retry_end") this.#attempt = 0;
    const own = (event: Heard) => SessionAgent.hear(this.#agent, event);
    for (const listener of [own, ...this.#listeners]) {
      try {
        listener(event);
      } catch (error) {
        uncaught(error);
      }
    }
  }

  async #callTool(news: News & { kind: "tool" }): Promise<void> {
    const { call, name } = news;
    const token = this.#token;
    const controller = new AbortController();
    this.#running.set(call, controller);
    const say = (answer: object) => {
      if (!this.#disposed) hostSync("second.answer", { token, call, ...answer });
    };
    try {
      if (news.what === "bash") return say({ value: await this.#runCommand(news.args, controller.signal) });
      if (news.what === "before" || news.what === "after") {
        return say({ value: await SessionAgent.ask(this.#agent, news.what, news.args, controller.signal) });
      }
      if (news.what === "turnEnd") return say({ value: await this.#guards?.endTurn?.(news.args, controller.signal) });
      if (news.what === "change") return say({ value: await this.#guards?.change(news.args, controller.signal) });
      const tool = this.#tools.get(name) as CustomTool;
      if (news.what === "prepare") return say({ value: await tool.prepareArguments?.(news.args) });
      const { callId, params, tellsBegun } = news.args;
      const onUpdate = (value: unknown) => {
        if (!this.#disposed) hostSync("second.update", { token, call, value });
      };
      const executing = tool.execute(callId, params, controller.signal, onUpdate, contextOf(this, controller.signal));
      if (tellsBegun && !this.#disposed) hostSync("second.begun", { token, call });
      say({ value: await executing });
    } catch (error) {
      say({ error: textOf(error) });
    } finally {
      this.#running.delete(call);
    }
  }

  #runCommand({ operations, token, command, cwd }: Command, signal: AbortSignal): Promise<unknown> {
    const by = this.#operations.get(operations);
    if (!by) throw new Error("The command was given up");
    return exec(by, [command, cwd], signal, (data) => host("user_bash.data", { token, data }));
  }

  #ask<T>(action: string, args: object = {}): T {
    if (this.#kept.has(action)) return structuredClone(this.#kept.get(action)) as T;
    return hostSync<T>("second.ask", { token: this.#token, action, args });
  }

  /** Starts an action. All of it that needs no waiting is done when this returns. */
  async #act<T = void>(action: string, args: object = {}): Promise<T> {
    if (!this.#disposed) SessionAgent.tell(this.#agent);
    const call = hostSync<number>("second.begin", { token: this.#token, action, args });
    return await host<T>("second.act", { token: this.#token, call });
  }

  get #state(): State {
    return this.#ask<State>("state");
  }

  /** Returns what ends the subscription. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Ends the session; what it stored stays. */
  dispose(): void {
    if (this.#disposed) return;
    this.#inline?.leave();
    this.#disposed = true;
    this.#listeners.clear();
    for (const controller of this.#running.values()) controller.abort();
    try {
      this.#kept = lastAnswers(this.#token, (question) => this.#ask(question), this.#view);
    } finally {
      hostSync("second.close", { token: this.#token });
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
    return this.#ask<{ autoRetry: boolean }>("atWork").autoRetry;
  }

  get messages(): unknown[] {
    return this.#agent.state.messages;
  }

  get systemPrompt(): string {
    return this.#ask("systemPrompt");
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
    return this.#ask("scopedModels");
  }

  /** Sets the models that `cycleModel` goes through; with none it uses all available ones. */
  setScopedModels(models: ScopedModel[]): void {
    this.#ask("setScopedModels", { models });
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
    return this.#ask("activeTools");
  }

  setActiveToolsByName(names: string[]): void {
    this.#ask("setActiveTools", { names });
  }

  getAllTools(): unknown[] {
    return this.#ask("allTools");
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

  /** Resolves when the agent is done; one that is queued at once. */
  async prompt(text: string, options: PromptOptions = {}): Promise<void> {
    const { expandPromptTemplates: expand, images, streamingBehavior, preflightResult } = options;
    const done = this.#act("prompt", { text, expand, images, streamingBehavior });
    if (!preflightResult) return await done;
    let told = false;
    const tell = (accepted: boolean) => {
      if (!told) preflightResult(accepted);
      told = true;
    };
    const end = this.subscribe(({ type }) => type === "agent_start" && tell(true));
    try {
      await done;
      tell(true);
    } catch (error) {
      tell(false);
      throw error;
    } finally {
      end();
    }
  }

  steer(text: string, images?: unknown[]): Promise<void> {
    return this.#act("queue", { delivery: "steer", text, images });
  }

  followUp(text: string, images?: unknown[]): Promise<void> {
    return this.#act("queue", { delivery: "followUp", text, images });
  }

  /** Resolves when the agent is done if the message starts a run. */
  sendCustomMessage(message: unknown, options?: { triggerTurn?: boolean }): Promise<void> {
    return this.#act("sendMessage", { message, options });
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
    const waiting = this.#ask<{ steering: string[]; followUp: string[] }>("queues");
    void this.#act("clearQueue");
    return waiting;
  }

  getSteeringMessages(): string[] {
    return this.#ask<{ steering: string[] }>("queues").steering;
  }

  getFollowUpMessages(): string[] {
    return this.#ask<{ followUp: string[] }>("queues").followUp;
  }

  /** Waits until the active run has ended, and all runs that it started. */
  waitForIdle(): Promise<void> {
    return this.#agent.waitForIdle();
  }

  abort(): Promise<void> {
    return this.#act("abort");
  }

  async setModel(model: Model): Promise<void> {
    await this.#changes.around(() => this.#act("setModel", { model }));
  }

  async cycleModel(direction: "forward" | "backward" = "forward"): Promise<unknown> {
    return await this.#changes.around(() => this.#act("cycleModel", { direction })) ?? undefined;
  }

  setThinkingLevel(level: string): void {
    this.#changes.around(() => this.#ask("setThinkingLevel", { level }));
  }

  cycleThinkingLevel(): string | undefined {
    return this.#changes.around(() => this.#ask<string | undefined>("cycleThinkingLevel")) ?? undefined;
  }

  getAvailableThinkingLevels(): string[] {
    return this.#ask<string[] | undefined>("thinkingLevels") ?? ["off"];
  }

  supportsThinking(): boolean {
    return this.getAvailableThinkingLevels().length > 1;
  }

  supportsXhighThinking(): boolean {
    return this.getAvailableThinkingLevels().includes("xhigh");
  }

  setSteeringMode(mode: string): void {
    this.#ask("setQueueMode", { delivery: "steer", mode });
  }

  setFollowUpMode(mode: string): void {
    this.#ask("setQueueMode", { delivery: "followUp", mode });
  }

  compact(customInstructions?: string): Promise<unknown> {
    return this.#act("compact", { customInstructions });
  }

  abortCompaction(): void {
    this.#ask("abortSummary");
  }

  abortBranchSummary(): void {
    this.#ask("abortSummary");
  }

  setAutoCompactionEnabled(enabled: boolean): void {
    this.#ask("setAutoCompaction", { enabled });
  }

  setAutoRetryEnabled(enabled: boolean): void {
    this.#ask("setAutoRetry", { enabled });
  }

  abortRetry(): void {
    this.#ask("abortRetry");
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
    if (by) this.#operations.set(number, onChunk ? overheard(by, onChunk) : by);
    this.#commands++;
    try {
      return await this.#act("bash", { command, excludeFromContext, operations: by && number });
    } finally {
      this.#commands--;
      this.#operations.delete(number);
    }
  }

  /** Appends a command to the conversation that other code has run. */
  recordBashResult(command: string, result: object, options: { excludeFromContext?: boolean } = {}): void {
    this.#ask("recordBash", { command, result, excludeFromContext: options.excludeFromContext });
  }

  get isBashRunning(): boolean {
    return this.#commands > 0;
  }

  get hasPendingBashMessages(): boolean {
    return this.#ask<{ pendingBash: boolean }>("atWork").pendingBash;
  }

  abortBash(): void {
    this.#ask("abortBash");
  }

  setSessionName(name: string): void {
    this.#ask("setName", { name });
    this.#changes.name();
  }

  navigateTree(targetId: string, options?: object): Promise<unknown> {
    return this.#act("navigateTree", { targetId, options });
  }

  getUserMessagesForForking(): { entryId: string; text: string }[] {
    return this.#ask("forkMessages");
  }

  getSessionStats(): unknown {
    return this.#ask("stats");
  }

  getContextUsage(): unknown {
    return this.#ask("contextUsage");
  }

  exportToHtml(path?: string): Promise<string> {
    return this.#act("exportHtml", { path });
  }

  /** The branch that is open, as a session of its own. Returns where it was written. */
  exportToJsonl(outputPath?: string): string {
    return exportBranch(this.sessionManager, outputPath);
  }

  getLastAssistantText(): string | undefined {
    return this.#ask<string | undefined>("lastAssistantText") ?? undefined;
  }

  reload(): Promise<void> {
    return this.#act("reload");
  }

  fork(entryId: string): Promise<{ cancelled: boolean; text?: string }> {
    return this.#act("fork", { entryId });
  }

  newSession(options: { parentSession?: string } = {}): Promise<{ cancelled: boolean }> {
    return this.#act("newSession", options);
  }

  switchSession(path: string): Promise<{ cancelled: boolean }> {
    return this.#act("switchSession", { path });
  }
}
