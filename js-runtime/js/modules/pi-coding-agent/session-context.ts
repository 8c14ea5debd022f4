// `ctx` of what is called in a session beside another: its tools, and extensions that it is
// given as functions. There is nobody to ask in it.
import type { AgentSession } from "pi:pi-coding-agent/agent-session.ts";
import { nobody } from "pi:pi-coding-agent/nobody.ts";

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
