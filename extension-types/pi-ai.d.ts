// `@mariozechner/pi-ai`: messages, models, and functions to use models.
import type { AnySchema, SchemaOf } from "./extension/schema.js";
import type { CacheRetention, KnownApi, KnownProvider, ProviderResponse, ThinkingBudgets, Transport } from "./ai/apis.js";
import type { RegisteredProvider } from "./ai/providers.js";
import type { OpenAICompletionsCompat, OpenAIResponsesCompat } from "./ai/apis.js";

export * from "./ai/apis.js";
export type * from "./ai/auth.js";
export * from "./ai/credential-store.js";
export type * from "./extension/json.js";
export type * from "./ai/api-options.js";
export * from "./ai/created-providers.js";
export type { ProviderParts as CreateProviderOptions } from "./ai/created-providers.js";
export type { RefreshModelsContext } from "./ai/providers.js";
export type * from "./ai/oauth.js";
export { Type } from "./extension/schema.js";
export type { Static, TSchema } from "./extension/schema.js";

export interface TextContent {
  type: "text";
  text: string;
  /** Valid only for the provider that sent it. */
  textSignature?: string;
}

export interface ImageContent {
  type: "image";
  /** The data in base64. */
  data: string;
  mimeType: string;
}

export interface ThinkingContent {
  type: "thinking";
  thinking: string;
  thinkingSignature?: string;
  /** The provider hides the text; the signature contains it encrypted. */
  redacted?: boolean;
}

export interface ToolCall {
  type: "toolCall";
  id: string;
  name: string;
  // deno-lint-ignore no-explicit-any
  arguments: Record<string, any>;
  /** The reason why the model's text is invalid, with the text; the call does not run then. */
  argumentsError?: string;
  thoughtSignature?: string;
}

/** Amounts in US dollars. */
export interface Cost {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  total: number;
}

/** Numbers of tokens. */
export interface Usage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  /** These two are parts of other members, and from newer versions: here they are not set. */
  cacheWrite1h?: number;
  reasoning?: number;
  totalTokens: number;
  cost: Cost;
}

/**
 * `pending` and `deferred` are from newer versions. pi does not use them; a response of an
 * extension's provider with one of them counts as `stop`, or as `toolUse` if it has calls.
 */
export type StopReason = "stop" | "length" | "toolUse" | "error" | "aborted" | "pending" | "deferred";

export interface UserMessage {
  role: "user";
  content: string | (TextContent | ImageContent)[];
  /** Milliseconds since 1970, as everywhere. */
  timestamp: number;
}

export interface AssistantMessage {
  role: "assistant";
  content: (TextContent | ThinkingContent | ToolCall)[];
  api: Api;
  provider: Provider;
  /** The id of the model. */
  model: string;
  /** The model that the provider reports; from newer versions. */
  responseModel?: string;
  responseId?: string;
  usage: Usage;
  stopReason: StopReason;
  errorMessage?: string;
  /** Failures from which the stream of an extension recovered; pi itself neither adds nor keeps any. */
  diagnostics?: AssistantMessageDiagnostic[];
  timestamp: number;
}
export interface DiagnosticErrorInfo {
  name?: string;
  message: string;
  stack?: string;
  code?: string | number;
}
export interface AssistantMessageDiagnostic {
  type: string;
  timestamp: number;
  error?: DiagnosticErrorInfo;
  // deno-lint-ignore no-explicit-any
  details?: Record<string, any>;
}
export type SessionResourceCleanup = (sessionId?: string) => void;
/**
 * Registers the release of resources that a stream keeps for a session; returns a function that
 * unregisters it.
 */
export function registerSessionResourceCleanup(cleanup: SessionResourceCleanup): () => void;
/**
 * Calls all of them; throws an `AggregateError` with their exceptions. pi itself never calls it,
 * and keeps no such resources.
 */
export function cleanupSessionResources(sessionId?: string): void;
/** The message of a thrown value; for an error without one, its name. */
export function formatThrownValue(value: unknown): string;
/** For a value that is no error the name is `ThrownValue`. */
export function extractDiagnosticError(error: unknown): DiagnosticErrorInfo;
// deno-lint-ignore no-explicit-any
export function createAssistantMessageDiagnostic(type: string, error: unknown, details?: Record<string, any>): AssistantMessageDiagnostic;
/** Adds the diagnostic to a new list. */
export function appendAssistantMessageDiagnostic(
  message: { diagnostics?: AssistantMessageDiagnostic[] },
  diagnostic: AssistantMessageDiagnostic,
): void;

// deno-lint-ignore no-explicit-any
export interface ToolResultMessage<TDetails = any> {
  role: "toolResult";
  toolCallId: string;
  toolName: string;
  content: (TextContent | ImageContent)[];
  details?: TDetails;
  /** The usage of models that the tool has called. */
  usage?: Usage;
  isError: boolean;
  timestamp: number;
}

