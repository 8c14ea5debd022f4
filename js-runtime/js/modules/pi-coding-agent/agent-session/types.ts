// What `AgentSession` takes and hears.
import type { Asked, Heard } from "pi:pi-coding-agent/agent-session/agent.ts";
import type { Inline } from "pi:pi-coding-agent/agent-session/extensions.ts";
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

export type News =
  | { kind: "event"; event: Heard }
  | { kind: "tool"; call: number; name: string; what: "prepare"; args: unknown }
  | { kind: "tool"; call: number; name: string; what: "execute"; args: ToolCall }
  | { kind: "tool"; call: number; name: string; what: "bash"; args: Command }
  | { kind: "tool"; call: number; name: string; what: "before"; args: Asked }
  | { kind: "tool"; call: number; name: string; what: "after"; args: Asked }
  | { kind: "tool"; call: number; name: string; what: "turnEnd"; args: EndedTurn }
  | { kind: "tool"; call: number; name: string; what: "change"; args: EndedTurn }
  /** A handler of `turn_end` wanted the entry. */
  | { kind: "appended"; id: string }
  | { kind: "complaint"; problem: string }
  | { kind: "abort"; call: number };

/** `turn_end` as its handlers are told of it. */
export interface EndedTurn {
  type: string;
  [member: string]: unknown;
}

/** Which entries its handlers want, and whether the model is to be asked once more. */
export type EndTurn = (event: EndedTurn, signal: AbortSignal) => Promise<{ entries: unknown[]; continue: boolean }>;

/** What extensions that a session is given as functions are asked. */
export interface Guards {
  /** What is to be stored when a turn ends. */
  endTurn?: EndTurn;
  /** Events of which they may change something, and what becomes of one. */
  changes: string[];
  change(event: EndedTurn, signal: AbortSignal): Promise<object>;
}

/** What a tool of `customTools` is called with. */
export interface ToolCall {
  callId: string;
  params: unknown;
  /** Somebody waits until it has been called. */
  tellsBegun: boolean;
}

/** Of `executeBash`, by the number of its operations. */
export interface Command {
  operations: number;
  /** Of its output. */
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
  /** Whether it is answered, or queued to be, once that is known. */
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

/** What it was begun with, or would have been. */
export interface Services {
  readonly modelRegistry: unknown;
  readonly modelRuntime: unknown;
  readonly settingsManager: unknown;
  readonly resourceLoader: unknown;
}

export interface Opening {
  /** Nothing if it is to live in memory. */
  sessionManager?: SessionManager;
  customTools: CustomTool[];
  options: object;
  services: Services;
  inline?: Inline;
  /** What the extensions that were loaded for it hear first. */
  begins?: object;
}
