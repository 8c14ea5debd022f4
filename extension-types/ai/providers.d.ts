// Providers that an extension registers, and the user's models, keys and settings.
import type { Api, AssistantMessage, AssistantMessageEventStream, Context, Model, ModelCost } from "../pi-ai.js";
import type { SimpleStreamOptions, StreamOptions } from "../pi-ai.js";
import type { ThinkingLevel } from "../pi-agent-core.js";
import type { ModelRuntime } from "./model-runtime.js";
import type { ProviderAuth, PutTogether } from "./created-providers.js";
import type { AuthResult, OAuthCredential } from "./auth.js";
import type { OAuthCredentials, OptionalLoginCallbacks, OAuthProviderInterface, OAuthSignIn } from "./oauth.js";

export interface ProviderModelConfig {
  id: string;
  name: string;
  api?: Api;
  /** The address of this model, if it differs from that of the provider. */
  baseUrl?: string;
  reasoning: boolean;
  input: ("text" | "image")[];
  /** Prices in US dollars per million tokens. */
  cost: ModelCost;
  contextWindow: number;
  maxTokens: number;
  headers?: Record<string, string>;
  thinkingLevelMap?: Model["thinkingLevelMap"];
  /** Members added to every request to an OpenAI-compatible API. */
  samplingParams?: Record<string, unknown>;
  /** Parameters for one thinking level, which override those above. */
  samplingParamsByThinkingLevel?: Partial<Record<ThinkingLevel | "off", Record<string, unknown>>>;
  compat?: Model["compat"];
  /** These two are from newer versions, ignored. */
  inputLimits?: object;
  promptCache?: Partial<Record<"short" | "long", number>>;
}
/** A list of models that is stored for the next start. */
export interface StoredModels {
  models: readonly unknown[];
  /** Unix timestamps. */
  lastModified?: number;
  checkedAt?: number;
  etag?: string;
}

export interface RefreshModelsContext {
  /** A key or a sign-in; present if network requests are allowed. */
  credential?: { type: "api_key"; key?: string } | ({ type: "oauth" } & OAuthCredentials);
  stored?: StoredModels;
  allowNetwork: boolean;
  force?: boolean;
  signal: AbortSignal;
  /** `persist: null` deletes the stored list. Returns `false` if the refresh was stopped. */
  publish(publication: { persist?: StoredModels | null; update?: () => void }): Promise<boolean>;
}

export interface ProviderConfig {
  /** The displayed name; by default the name of the registration. */
  name?: string;
  baseUrl?: string;
  /** The key, the name of a variable, or `!command`. */
  apiKey?: string;
  api?: Api;
  /** An API of the extension's own. */
  streamSimple?(model: Model, context: Context, options?: SimpleStreamOptions): AssistantMessageEventStream;
  headers?: Record<string, string>;
  /** Sends the key as `Authorization: Bearer`. */
  authHeader?: boolean;
  /** Replaces the models that the provider had. */
  models?: ProviderModelConfig[];
  /** Supplies the models later; `undefined` keeps the current ones. */
  refreshModels?(context: RefreshModelsContext): Promise<ProviderModelConfig[] | undefined>;
  /** The sign-in for `/login`. */
  oauth?: OAuthSignIn;
}

export type ModelCredentials =
  /** `env` is from newer versions: never set here. */
  | { ok: true; apiKey?: string; headers?: Record<string, string>; env?: Record<string, string> }
  | { ok: false; error: string };

/** A provider, and functions to stream from its models with a key of the caller. */
export interface RegisteredProvider {
  id: string;
  /** The displayed name. */
  name: string;
  /** The address of its first model. */
  baseUrl?: string;
  headers?: object;
  auth: ProviderAuth;
  getModels(): Model[];
  /** Present only if an extension has registered it with `refreshModels`. */
  refreshModels?(context?: object): Promise<void>;
  /** Present only if accounts differ in their models (`github-copilot`). */
  filterModels?(models: readonly Model[], credential?: { type?: string }): readonly Model[];
  stream(model: Model, context: Context, options?: StreamOptions): AssistantMessageEventStream;
  streamSimple(model: Model, context: Context, options?: SimpleStreamOptions): AssistantMessageEventStream;
}

/** The models that match the patterns, as in `--models`, and problems of the patterns. */
export function resolveModelScopeWithDiagnostics(
  patterns: string[],
  registry: ModelRegistry,
): Promise<ResolveModelScopeResult>;
export interface ScopedModel {
  model: Model;
  thinkingLevel?: ThinkingLevel;
}
export interface ModelScopeDiagnostic {
  type: "warning";
  code: "no-match" | "invalid-thinking-level";
  message: string;
  pattern: string;
}
export interface ResolveModelScopeResult {
  scopedModels: ScopedModel[];
  diagnostics: ModelScopeDiagnostic[];
}