export type Message = UserMessage | AssistantMessage | ToolResultMessage;

// deno-lint-ignore ban-types
export type Api = KnownApi | (string & {});
// deno-lint-ignore ban-types
export type Provider = KnownProvider | (string & {});
export type ProviderId = Provider;
export type ThinkingLevel = "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

export type ModelThinkingLevel = "off" | ThinkingLevel;

/** The API's names of the levels; `null` for a level that the model lacks. */
export type ThinkingLevelMap = Partial<Record<ModelThinkingLevel, string | null>>;
/** Deviations of servers from their API; for other APIs any options of the provider. */
type Compat<TApi> = [TApi] extends ["openai-completions"] ? OpenAICompletionsCompat
  : [TApi] extends ["openai-responses"] ? OpenAIResponsesCompat
  // With `unknown`, a value declared as an interface would not fit.
  // deno-lint-ignore no-explicit-any
  : OpenAICompletionsCompat & Record<string, any>;

export interface ModelCost extends Omit<Cost, "total"> {
  /** From newer versions, ignored: other prices for long requests. */
  tiers?: (Omit<Cost, "total"> & { inputTokensAbove: number })[];
}

export interface Model<TApi extends Api = Api> {
  id: string;
  name: string;
  api: TApi;
  provider: Provider;
  baseUrl: string;
  reasoning: boolean;
  input: ("text" | "image")[];
  /** Prices in US dollars per million tokens. */
  cost: ModelCost;
  contextWindow: number;
  maxTokens: number;
  headers?: Record<string, string>;
  thinkingLevelMap?: ThinkingLevelMap;
  /** Members added to every request to an OpenAI-compatible API. */
  samplingParams?: Record<string, unknown>;
  /** Parameters for one thinking level, which override those above. */
  samplingParamsByThinkingLevel?: Partial<Record<ThinkingLevel | "off", Record<string, unknown>>>;
  compat?: Compat<TApi>;
}

export interface Tool<TParameters extends AnySchema = AnySchema> {
  name: string;
  description: string;
  parameters: TParameters;
}

/** Whether the model may call tools; the values that every API understands. */
export type ToolChoice = "auto" | "none";
export interface ToolReference {
  name: string;
}
export interface Context {
  systemPrompt?: string;
  messages: Message[];
  tools?: Tool[];
}

/**
 * Newer versions pass APIs a context whose messages contain the prompt; here the prompt is a member
 * of its own.
 */
export type TranscriptContext = Context;

export interface StreamOptions {
  apiKey?: string;
  signal?: AbortSignal;
  temperature?: number;
  maxTokens?: number;
  sessionId?: string;
  /** `null` removes a header in newer versions; a reader gets texts only. */
  // deno-lint-ignore no-explicit-any
  headers?: Record<string, any>;
  /** The program's own APIs use HTTP in any case. */
  transport?: Transport;
  /** How long the provider caches the beginning of the conversation; overrides `PI_CACHE_RETENTION`. */
  cacheRetention?: CacheRetention;
  /** The return value is sent instead. */
  onPayload?(payload: unknown, model: Model): unknown;
  onResponse?(response: ProviderResponse, model: Model): void | Promise<void>;
  /** A server that requests a longer wait gets no further request; 0 is no limit. */
  maxRetryDelayMs?: number;
  /** Anthropic's API uses its `user_id`, the others nothing. */
  metadata?: Record<string, unknown>;
  /** From newer versions, as are the members below: how often a failed request is repeated. */
  maxRetries?: number;
  /** The limit for the beginning of the response. */
  timeoutMs?: number;
  /** Members added to a request to an OpenAI-compatible API; override those of the model. */
  samplingParams?: Record<string, unknown>;
  /** Overrides variables of the environment. */
  env?: Record<string, string | undefined>;
  // deno-lint-ignore no-explicit-any
  [option: string]: any;
}

export interface SimpleStreamOptions extends StreamOptions {
  reasoning?: ThinkingLevel | "off";
  thinkingBudgets?: ThinkingBudgets;
}

/**
 * A union member for each name, so that `Extract` works. A type alias, because an interface would
 * not fit a record.
 */
type BlockEvent<K extends string, Rest = unknown> = K extends unknown
  ? { type: K; contentIndex: number; partial: AssistantMessage } & Rest
  : never;

export type AssistantMessageEvent =
  | { type: "start"; partial: AssistantMessage }
  | BlockEvent<"text_start" | "thinking_start" | "toolcall_start">
  | BlockEvent<"text_delta" | "thinking_delta" | "toolcall_delta", { delta: string }>
  | BlockEvent<"text_end" | "thinking_end", { content: string }>
  | BlockEvent<"toolcall_end", { toolCall: ToolCall }>
  | { type: "done"; reason: "stop" | "length" | "toolUse" | "deferred"; message: AssistantMessage }
  | { type: "error"; reason: "aborted" | "error"; error: AssistantMessage };

