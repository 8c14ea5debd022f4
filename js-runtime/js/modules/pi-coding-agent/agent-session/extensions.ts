// Extensions of a child session: those loaded for it run in an isolate of their own, those passed
// as functions run here.
import type { AgentSession } from "pi:pi-coding-agent/agent-session/index.ts";
import { noUi } from "pi:pi-coding-agent/no-ui.ts";

export interface ExtensionError {
  extensionPath: string;
  event: string;
  error: string;
  stack?: string;
}

type ErrorListener = (error: ExtensionError) => void;

export interface Bindings {
  onError?: ErrorListener;
  [member: string]: unknown;
}

/** Extensions that were passed as functions. */
export interface InlineHandlers {
  hasHandlers(event: string): boolean;
  /** Emits the end of the session to them, once. */
  shutDown(): void;
}

/** Calls to the program. */
interface SessionCalls {
  query<T>(name: string, args?: object): T;
  execute<T = void>(action: string, args?: object): Promise<T>;
  isDisposed(): boolean;
}

/** Members of the original's runner that a creator of sessions needs. */
export interface Runner {
  hasHandlers(event: string): boolean;
  emit(event: { type: string }): Promise<void>;
  onError(listener: ErrorListener): () => void;
}

export class SessionExtensions {
  readonly runner: Runner;
  #calls: SessionCalls;
  #inline: InlineHandlers | undefined;
  #begins: { reason?: unknown; previousSessionFile?: unknown };
  #listeners = new Set<ErrorListener>();

  constructor(calls: SessionCalls, inline: InlineHandlers | undefined, begins: object = {}) {
    this.#calls = calls;
    this.#inline = inline;
    this.#begins = begins;
    this.runner = {
      hasHandlers: (event) => this.hasHandlers(event),
      emit: (event) => this.#emit(event),
      onError: (listener) => this.onError(listener),
    };
  }

  hasHandlers(event: string): boolean {
    if (this.#calls.isDisposed()) return false;
    return this.#inline?.hasHandlers(event) === true || this.#calls.query("hasHandlers", { event });
  }

  onError(listener: ErrorListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Emits the start of the session to the extensions that were loaded for it. */
  async bind({ onError }: Bindings = {}): Promise<void> {
    if (onError) this.onError(onError);
    const { reason, previousSessionFile } = this.#begins;
    await this.#calls.execute("greet", { reason, previousSessionFile });
  }

  async #emit({ type }: { type: string }): Promise<void> {
    if (type !== "session_shutdown") {
      throw new Error(
        `extensionRunner.emit("${type}") is not available in this version of pi: pi itself emits what happens in ` +
          "a session. Only session_shutdown can be emitted",
      );
    }
    if (this.#calls.isDisposed()) return;
    this.#inline?.shutDown();
    await this.#calls.execute("shutDownExtensions");
  }

  /**
   * Passes the error to the listeners. Without one it is thrown as an uncaught exception, because
   * the session's creator may not listen.
   */
  fail(error: ExtensionError): void {
    for (const listener of this.#listeners) listener(error);
    if (this.#listeners.size > 0) return;
    const { extensionPath, event } = error;
    queueMicrotask(() => {
      throw new Error(`In a session of createAgentSession: ${extensionPath} (${event}): ${error.error}`);
    });
  }
}

/** `ctx` of tools and inline extensions of a child session. There is no user to ask in it. */
export function contextOf(session: AgentSession, signal: AbortSignal): object {
  return {
    hasUI: false,
    ui: noUi,
    mode: "print",
    cwd: session.sessionManager.getCwd(),
    sessionManager: session.sessionManager,
    modelRegistry: session.modelRegistry,
    model: session.model,
    signal,
    isIdle: () => !session.isStreaming,
    abort: () => void session.abort(),
    shutdown: () => void session.abort(),
    compact: (options?: { customInstructions?: string }) => void session.compact(options?.customInstructions),
    hasPendingMessages: () => session.pendingMessageCount > 0,
    getContextUsage: () => session.getContextUsage(),
    getSystemPrompt: () => session.systemPrompt,
  };
}
