// `@mariozechner/pi-ai`: what `stream` and `complete` take in addition, by the API that is asked.
// Simple functions do not look at these, and each API only at its own. What cannot be read, or
// cannot be done (Anthropic's `client`), is an error that names it.
import type { ThinkingBudgets } from "./ai-providers.js";
import type { StreamOptions, ThinkingLevel } from "./pi-ai.js";

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
  /** Of models that are given a budget: 1024 if it is not said. */
  thinkingBudgetTokens?: number;
  /** Of models that decide themselves how long they think. */
  effort?: AnthropicEffort;
  /** Whether thoughts come as a summary, which is the default, or without their text. */
  thinkingDisplay?: AnthropicThinkingDisplay;
  /** Thoughts between calls of tools, for models that do not decide it: `true` if it is not said. */
  interleavedThinking?: boolean;
}
export interface BedrockOptions extends WithChoice<AnyOrOne> {
  reasoning?: ThinkingLevel;
  thinkingBudgets?: ThinkingBudgets;
  /** Of Claude, as are the next one and `thinkingBudgets`. */
  thinkingDisplay?: BedrockThinkingDisplay;
  interleavedThinking?: boolean;
  /** Before `AWS_REGION`, and the region of the profile. */
  region?: string;
  /** In AWS's files; before `AWS_PROFILE`, and the keys of the environment. */
  profile?: string;
  /** Instead of a signature; before `AWS_BEARER_TOKEN_BEDROCK`. */
  bearerToken?: string;
  /** What the bill tells apart. */
  requestMetadata?: Record<string, string>;
}
export interface GoogleOptions extends WithChoice<"auto" | "none" | "any"> {
  /** Left to the API if it is not said. `level` is for Gemini 3 and comes before `budgetTokens`. */
  thinking?: { enabled: boolean; budgetTokens?: number; level?: GoogleThinkingLevel };
}
export interface GoogleGeminiCliOptions extends GoogleOptions {
  /** Not looked at, as in the original: the sign-in says it. */
  projectId?: string;
}
export interface GoogleVertexOptions extends GoogleOptions {
  /** For credentials of a user, which are not there: with `apiKey` not looked at, without it an error. */
  project?: string;
  location?: string;
}
export interface MistralOptions extends WithChoice<"auto" | "none" | "any" | "required" | ByName>, WithEffort<"none" | "high"> {
  promptMode?: "reasoning";
}
export interface OpenAICompletionsOptions extends WithChoice<"auto" | "none" | "required" | ByName>, WithEffort {}
/** As OpenAI's API has it; `toolChoice` is of newer versions. */
// deno-lint-ignore no-explicit-any
interface OfResponses<TEffort, TSummary> extends WithChoice<any>, WithEffort<TEffort> {
  /** Alone it asks for thoughts of medium effort, but not of Codex. */
  reasoningSummary?: TSummary | null;
}
type ReasoningSummary = "auto" | "detailed" | "concise";
type ServiceTier = "auto" | "default" | "flex" | "scale" | "priority";
export interface OpenAIResponsesOptions extends OfResponses<Effort, ReasoningSummary> {
  /** `flex` and `priority` have their own price in `usage.cost`. */
  serviceTier?: ServiceTier | null;
}
export interface AzureOpenAIResponsesOptions extends OfResponses<Effort, ReasoningSummary> {
  /** These come before the variables `AZURE_OPENAI_…`. */
  azureApiVersion?: string;
  azureResourceName?: string;
  azureBaseUrl?: string;
  azureDeploymentName?: string;
}
export interface OpenAICodexResponsesOptions extends OfResponses<"none" | Effort, ReasoningSummary | "on" | "off"> {
  serviceTier?: ServiceTier | null;
  /** `medium` if it is not said. */
  textVerbosity?: "low" | "medium" | "high";
}

// ---- The words of the APIs ----

export type AnthropicEffort = "low" | "medium" | "high" | "xhigh" | "max";
export type AnthropicThinkingDisplay = "summarized" | "omitted";
export type BedrockThinkingDisplay = AnthropicThinkingDisplay;
export type GoogleThinkingLevel = "THINKING_LEVEL_UNSPECIFIED" | "MINIMAL" | "LOW" | "MEDIUM" | "HIGH";
/** What `textSignature` holds in answers of OpenAI's Responses API, as JSON. */
export interface TextSignatureV1 {
  v: 1;
  id: string;
  phase?: "commentary" | "final_answer";
}

// Only what says so is exported.
export {};