export class EventStream<T, R = T> implements AsyncIterable<T> {
  constructor(isComplete: (event: T) => boolean, extractResult: (event: T) => R);
  push(event: T): void;
  end(result?: R): void;
  result(): Promise<R>;
  [Symbol.asyncIterator](): AsyncIterator<T>;
}

export class AssistantMessageEventStream extends EventStream<AssistantMessageEvent, AssistantMessage> {
  constructor();
}

export function createAssistantMessageEventStream(): AssistantMessageEventStream;

export function stream(model: Model, context: Context, options?: StreamOptions): AssistantMessageEventStream;
export function streamSimple(model: Model, context: Context, options?: SimpleStreamOptions): AssistantMessageEventStream;
export function complete(model: Model, context: Context, options?: StreamOptions): Promise<AssistantMessage>;
export function completeSimple(model: Model, context: Context, options?: SimpleStreamOptions): Promise<AssistantMessage>;

/**
 * `undefined` if there is no such model; the first signature omits that, so that well-known models
 * can be used directly.
 */
export function getModel(provider: KnownProvider, modelId: string): Model;
export function getModel(provider: Provider, modelId: string): Model | undefined;
export function getModels(provider: Provider): Model[];
export function getProviders(): Provider[];
/** Names of the same functions in newer versions. */
export const getBuiltinModel: typeof getModel;
export const getBuiltinModels: typeof getModels;
export const getBuiltinProviders: typeof getProviders;
/** The built-in providers with their models. */
export function builtinProviders(): RegisteredProvider[];
/** Computes `usage.cost` and returns it. */
export function calculateCost(model: Model, usage: Usage): Cost;
export function supportsXhigh(model: Model): boolean;
/** `off` and the levels of the model. */
export function getSupportedThinkingLevels(model: Model): ("off" | ThinkingLevel)[];
export function clampThinkingLevel(model: Model, level: "off" | ThinkingLevel): "off" | ThinkingLevel;
export function hasApi(model: Model, api: string): boolean;
export function modelsAreEqual(a: Model | null | undefined, b: Model | null | undefined): boolean;
/** `env`, from newer versions, overrides the environment. */
export function getEnvApiKey(provider: Provider, env?: Record<string, string | undefined>): string | undefined;
/** The provider's variables that contain a key, in order of precedence; `undefined` if there is none. */
export function findEnvKeys(provider: Provider, env?: Record<string, string | undefined>): string[] | undefined;

/** A choice of strings in the form that every provider understands. */
export function StringEnum<const T extends readonly string[]>(
  values: T,
  options?: { description?: string; default?: T[number] },
): SchemaOf<T[number]>;
/** Throws an error that a model understands. */
// deno-lint-ignore no-explicit-any
export function validateToolArguments(tool: Tool, toolCall: ToolCall): any;
/** Also throws if the tool does not exist. */
// deno-lint-ignore no-explicit-any
export function validateToolCall(tools: Tool[], toolCall: ToolCall): any;
/** The system prompt and the tools, in `context_with_system`; a later one changes those before it. */
export interface SystemMessage {
  role: "system";
  content: string | TextContent[];
  /** Sections by name, in order; `null` removes one. */
  sections?: Record<string, string | null>;
  toolsAdded?: Tool[];
  toolsRemoved?: ToolReference[];
  /** Milliseconds since the epoch. */
  timestamp: number;
}
/** The result of all system messages together. */
export function getCurrentSystemMessage(messages: readonly { role: string }[]): SystemMessage | undefined;
/** Combines all system messages into the first message. */
export function collapseSystemMessages<T extends { role: string }>(
  context: { messages: readonly T[] },
): { messages: (T | SystemMessage)[] };
export function getCurrentSystemPrompt(messages: readonly { role: string }[]): string;
export function getCurrentTools(messages: readonly { role: string }[]): Tool[];
export function getSystemMessageText(message: SystemMessage): string;
/** The texts of a content, without images and calls; the default separator is a line end. */
export function contentText(content: string | readonly { type: string; text?: string }[], separator?: string): string;
/** An id that sorts by time, in milliseconds since the epoch; the default is now. */
export function uuidv7(timestampMs?: number): string;
/** Parses JSON that is still being written: the members so far; `{}` if there are none yet. */
// deno-lint-ignore no-explicit-any
export function parseStreamingJson<T = any>(partialJson: string | undefined): T;
/** Repairs JSON of models; throws if that is not enough. */
export function parseJsonWithRepair<T = unknown>(json: string): T;
export function isContextOverflow(message: AssistantMessage, contextWindow?: number): boolean;
/** Whether pi would repeat the request, unless the context was too large. */
export function isRetryableAssistantError(message: AssistantMessage): boolean;

// Without this line every declaration would be exported.
export {};