/** The known models and their credentials. */
export class ModelRegistry {
  constructor(runtime: ModelRuntime);
  static create(authStorage?: AuthStorage, modelsJsonPath?: string): ModelRegistry;
  static inMemory(authStorage: AuthStorage): ModelRegistry;
  readonly authStorage: AuthStorage;
  /** This registry in the form of newer versions. */
  readonly runtime: ModelRuntime;
  find(provider: string, modelId: string): Model | undefined;
  getAll(): Model[];
  /** Models for which there is a key. */
  getAvailable(): Model[];
  getError(): string | undefined;
  hasConfiguredAuth(model: Model): boolean;
  isUsingOAuth(model: Model): boolean;
  getApiKeyAndHeaders(model: Model): Promise<ModelCredentials>;
  getApiKeyForProvider(provider: string): Promise<string | undefined>;
  /** @deprecated Use `getApiKeyAndHeaders`. */
  getApiKey(model: Model): Promise<string | undefined>;
  getProviderDisplayName(provider: string): string;
  /** Whether there is a key, and its source: `runtime`, `stored`, `environment`, `models_json_key`. */
  getProviderAuthStatus(provider: string): AuthStatus;
  getProviderAuth(provider: string): Promise<(AuthResult & { auth: { apiKey: string } }) | undefined>;
  /**
   * `undefined` if the provider has no models. A provider that was registered as an object is that
   * object.
   */
  getProvider(provider: string): RegisteredProvider | undefined;
  /** Providers that extensions have registered. */
  getRegisteredProviderIds(): string[];
  getRegisteredProviderConfig(provider: string): ProviderConfig | undefined;
  /** Providers that were registered as an object with `getModels()`. */
  getRegisteredNativeProvider(provider: string): PutTogether | undefined;
  registerProvider(name: string, config: ProviderConfig): void;
  registerProvider(provider: PutTogether): void;
  unregisterProvider(name: string): void;
  /** Requests a response with the user's key. */
  complete(model: Model, context: Context, options?: SimpleStreamOptions): Promise<AssistantMessage>;
  stream(model: Model, context: Context, options?: SimpleStreamOptions): AssistantMessageEventStream;
  streamSimple(model: Model, context: Context, options?: SimpleStreamOptions): AssistantMessageEventStream;
  /** Reads models.json again. */
  /** The files were read again when it returns; the promise waits for providers with `refreshModels`. */
  refresh(options?: { allowNetwork?: boolean; force?: boolean; providers?: readonly string[]; signal?: AbortSignal }): Promise<{
    aborted: boolean;
    errors: ReadonlyMap<string, unknown>;
  }>;
}

export interface AuthStatus {
  configured: boolean;
  source?: string;
  /** The names of the variables if `source` is `environment`. */
  label?: string;
}
export interface ApiKeyCredential {
  type: "api_key";
  key: string;
}
export type { OAuthCredential };
export type AuthCredential = ApiKeyCredential | OAuthCredential;
interface Locked<T> {
  result: T;
  /** The new content; without it nothing changes. */
  next?: string;
}
export interface AuthStorageBackend {
  withLock<T>(fn: (current: string | undefined) => Locked<T>): T;
  withLockAsync<T>(fn: (current: string | undefined) => Promise<Locked<T>>): Promise<T>;
}
export class FileAuthStorageBackend implements AuthStorageBackend {
  constructor(authPath?: string);
  withLock<T>(fn: (current: string | undefined) => Locked<T>): T;
  withLockAsync<T>(fn: (current: string | undefined) => Promise<Locked<T>>): Promise<T>;
}
export class InMemoryAuthStorageBackend implements AuthStorageBackend {
  withLock<T>(fn: (current: string | undefined) => Locked<T>): T;
  withLockAsync<T>(fn: (current: string | undefined) => Promise<Locked<T>>): Promise<T>;
}
/** The entry in auth.json, unchanged: a sign-in may have expired. */
export function readStoredCredential(providerId: string, authPath?: string): AuthCredential | undefined;
/** The keys and sign-ins of auth.json. */
export class AuthStorage {
  private constructor();
  static create(authPath?: string): AuthStorage;
  static fromStorage(storage: AuthStorageBackend): AuthStorage;
  static inMemory(data?: Record<string, AuthCredential>): AuthStorage;
  get(provider: string): AuthCredential | undefined;
  set(provider: string, credential: AuthCredential): void;
  remove(provider: string): void;
  list(): string[];
  has(provider: string): boolean;
  hasAuth(provider: string): boolean;
  getAll(): Record<string, AuthCredential>;
  getApiKey(provider: string, options?: { includeFallback?: boolean }): Promise<string | undefined>;
  getOAuthProviders(): OAuthProviderInterface[];
  /** Without `onDeviceCode`, `onAuth` gets the code. */
  login(provider: string, callbacks: OptionalLoginCallbacks): Promise<void>;
  logout(provider: string): void;
  /** Lasts for this process only. */
  setRuntimeApiKey(provider: string, apiKey: string): void;
  removeRuntimeApiKey(provider: string): void;
  setFallbackResolver(resolver: (provider: string) => string | undefined): void;
  reload(): void;
  drainErrors(): Error[];
}

// Without this line every declaration would be exported.
export {};
