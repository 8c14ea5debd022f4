// `@mariozechner/pi-ai`: providers, their APIs and their options.
import type { Api, AssistantMessage, AssistantMessageEventStream, Context, Message, Model, StreamOptions, Tool } from "../pi-ai.js";
import type {
  AnthropicOptions,
  AzureOpenAIResponsesOptions,
  BedrockOptions,
  GoogleGeminiCliOptions,
  GoogleOptions,
  GoogleVertexOptions,
  MistralOptions,
  OpenAICodexResponsesOptions,
  OpenAICompletionsOptions,
  OpenAIResponsesOptions,
} from "./api-options.js";
import type { SimpleStreamOptions, StopReason, TextContent, ThinkingContent, ThinkingLevel, ToolCall } from "../pi-ai.js";

export type KnownApi =
  | "openai-completions" | "mistral-conversations" | "openai-responses" | "azure-openai-responses"
  | "openai-codex-responses" | "anthropic-messages" | "bedrock-converse-stream" | "google-generative-ai"
  | "google-gemini-cli" | "google-vertex";
export type KnownProvider =
  | "amazon-bedrock" | "anthropic" | "google" | "google-gemini-cli" | "google-antigravity" | "google-vertex"
  | "openai" | "azure-openai-responses" | "openai-codex" | "github-copilot" | "xai" | "groq" | "cerebras"
  | "openrouter" | "vercel-ai-gateway" | "zai" | "mistral" | "minimax" | "minimax-cn" | "huggingface" | "opencode"
  | "opencode-go" | "kimi-coding";

export type ThinkingBudgets = Partial<Record<Exclude<ThinkingLevel, "xhigh" | "max">, number>>;
export type CacheRetention = "none" | "short" | "long";
export type Transport = "sse" | "websocket" | "auto";
export interface ProviderResponse {
  status: number;
  headers: Record<string, string>;
}
export type ProviderStreamOptions = StreamOptions & Record<string, unknown>;
export type StreamFunction<TApi extends Api = Api, TOptions extends StreamOptions = StreamOptions> = (
  model: Model<TApi>,
  context: Context,
  options?: TOptions,
) => AssistantMessageEventStream;

/** A type alias, because an interface has no index signature and would not fit `Record<string, unknown>`. */
export type OpenAICompletionsCompat = {
  supportsStore?: boolean;
  supportsDeveloperRole?: boolean;
  supportsReasoningEffort?: boolean;
  reasoningEffortMap?: Partial<Record<ThinkingLevel, string>>;
  supportsUsageInStreaming?: boolean;
  maxTokensField?: "max_completion_tokens" | "max_tokens";
  requiresToolResultName?: boolean;
  requiresAssistantAfterToolResult?: boolean;
  requiresThinkingAsText?: boolean;
  thinkingFormat?: "openai" | "openrouter" | "zai" | "qwen" | "qwen-chat-template";
  openRouterRouting?: OpenRouterRouting;
  vercelGatewayRouting?: VercelGatewayRouting;
  zaiToolStream?: boolean;
  supportsStrictMode?: boolean;
};
// deno-lint-ignore ban-types
export type OpenAIResponsesCompat = {};
/** The routing options of OpenRouter's API. */
// deno-lint-ignore no-explicit-any
export type OpenRouterRouting = Record<string, any> & {
  allow_fallbacks?: boolean;
  require_parameters?: boolean;
  data_collection?: "deny" | "allow";
  zdr?: boolean;
  order?: string[];
  only?: string[];
  ignore?: string[];
  quantizations?: string[];
  sort?: string | { by?: string; partition?: string | null };
};
export interface VercelGatewayRouting {
  only?: string[];
  order?: string[];
}

