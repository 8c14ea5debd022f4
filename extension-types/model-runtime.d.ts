// `ModelRuntime`, which newer versions have in the place of `ModelRegistry` and `AuthStorage`.
import type { AssistantMessage, AssistantMessageEventStream, Context, Model, SimpleStreamOptions } from "./pi-ai.js";
import type { AuthCheck, AuthInteraction, AuthResult, AuthType, Credential, CredentialInfo } from "./auth.js";
import type { AuthOperationOptions, CredentialStore } from "./credential-store.js";
import type { PutTogether } from "./put-together.js";
import type { ThinkingLevel } from "./pi-agent-core.js";
import type { AuthStatus, ModelRegistry, ProviderConfig, RegisteredProvider } from "./providers.js";

export interface CreateModelRuntimeOptions extends AuthOperationOptions {
  /** In the place of `auth.json`. */
  credentials?: CredentialStore;
  authPath?: string;
  /** `null`: none of the user's models. */
  modelsPath?: string | null;
  /** These are not looked at: lists of models are not fetched when one is made. */
  modelsStore?: unknown;
  modelsStorePath?: string;
  allowModelNetwork?: boolean;
  modelRefreshTimeoutMs?: number;
  catalogBaseUrl?: string;
  refreshOnCreate?: boolean;
}
export interface ModelRuntimeAuthOverrides extends AuthOperationOptions {
  apiKey?: string;
  /** Not available: throws if there are any. */
  env?: Record<string, string>;
  /** Not looked at. */
  minOAuthValidityMs?: number;
}

/** The models that there are, and what it takes to ask them. `ctx.modelRegistry.runtime` is the session's own. */
/** `model` is `undefined` where there is an `error`, or nothing was asked for. */
export interface ResolveCliModelResult {
  model: Model | undefined;
  /** Of `model:level`. */
  thinkingLevel?: ThinkingLevel;
  warning: string | undefined;
  error: string | undefined;
}
/** The model that `--provider` and `--model` mean. */
export function resolveCliModel(options: {
  cliProvider?: string;
  cliModel?: string;
  /** Not looked at: what was asked for by `model:level` is in the result. */
  cliThinking?: ThinkingLevel;
  modelRuntime: ModelRuntime;
}): ResolveCliModelResult;

export type CredentialSynchronizationOperation = "login" | "logout" | "setRuntimeApiKey" | "removeRuntimeApiKey";
/** Credentials were changed, and what models and keys there are could not be read again. Never thrown here. */
export class CredentialSynchronizationError extends Error {
  constructor(
    providerId: string,
    operation: CredentialSynchronizationOperation,
    credential: Credential | undefined,
    options: ErrorOptions,
  );
  readonly providerId: string;
  readonly operation: CredentialSynchronizationOperation;
  readonly credential: Credential | undefined;
}

export class ModelRuntime {
  private constructor();
  static create(options?: CreateModelRuntimeOptions): Promise<ModelRuntime>;
  /** The same as older versions know it; the original has no such member. */
  readonly registry: ModelRegistry;
  getProviders(): readonly (RegisteredProvider | PutTogether)[];
  getProvider(providerId: string): RegisteredProvider | PutTogether | undefined;
  getModels(providerId?: string): readonly Model[];
  getModel(providerId: string, modelId: string): Model | undefined;
  getPhysicalModel(providerId: string, modelId: string): Model | undefined;
  getAllModels(providerId?: string): readonly Model[];
  /** There are none of other types than `chat`. */
  getModelsOfType(type: string, providerId?: string): readonly Model[];
  getModelOfType(type: string, providerId: string, modelId: string): Model | undefined;
  /** Those that there are keys for. */
  getAvailable(providerId?: string, options?: AuthOperationOptions): Promise<readonly Model[]>;
  getAvailableSnapshot(): readonly Model[];
  getAllAvailable(providerId?: string, options?: AuthOperationOptions): Promise<readonly Model[]>;
  getAvailableOfType(type: string, providerId?: string, options?: AuthOperationOptions): Promise<readonly Model[]>;
  getError(): string | undefined;
  getRegisteredProviderIds(): readonly string[];
  getRegisteredProviderConfig(providerId: string): ProviderConfig | undefined;
  getRegisteredNativeProvider(providerId: string): PutTogether | undefined;
  isUsingOAuth(providerId: string): boolean;
  isUsingSubscription(providerId: string): boolean;
  hasConfiguredAuth(providerId: string): boolean;
  checkAuth(providerId: string, options?: AuthOperationOptions): Promise<AuthCheck | undefined>;
  getProviderAuthStatus(providerId: string): AuthStatus;
  /** `undefined` if nothing is configured. */
  getAuth(of: string | Model, overrides?: ModelRuntimeAuthOverrides): Promise<AuthResult | undefined>;
  /** For this run only. */
  setRuntimeApiKey(providerId: string, apiKey: string, options?: AuthOperationOptions): Promise<void>;
  removeRuntimeApiKey(providerId: string, options?: AuthOperationOptions): Promise<void>;
  settleCredentialWrites(): Promise<void>;
  listCredentials(options?: AuthOperationOptions): Promise<readonly CredentialInfo[]>;
  login(providerId: string, type: AuthType, interaction: AuthInteraction): Promise<Credential>;
  logout(providerId: string, options?: AuthOperationOptions): Promise<void>;
  refresh(options?: Parameters<ModelRegistry["refresh"]>[0]): ReturnType<ModelRegistry["refresh"]>;
  registerProvider(providerId: string, config: ProviderConfig): void;
  registerNativeProvider(provider: PutTogether): void;
  unregisterProvider(providerId: string): void;
  /** Asks a model with the user's key. What goes wrong is the answer's `errorMessage`. */
  stream(model: Model, context: Context, options?: SimpleStreamOptions): AssistantMessageEventStream;
  streamSimple(model: Model, context: Context, options?: SimpleStreamOptions): AssistantMessageEventStream;
  complete(model: Model, context: Context, options?: SimpleStreamOptions): Promise<AssistantMessage>;
  completeSimple(model: Model, context: Context, options?: SimpleStreamOptions): Promise<AssistantMessage>;
}
