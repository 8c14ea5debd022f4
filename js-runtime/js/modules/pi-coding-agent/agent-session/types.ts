// Types of the arguments and events of `AgentSession`.
import type { ToolHookRequest, SessionEvent } from "pi:pi-coding-agent/agent-session/agent.ts";
import type { InlineHandlers } from "pi:pi-coding-agent/agent-session/extensions.ts";
import type { SessionManager } from "pi:pi-coding-agent/session-manager/index.ts";

export type Listener = (event: { type: string; [member: string]: unknown }) => unknown;

export interface Model {
  provider: string;
  id: string;
}

export interface ScopedModel {
  model: Model;
  thinkingLevel?: string;
}

export interface CustomTool {
  name: string;
  label?: string;
  description: string;
  parameters: unknown;
  promptSnippet?: string;
  promptGuidelines?: string[];
  executionMode?: string;
  prepareArguments?(args: unknown): unknown;
  execute(
    toolCallId: string,
    params: unknown,
    signal: AbortSignal | undefined,
    onUpdate: ((partial: unknown) => void) | undefined,
    ctx: unknown,
  ): unknown;
}

export type ProgramMessage =
  | { kind: "event"; event: SessionEvent }
  | { kind: "call"; call: number; name: string; task: "prepare"; args: unknown }
  | { kind: "call"; call: number; name: string; task: "execute"; args: ToolCall }
  | { kind: "call"; call: number; name: string; task: "bash"; args: Command }
  | { kind: "call"; call: number; name: string; task: "before"; args: ToolHookRequest }
  | { kind: "call"; call: number; name: string; task: "after"; args: ToolHookRequest }
  | { kind: "call"; call: number; name: string; task: "turnEnd"; args: EndedTurn }
  | { kind: "call"; call: number; name: string; task: "change"; args: EndedTurn }
  /** A handler of `turn_end` proposed the entry. */
  | { kind: "appended"; id: string }
  | { kind: "error"; problem: string }
  | { kind: "abort"; call: number };

/** `turn_end` as its handlers get it. */
export interface EndedTurn {
  type: string;
  [member: string]: unknown;
}

/** Returns the entries that handlers propose, and whether to send one more request. */
export type EndTurn = (event: EndedTurn, signal: AbortSignal) => Promise<{ entries: unknown[]; continue: boolean }>;

/** Hooks of extensions that a session gets as functions. */
export interface Guards {
  /** Returns the entries to store when a turn ends. */
  endTurn?: EndTurn;
  /** Events that the hooks may change, and the function that does so. */
  changes: string[];
  change(event: EndedTurn, signal: AbortSignal): Promise<object>;
}

/** The arguments of a call of a tool in `customTools`. */
export interface ToolCall {
  callId: string;
  params: unknown;
  /** Whether the program waits for `execute` to have been called. */
  reportsStart: boolean;
}

/** A command of `executeBash`, with the number of its operations. */
export interface Command {
  operations: number;
  /** The token of its output. */
  token: number;
  command: string;
  cwd: string;
}

export interface State {
  model?: Model;
  thinkingLevel: string;
  isStreaming: boolean;
  isCompacting: boolean;
  steeringMode: string;
  followUpMode: string;
  sessionFile?: string;
  sessionId: string;
  sessionName?: string;
  autoCompactionEnabled: boolean;
  pendingMessageCount: number;
}

export interface PromptOptions {
  /** Called once it is known whether the prompt is accepted (answered or queued). */
  preflightResult?(accepted: boolean): void;
  expandPromptTemplates?: boolean;
  images?: unknown[];
  streamingBehavior?: "steer" | "followUp";
}

export interface Block {
  type: string;
  text?: string;
}

export interface UserMessageOptions {
  deliverAs?: "steer" | "followUp";
  expandPromptTemplates?: boolean;
}

/** The services with which the session was created, or the defaults. */
export interface Services {
  readonly modelRegistry: unknown;
  readonly modelRuntime: unknown;
  readonly settingsManager: unknown;
  readonly resourceLoader: unknown;
}

export interface Opening {
  /** Absent if the session lives in memory. */
  sessionManager?: SessionManager;
  customTools: CustomTool[];
  options: object;
  services: Services;
  inline?: InlineHandlers;
  /** The first event of the extensions that were loaded for it. */
  begins?: object;
}
