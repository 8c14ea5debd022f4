// Controls another pi, a child process in RPC mode (docs/rpc.md).
import type { ImageContent } from "../pi-ai.js";
import type { ThinkingLevel } from "../pi-agent-core.js";
import type { BashResult, SessionStats } from "./agent-session.js";
import type { CompactionResult } from "../extension/events.js";
import type { AgentMessage } from "./session.js";
import type { Cancelled, Command, CycledModel, ForkedText, ForkMessage, Level, Model } from "../rpc.js";
import type { Path, QueueMode, RpcEvent, SessionState } from "../rpc.js";

export type ModelInfo = Pick<Model, "provider" | "id" | "contextWindow" | "reasoning">;
export interface RpcClientOptions {
  /** Ignored: the client always starts this pi. */
  cliPath?: string;
  cwd?: string;
  /** Variables that override the environment of this process. */
  env?: Record<string, string>;
  provider?: string;
  model?: string;
  args?: string[];
}
// deno-lint-ignore no-explicit-any
export type RpcEventListener = (event: any) => void;

/**
 * Starts a pi in RPC mode; its methods are the commands of the protocol. They reject with the error
 * of the other pi, when it has exited, and before `start`.
 */
export class RpcClient {
  constructor(options?: RpcClientOptions);
  /** Resolves when the process is ready. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Returns a function that unsubscribes the listener. */
  onEvent(listener: RpcEventListener): () => void;
  getStderr(): string;
  /** Resolves when the message was accepted, not when it is answered. */
  prompt(message: string, images?: ImageContent[]): Promise<void>;
  steer(message: string, images?: ImageContent[]): Promise<void>;
  followUp(message: string, images?: ImageContent[]): Promise<void>;
  abort(): Promise<void>;
  newSession(parentSession?: string): Promise<Cancelled>;
  getState(): Promise<SessionState>;
  setModel(provider: string, modelId: string): Promise<Model>;
  /** `null` if there is no other model. */
  cycleModel(): Promise<CycledModel | null>;
  getAvailableModels(): Promise<Model[]>;
  setThinkingLevel(level: ThinkingLevel): Promise<void>;
  /** `null` if the model has no thinking levels. */
  cycleThinkingLevel(): Promise<Level | null>;
  setSteeringMode(mode: QueueMode): Promise<void>;
  setFollowUpMode(mode: QueueMode): Promise<void>;
  compact(customInstructions?: string): Promise<CompactionResult>;
  setAutoCompaction(enabled: boolean): Promise<void>;
  setAutoRetry(enabled: boolean): Promise<void>;
  abortRetry(): Promise<void>;
  bash(command: string): Promise<BashResult>;
  abortBash(): Promise<void>;
  getSessionStats(): Promise<SessionStats>;
  exportHtml(outputPath?: string): Promise<Path>;
  switchSession(sessionPath: string): Promise<Cancelled>;
  fork(entryId: string): Promise<ForkedText>;
  getForkMessages(): Promise<ForkMessage[]>;
  getLastAssistantText(): Promise<string | null>;
  setSessionName(name: string): Promise<void>;
  getMessages(): Promise<AgentMessage[]>;
  getCommands(): Promise<Command[]>;
  /** The methods below wait for the next `agent_end` and reject after `timeout` milliseconds (60000). */
  waitForIdle(timeout?: number): Promise<void>;
  /** Resolves to the events until the agent is done. */
  collectEvents(timeout?: number): Promise<RpcEvent[]>;
  promptAndWait(message: string, images?: ImageContent[], timeout?: number): Promise<RpcEvent[]>;
}

// Without this line every declaration would be exported.
export {};
