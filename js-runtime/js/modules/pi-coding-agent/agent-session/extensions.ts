// Extensions of a child session: those loaded for it run in an isolate of their own, those passed
// as functions run here.
import type { AgentSession } from "pi:pi-coding-agent/agent-session/index.ts";
import { nobody } from "pi:pi-coding-agent/no-ui.ts";

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
export interface Inline {
  hasHandlers(event: string): boolean;
  /** Emits the end of the session to them, once. */
  leave(): void;
}

/** Functions that reach the program. */
interface Reach {
  ask<T>(question: string, args?: object): T;
  act<T = void>(action: string, args?: object): Promise<T>;
  over(): boolean;
}

/** Members of the original's runner that a creator of sessions needs. */
export interface Runner {
  hasHandlers(event: string): boolean;
  emit(event: { type: string }): Promise<void>;
  onError(listener: ErrorListener): () => void;
}

export class SessionExtensions {
  readonly runner: Runner;
  #reach: Reach;
  #inline: Inline | undefined;
  #begins: { reason?: unknown; previousSessionFile?: unknown };
  #listeners = new Set<ErrorListener>();

  constructor(reach: Reach, inline: Inline | undefined, begins: object = {}) {
    this.#reach = reach;
    this.#inline = inline;
    this.#begins = begins;
    this.runner = {
      hasHandlers: (event) => this.hasHandlers(event),
      emit: (event) => this.#emit(event),
      onError: (listener) => this.onError(listener),
    };
  }

  hasHandlers(event: string): boolean {
    if (this.#reach.over()) return false;
    return this.#inline?.hasHandlers(event) === true || this.#reach.ask("hasHandlers", { event });
  }

  onError(listener: ErrorListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Emits the start of the session to the extensions that were loaded for it. */
  async bind({ onError }: Bindings = {}): Promise<void> {
    if (onError) this.onError(onError);
    const { reason, previousSessionFile } = this.#begins;
    await this.#reach.act("greet", { reason, previousSessionFile });
  }

  async #emit({ type }: { type: string }): Promise<void> {
    if (type !== "session_shutdown") {
      throw new Error(
        `extensionRunner.emit("${type}") is not available in this version of pi: what happens in a session is told by ` +
          "pi itself. Only session_shutdown can be emitted",
      );
    }
    if (this.#reach.over()) return;
    this.#inline?.leave();
    await this.#reach.act("shutDownExtensions");
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
    ui: nobody,
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
