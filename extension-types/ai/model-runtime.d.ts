// `ModelRuntime`, which replaces `ModelRegistry` and `AuthStorage` in newer versions.
import type { AssistantMessage, AssistantMessageEventStream, Context, Model, SimpleStreamOptions } from "../pi-ai.js";
import type { AuthCheck, AuthInteraction, AuthResult, AuthType, Credential, CredentialInfo } from "./auth.js";
import type { AuthOperationOptions, CredentialStore } from "./credential-store.js";
import type { PutTogether } from "./created-providers.js";
import type { ThinkingLevel } from "../pi-agent-core.js";
import type { AuthStatus, ModelRegistry, ProviderConfig, RegisteredProvider } from "./providers.js";

export interface CreateModelRuntimeOptions extends AuthOperationOptions {
  /** Replaces `auth.json`. */
  credentials?: CredentialStore;
  authPath?: string;
  /** `null` excludes the user's models. */
  modelsPath?: string | null;
  /** The members below are ignored: lists of models are not fetched when a runtime is made. */
  modelsStore?: unknown;
  modelsStorePath?: string;
  allowModelNetwork?: boolean;
  modelRefreshTimeoutMs?: number;
  catalogBaseUrl?: string;
  refreshOnCreate?: boolean;
}
export interface ModelRuntimeAuthOverrides extends AuthOperationOptions {
  apiKey?: string;
  /** Not available: throws if it has members. */
  env?: Record<string, string>;
  /** Ignored. */
  minOAuthValidityMs?: number;
}

/** The known models and their credentials. `ctx.modelRegistry.runtime` is that of the session. */
/** `model` is `undefined` if there is an `error`, or if no model was requested. */
export interface ResolveCliModelResult {
  model: Model | undefined;
  /** The level in `model:level`. */
  thinkingLevel?: ThinkingLevel;
  warning: string | undefined;
  error: string | undefined;
}
/** The model that `--provider` and `--model` select. */
export function resolveCliModel(options: {
  cliProvider?: string;
  cliModel?: string;
  /** Ignored: the level in `model:level` is in the result. */
  cliThinking?: ThinkingLevel;
  modelRuntime: ModelRuntime;
}): ResolveCliModelResult;

export type CredentialSynchronizationOperation = "login" | "logout" | "setRuntimeApiKey" | "removeRuntimeApiKey";
/** Credentials were changed, but models and keys could not be read again. Never thrown here. */
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
  /** This runtime in the form of older versions; the original has no such member. */
  readonly registry: ModelRegistry;
  getProviders(): readonly (RegisteredProvider | PutTogether)[];
  getProvider(providerId: string): RegisteredProvider | PutTogether | undefined;
  getModels(providerId?: string): readonly Model[];
  getModel(providerId: string, modelId: string): Model | undefined;
  getPhysicalModel(providerId: string, modelId: string): Model | undefined;
  getAllModels(providerId?: string): readonly Model[];
  /** Only models of the type `chat` exist. */
  getModelsOfType(type: string, providerId?: string): readonly Model[];
  getModelOfType(type: string, providerId: string, modelId: string): Model | undefined;
  /** Models for which there is a key. */
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
  getAuth(target: string | Model, overrides?: ModelRuntimeAuthOverrides): Promise<AuthResult | undefined>;
  /** Lasts for this process only. */
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
  /** Streams a response with the user's key. A failure is in the `errorMessage` of the response. */
  stream(model: Model, context: Context, options?: SimpleStreamOptions): AssistantMessageEventStream;
  streamSimple(model: Model, context: Context, options?: SimpleStreamOptions): AssistantMessageEventStream;
  complete(model: Model, context: Context, options?: SimpleStreamOptions): Promise<AssistantMessage>;
  completeSimple(model: Model, context: Context, options?: SimpleStreamOptions): Promise<AssistantMessage>;
}
