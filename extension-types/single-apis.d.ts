// `@mariozechner/pi-ai`: what `stream` and `complete` take in addition, by the API that is asked.
// Of these `toolChoice`, `reasoningEffort` and Anthropic's `thinkingEnabled`, `thinkingBudgetTokens`
// and `effort` are looked at; what else there is in the original (`cacheRetention`, `serviceTier`, …)
// may be said and is not: `onPayload` can put it into a request.
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
  effort?: "low" | "medium" | "high" | "xhigh" | "max";
}
export interface BedrockOptions extends WithChoice<AnyOrOne> {
  reasoning?: ThinkingLevel;
}
export type GoogleOptions = WithChoice<"auto" | "none" | "any">;
export type GoogleGeminiCliOptions = GoogleOptions;
export type GoogleVertexOptions = GoogleOptions;
export interface MistralOptions extends WithChoice<"auto" | "none" | "any" | "required" | ByName>, WithEffort<"none" | "high"> {}
export interface OpenAICompletionsOptions extends WithChoice<"auto" | "none" | "required" | ByName>, WithEffort {}
export type OpenAIResponsesOptions = WithEffort;
export type AzureOpenAIResponsesOptions = WithEffort;
export type OpenAICodexResponsesOptions = WithEffort<"none" | Effort>;

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
