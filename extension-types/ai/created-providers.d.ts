// `@mariozechner/pi-ai`: parts from which newer versions build providers.
import type { Api, AssistantMessageEventStream, Context, Model, SimpleStreamOptions, StreamOptions } from "../pi-ai.js";
import type { ApiKeyCredential, AuthCheck, AuthResult, ModelAuth, OAuthCredential, ProviderAuthInteraction } from "./auth.js";
import type { RefreshModelsContext } from "./providers.js";

/** A wire API with its two stream functions. */
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

export interface AuthContext {
  env(name: string): Promise<string | undefined>;
  /** The path may start with `~` for the home folder. */
  fileExists(path: string): Promise<boolean>;
}
interface AuthRequest {
  ctx: AuthContext;
  /** The entry in `auth.json`. */
  credential?: ApiKeyCredential;
  signal: AbortSignal;
}
export interface ApiKeyAuth {
  name: string;
  /** Never called: `/login` asks the user for the key itself. */
  login?(interaction: ProviderAuthInteraction): Promise<ApiKeyCredential>;
  /** Whether there are credentials, without resolving them. */
  check?(request: AuthRequest): Promise<AuthCheck | undefined>;
  /** Called for each request; `undefined` if the provider is not configured. */
  resolve(request: AuthRequest): Promise<AuthResult | undefined>;
}
/** A sign-in for `/login`. */
export interface OAuthAuth {
  name: string;
  /** These two are ignored. */
  isSubscription?: boolean;
  loginLabel?: string;
  login(interaction: ProviderAuthInteraction): Promise<OAuthCredential>;
  refresh(credential: OAuthCredential, signal: AbortSignal): Promise<OAuthCredential>;
  toAuth(credential: OAuthCredential): Promise<ModelAuth>;
}
/** At least one of the two is required. */
export interface ProviderAuth {
  apiKey?: ApiKeyAuth;
  oauth?: OAuthAuth;
}
/** Finds a stored key, or else that of the first variable that is set. */
export function envApiKeyAuth(name: string, envVars: readonly string[]): ApiKeyAuth;

export interface ProviderParts {
  id: string;
  name?: string;
  baseUrl?: string;
  headers?: object;
  auth: ProviderAuth;
  models: readonly Model[];
  fetchModels?(context: RefreshModelsContext): Promise<readonly Model[]>;
  filterModels?: unknown;
  /** The API of all its models, or one for each API that models name. */
  api: ProviderStreams | Partial<Record<Api, ProviderStreams>>;
}
export interface PutTogether extends ProviderStreams {
  id: string;
  name?: string;
  baseUrl?: string;
  headers?: object;
  auth: ProviderAuth;
  getModels(): readonly Model[];
  refreshModels?(context: RefreshModelsContext): Promise<void>;
  filterModels?: unknown;
}
export function createProvider(input: ProviderParts): PutTogether;
