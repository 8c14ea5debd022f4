// `@mariozechner/pi-ai`: what newer versions put providers together from.
import type { Api, AssistantMessageEventStream, Context, Model, SimpleStreamOptions, StreamOptions } from "./pi-ai.js";
import type { RefreshModelsContext } from "./providers.js";

/** A wire API, in both ways to ask it. */
export interface ProviderStreams {
  stream(model: Model, context: Context, options?: StreamOptions): AssistantMessageEventStream;
  streamSimple(model: Model, context: Context, options?: SimpleStreamOptions): AssistantMessageEventStream;
}
export function anthropicMessagesApi(): ProviderStreams;
export function azureOpenAIResponsesApi(): ProviderStreams;
export function bedrockConverseStreamApi(): ProviderStreams;
export function googleGenerativeAIApi(): ProviderStreams;
export function googleVertexApi(): ProviderStreams;
export function mistralConversationsApi(): ProviderStreams;
export function openAICodexResponsesApi(): ProviderStreams;
export function openAICompletionsApi(): ProviderStreams;
export function openAIResponsesApi(): ProviderStreams;

export interface ApiKeyAuth {
  name: string;
  login?(interaction: {
    signal: AbortSignal;
    prompt(question: { type: string; message: string }): Promise<string>;
  }): Promise<object>;
  resolve(asked: {
    ctx: { env(name: string): unknown };
    credential?: { key?: string; env?: unknown };
    signal: AbortSignal;
  }): Promise<object | undefined>;
}
/** A key that is stored, or else that of the first variable that is set. */
export function envApiKeyAuth(name: string, envVars: readonly string[]): ApiKeyAuth;

export interface ProviderParts {
  id: string;
  name?: string;
  baseUrl?: string;
  headers?: object;
  /** `pi.registerProvider` takes those of `envApiKeyAuth`. */
  auth: { apiKey?: ApiKeyAuth; oauth?: unknown };
  models: readonly Model[];
  fetchModels?(context: RefreshModelsContext): Promise<readonly Model[]>;
  filterModels?: unknown;
  /** For all its models, or by the API that each names. */
  api: ProviderStreams | Record<Api, ProviderStreams>;
}
export interface PutTogether extends ProviderStreams {
  id: string;
  name?: string;
  baseUrl?: string;
  headers?: object;
  auth?: ProviderParts["auth"];
  getModels(): readonly Model[];
  refreshModels?(context: RefreshModelsContext): Promise<void>;
  filterModels?: unknown;
}
export function createProvider(input: ProviderParts): PutTogether;