export type ApiStreamFunction = StreamFunction;
export type ApiStreamSimpleFunction = StreamFunction<Api, SimpleStreamOptions>;
type Stream<TOptions extends StreamOptions> = StreamFunction<Api, TOptions>;
type SimpleStream = ApiStreamSimpleFunction;
/** Each function uses the API that the model names. */
export const streamAnthropic: Stream<AnthropicOptions>;
export const streamSimpleAnthropic: SimpleStream;
export const streamOpenAICompletions: Stream<OpenAICompletionsOptions>;
export const streamSimpleOpenAICompletions: SimpleStream;
export const streamOpenAIResponses: Stream<OpenAIResponsesOptions>;
export const streamSimpleOpenAIResponses: SimpleStream;
export const streamOpenAICodexResponses: Stream<OpenAICodexResponsesOptions>;
export const streamSimpleOpenAICodexResponses: SimpleStream;
export const streamAzureOpenAIResponses: Stream<AzureOpenAIResponsesOptions>;
export const streamSimpleAzureOpenAIResponses: SimpleStream;
export const streamGoogle: Stream<GoogleOptions>;
export const streamSimpleGoogle: SimpleStream;
export const streamGoogleGeminiCli: Stream<GoogleGeminiCliOptions>;
export const streamSimpleGoogleGeminiCli: SimpleStream;
export const streamGoogleVertex: Stream<GoogleVertexOptions>;
export const streamSimpleGoogleVertex: SimpleStream;
export const streamBedrock: Stream<BedrockOptions>;
export const streamSimpleBedrock: SimpleStream;
export const streamMistral: Stream<MistralOptions>;
export const streamSimpleMistral: SimpleStream;

export interface ApiProvider<TApi extends Api = Api, TOptions extends StreamOptions = StreamOptions> {
  api: TApi;
  stream: StreamFunction<TApi, TOptions>;
  streamSimple: StreamFunction<TApi, SimpleStreamOptions>;
}
export function registerApiProvider<TApi extends Api, TOptions extends StreamOptions>(
  provider: ApiProvider<TApi, TOptions>,
  sourceId?: string,
): void;
export function getApiProvider(api: Api): ApiProvider | undefined;
export function getApiProviders(): ApiProvider[];
export function unregisterApiProviders(sourceId: string): void;
export function clearApiProviders(): void;
export function registerBuiltInApiProviders(): void;
/** Removes all registrations but pi's own. */
export function resetApiProviders(): void;
/** Throws, because Bedrock's API is part of pi. */
export function setBedrockProviderModule(module?: unknown): never;
export function getOverflowPatterns(): RegExp[];

// ---- A provider for tests ----

export interface FauxModelDefinition {
  id: string;
  name?: string;
  reasoning?: boolean;
  input?: ("text" | "image")[];
  cost?: { input: number; output: number; cacheRead: number; cacheWrite: number };
  contextWindow?: number;
  maxTokens?: number;
}
export type FauxContentBlock = TextContent | ThinkingContent | ToolCall;
export type FauxResponseFactory = (
  context: Context,
  options: StreamOptions | undefined,
  state: { callCount: number },
  model: Model,
) => AssistantMessage | Promise<AssistantMessage>;
export type FauxResponseStep = AssistantMessage | FauxResponseFactory;
export interface RegisterFauxProviderOptions {
  api?: string;
  provider?: string;
  models?: FauxModelDefinition[];
  tokensPerSecond?: number;
  tokenSize?: { min?: number; max?: number };
}
export interface FauxProviderRegistration {
  api: string;
  models: [Model, ...Model[]];
  getModel(): Model;
  getModel(modelId: string): Model | undefined;
  state: { callCount: number };
  setResponses(responses: FauxResponseStep[]): void;
  appendResponses(responses: FauxResponseStep[]): void;
  getPendingResponseCount(): number;
  unregister(): void;
}
export function fauxText(text: string): TextContent;
export function fauxThinking(thinking: string): ThinkingContent;
export function fauxToolCall(name: string, args: ToolCall["arguments"], options?: { id?: string }): ToolCall;
export function fauxAssistantMessage(
  content: string | FauxContentBlock | FauxContentBlock[],
  options?: { stopReason?: StopReason; errorMessage?: string; responseId?: string; timestamp?: number },
): AssistantMessage;
export function registerFauxProvider(options?: RegisterFauxProviderOptions): FauxProviderRegistration;

/** A message and its tools, in the form that `complete` takes. */
export type { Message, Tool };

// Without this line every declaration would be exported.
export {};
