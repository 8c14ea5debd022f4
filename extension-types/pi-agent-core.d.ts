// `@mariozechner/pi-agent-core`: the types that extensions import from it.
import type { AnySchema, Static } from "./extension/schema.js";
import type { ImageContent, TextContent, ThinkingLevel as Thinking, Tool, Usage } from "./pi-ai.js";

export type { AgentMessage, BashExecutionMessage, BranchSummaryMessage } from "./sdk/session.js";
export type { CompactionSummaryMessage, CustomMessage } from "./sdk/session.js";
export type { JsonValue } from "./extension/json.js";
export * from "./ai/agent-loop.js";

export type ThinkingLevel = "off" | Thinking;
export type ToolExecutionMode = "sequential" | "parallel";

// deno-lint-ignore no-explicit-any
export interface AgentToolResult<TDetails = any> {
  /** Content for the model. */
  content: (TextContent | ImageContent)[];
  /** Details for the user interface and for extensions; stored in the session. */
  details: TDetails;
  /** `true`: the agent may stop. The run ends if all results of a response's calls set it. */
  terminate?: boolean;
  /** `true`: an error, as if the tool had thrown, with this content and these details. */
  isError?: boolean;
  /** The usage of models that the tool itself has called; part of the session's cost. */
  usage?: Usage;
  /** The result for programs; models do not get it. */
  structuredContent?: unknown;
}

// deno-lint-ignore no-explicit-any
export type AgentToolUpdateCallback<TDetails = any> = (partialResult: AgentToolResult<TDetails>) => void;

// deno-lint-ignore no-explicit-any
export interface AgentTool<TParameters extends AnySchema = AnySchema, TDetails = any> extends Tool<TParameters> {
  label: string;
  prepareArguments?(args: unknown): Static<TParameters>;
  executionMode?: ToolExecutionMode;
  execute(
    toolCallId: string,
    params: Static<TParameters>,
    signal?: AbortSignal,
    onUpdate?: AgentToolUpdateCallback<TDetails>,
  ): Promise<AgentToolResult<TDetails>>;
}

// Without this line every declaration would be exported.
export {};
