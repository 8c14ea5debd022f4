// `@mariozechner/pi-ai`: additional options of `stream` and `complete`, by API. The simple
// functions ignore these, and each API ignores those of the others. An invalid value, or one that
// cannot be supported (Anthropic's `client`), is an error that names it.
import type { ThinkingBudgets } from "./apis.js";
import type { StreamOptions, ThinkingLevel } from "../pi-ai.js";

type Effort = Exclude<ThinkingLevel, "max">;
interface ByName {
  type: "function";
  function: { name: string };
}
interface WithChoice<TChoice> extends StreamOptions {
  toolChoice?: TChoice;
}
interface WithEffort<TEffort = Effort> extends StreamOptions {
  reasoningEffort?: TEffort;
}
type AnyOrOne = "auto" | "any" | "none" | { type: "tool"; name: string };

export interface AnthropicOptions extends WithChoice<AnyOrOne> {
  thinkingEnabled?: boolean;
  /** For models with a thinking budget: 1024 by default. */
  thinkingBudgetTokens?: number;
  /** For models that decide themselves how long they think. */
  effort?: AnthropicEffort;
  /** Whether thoughts come as a summary, which is the default, or without their text. */
  thinkingDisplay?: AnthropicThinkingDisplay;
  /** Thoughts between calls of tools, for models that do not decide it themselves: `true` by default. */
  interleavedThinking?: boolean;
}
export interface BedrockOptions extends WithChoice<AnyOrOne> {
  reasoning?: ThinkingLevel;
  thinkingBudgets?: ThinkingBudgets;
  /** For Claude, as are the next one and `thinkingBudgets`. */
  thinkingDisplay?: BedrockThinkingDisplay;
  interleavedThinking?: boolean;
  /** Overrides `AWS_REGION`, and the region of the profile. */
  region?: string;
  /** A profile in AWS's files; overrides `AWS_PROFILE`, and the keys of the environment. */
  profile?: string;
  /** Replaces the signature; overrides `AWS_BEARER_TOKEN_BEDROCK`. */
  bearerToken?: string;
  /** Labels for the bill. */
  requestMetadata?: Record<string, string>;
}
export interface GoogleOptions extends WithChoice<"auto" | "none" | "any"> {
  /** By default the API decides. `level` is for Gemini 3 and overrides `budgetTokens`. */
  thinking?: { enabled: boolean; budgetTokens?: number; level?: GoogleThinkingLevel };
}
export interface GoogleGeminiCliOptions extends GoogleOptions {
  /** Ignored, as in the original: the sign-in determines it. */
  projectId?: string;
}
export interface GoogleVertexOptions extends GoogleOptions {
  /** For credentials of a user, which are not supported: ignored with `apiKey`, an error without it. */
  project?: string;
  location?: string;
}
export interface MistralOptions extends WithChoice<"auto" | "none" | "any" | "required" | ByName>, WithEffort<"none" | "high"> {
  promptMode?: "reasoning";
}
export interface OpenAICompletionsOptions extends WithChoice<"auto" | "none" | "required" | ByName>, WithEffort {}
/** The options of OpenAI's API; `toolChoice` is from newer versions. */
// deno-lint-ignore no-explicit-any
interface ResponsesOptions<TEffort, TSummary> extends WithChoice<any>, WithEffort<TEffort> {
  /** Without an effort it requests thoughts of medium effort, except from Codex. */
  reasoningSummary?: TSummary | null;
}
type ReasoningSummary = "auto" | "detailed" | "concise";
type ServiceTier = "auto" | "default" | "flex" | "scale" | "priority";
export interface OpenAIResponsesOptions extends ResponsesOptions<Effort, ReasoningSummary> {
  /** `flex` and `priority` have their own price in `usage.cost`. */
  serviceTier?: ServiceTier | null;
}
export interface AzureOpenAIResponsesOptions extends ResponsesOptions<Effort, ReasoningSummary> {
  /** The members below override the variables `AZURE_OPENAI_…`. */
  azureApiVersion?: string;
  azureResourceName?: string;
  azureBaseUrl?: string;
  azureDeploymentName?: string;
}
export interface OpenAICodexResponsesOptions extends ResponsesOptions<"none" | Effort, ReasoningSummary | "on" | "off"> {
  serviceTier?: ServiceTier | null;
  /** `medium` by default. */
  textVerbosity?: "low" | "medium" | "high";
}

// ---- Values of the APIs ----

export type AnthropicEffort = "low" | "medium" | "high" | "xhigh" | "max";
export type AnthropicThinkingDisplay = "summarized" | "omitted";
export type BedrockThinkingDisplay = AnthropicThinkingDisplay;
export type GoogleThinkingLevel = "THINKING_LEVEL_UNSPECIFIED" | "MINIMAL" | "LOW" | "MEDIUM" | "HIGH";
/** The content of `textSignature` in responses of OpenAI's Responses API, as JSON. */
export interface TextSignatureV1 {
  v: 1;
  id: string;
  phase?: "commentary" | "final_answer";
}

// Without this line every declaration would be exported.
export {};
