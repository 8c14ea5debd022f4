// `ModelRuntime`, which replaces `ModelRegistry` and `AuthStorage` in newer versions: the same
// models, keys and sign-ins of the program under the newer names. Extensions can create others
// besides that of the session (`ctx.modelRegistry.runtime`).
import { hostSync } from "pi:host.ts";
import { path } from "pi:node.ts";
import type { StreamOptions } from "pi:pi-ai/api-registry.ts";
import type { Credential, CredentialInfo, CredentialStore } from "pi:pi-ai/credential-store.ts";
import { AssistantMessageEventStream } from "pi:pi-ai/event-stream.ts";
import { signInWith } from "pi:pi-ai/logins.ts";
import type { Model } from "pi:pi-ai/models.ts";
import { failedResponse } from "pi:pi-ai/program.ts";
import { callbacksOf, type Interaction } from "pi:pi-ai/provider-auth.ts";
import { AuthStorage, REGISTRY } from "pi:pi-coding-agent/models/auth-storage.ts";
import { getAgentDir } from "pi:pi-coding-agent/config.ts";
import { ModelRegistry } from "pi:pi-coding-agent/models/registry.ts";

interface Operation {
  signal?: AbortSignal;
}

interface CreateOptions extends Operation {
  /** Replaces the file. */
  credentials?: CredentialStore;
  authPath?: string;
  /** `null` excludes the user's models. */
  modelsPath?: string | null;
}

interface AuthOverrides extends Operation {
  apiKey?: string;
  env?: Record<string, string>;
}

interface AuthResult {
  auth: { apiKey?: string; headers?: Record<string, string> };
  source?: string;
}

/** Names of the sources of keys in `getProviderAuthStatus`, by those in `getAuth`. */
const SOURCES: Record<string, string> = {
  runtime: "stored credential",
  stored: "stored credential",
  models_json_key: "configured API key",
  models_json_command: "configured API key",
  fallback: "configured API key",
};

const MADE = Symbol();

type CredentialOperation = "login" | "logout" | "setRuntimeApiKey" | "removeRuntimeApiKey";

/** The credentials were changed, but models and keys could not be read again. */
export class CredentialSynchronizationError extends Error {
  override name = "CredentialSynchronizationError";

  constructor(
    readonly providerId: string,
    readonly operation: CredentialOperation,
    readonly credential: unknown,
    options: ErrorOptions,
  ) {
    super(`Credentials for "${providerId}" were changed (${operation}), but could not be read again`, options);
  }
}

interface CliModel {
  model: Model | undefined;
  thinkingLevel?: string;
  warning: string | undefined;
  error: string | undefined;
}

/** The model that `--provider` and `--model` select on the command line. */
export function resolveCliModel(
  { cliProvider, cliModel, modelRuntime }: {
    cliProvider?: string;
    cliModel?: string;
    modelRuntime: ModelRuntime | ModelRegistry;
  },
): CliModel {
  const registry = modelRuntime?.[REGISTRY];
  if (registry === undefined) {
    throw new TypeError("resolveCliModel: modelRuntime must be a ModelRuntime (ctx.modelRegistry.runtime)");
  }
  const none = { model: undefined, warning: undefined, error: undefined };
  if (!cliModel) return none;
  return { ...none, ...hostSync<object>("registry.cli", { registry, provider: cliProvider, model: cliModel }) };
}

export class ModelRuntime {
  readonly [REGISTRY]: number;
  #models: ModelRegistry;
  /** A store of the caller; the program has a copy of its content. */
  #store: CredentialStore | undefined;
  /** The last content of the store, in JSON. */
  #copied = new Map<string, string>();
  #runtimeKeys = new Set<string>();

  constructor(key: unknown, models: ModelRegistry, store?: CredentialStore) {
    if (key !== MADE) throw new TypeError("new ModelRuntime() is not supported: use ModelRuntime.create()");
    this[REGISTRY] = models[REGISTRY];
    this.#models = models;
    this.#store = store;
  }

  static async create(options: CreateOptions = {}): Promise<ModelRuntime> {
    const { credentials, modelsPath, signal } = options;
    signal?.throwIfAborted();
    const { join } = path();
    const auth = credentials ? AuthStorage.inMemory() : AuthStorage.create(options.authPath);
    const models = modelsPath === null
      ? ModelRegistry.inMemory(auth)
      : ModelRegistry.create(auth, modelsPath ?? join(getAgentDir(), "models.json"));
    const runtime = new ModelRuntime(MADE, models, credentials);
    await runtime.#synchronise();
    return runtime;
  }

  /** Wraps an existing registry: that of the session. */
  static forRegistry(models: ModelRegistry): ModelRuntime {
    return new ModelRuntime(MADE, models);
  }

  /** This runtime in the form of older versions. */
  get registry(): ModelRegistry {
    return this.#models;
  }

  get #auth(): AuthStorage {
    return this.#models.authStorage;
  }

  /** Copies changes of the caller's store. */
  async #synchronise(): Promise<void> {
    if (!this.#store) return;
    const listed = new Set((await this.#store.list()).map(({ providerId }) => providerId));
    for (const provider of this.#copied.keys()) {
      if (listed.has(provider)) continue;
      this.#auth.remove(provider);
      this.#copied.delete(provider);
    }
    for (const provider of listed) {
      const credential = await this.#store.read(provider);
      const json = JSON.stringify(credential);
      if (!credential || this.#copied.get(provider) === json) continue;
      this.#auth.set(provider, credential);
      this.#copied.set(provider, json);
    }
  }

  /** Stores a sign-in that was renewed. */
  async #keepRenewed(provider: string): Promise<void> {
    const now = this.#store && this.#auth.get(provider);
    const json = JSON.stringify(now);
    if (!now || this.#copied.get(provider) === json) return;
    await this.#store?.modify(provider, async () => now as Credential);
    this.#copied.set(provider, json);
  }

  async #write(provider: string, credential: Credential): Promise<void> {
    if (this.#store) await this.#store.modify(provider, async () => credential);
    else this.#auth.set(provider, credential);
    await this.#synchronise();
  }

  getModels(provider?: string): Model[] {
    const all = this.#models.getAll();
    return provider === undefined ? all : all.filter((model) => model.provider === provider);
  }

  getModel(provider: string, id: string): Model | undefined {
    return this.#models.find(provider, id);
  }

  /** `classifier` and `image` are types of newer versions: no such models exist here. */
  getModelsOfType(type: string, provider?: string): Model[] {
    return type === "chat" ? this.getModels(provider) : [];
  }

  getModelOfType(type: string, provider: string, id: string): Model | undefined {
    return type === "chat" ? this.getModel(provider, id) : undefined;
  }

  getAllModels(provider?: string): Model[] {
    return this.getModels(provider);
  }

  getPhysicalModel(provider: string, id: string): Model | undefined {
    return this.getModel(provider, id);
  }

  getAvailableSnapshot(): Model[] {
    return this.#models.getAvailable();
  }

  async getAvailable(provider?: string, { signal }: Operation = {}): Promise<Model[]> {
    signal?.throwIfAborted();
    await this.#synchronise();
    return this.getAvailableSnapshot().filter((model) => provider === undefined || model.provider === provider);
  }

  async getAvailableOfType(type: string, provider?: string, options?: Operation): Promise<Model[]> {
    return type === "chat" ? await this.getAvailable(provider, options) : [];
  }

  getAllAvailable(provider?: string, options?: Operation): Promise<Model[]> {
    return this.getAvailable(provider, options);
  }

  getProvider(id: string): unknown {
    return this.#models.getRegisteredNativeProvider(id) ?? this.#models.getProvider(id);
  }

  getProviders(): unknown[] {
    const ids = new Set(this.getModels().map(({ provider }) => provider));
    return [...ids].map((id) => this.getProvider(id));
  }

  getError(): string | undefined {
    return this.#models.getError() ?? undefined;
  }

  getRegisteredProviderIds(): string[] {
    return this.#models.getRegisteredProviderIds();
  }

  getRegisteredProviderConfig(id: string): unknown {
    return this.#models.getRegisteredProviderConfig(id);
  }

  getRegisteredNativeProvider(id: string): unknown {
    return this.#models.getRegisteredNativeProvider(id);
  }

  isUsingOAuth(provider: string): boolean {
    return this.#models.isUsingOAuth({ provider, id: "" });
  }

  /** Every sign-in counts as a subscription. */
  isUsingSubscription(provider: string): boolean {
    return this.isUsingOAuth(provider);
  }

  hasConfiguredAuth(provider: string): boolean {
    return this.#models.hasConfiguredAuth({ provider, id: "" });
  }

  getProviderAuthStatus(provider: string): { configured: boolean; source?: string; label?: string } {
    return this.#models.getProviderAuthStatus(provider);
  }

  #sourceOf(provider: string): string | undefined {
    if (this.isUsingOAuth(provider)) return "OAuth";
    const { source, label } = this.getProviderAuthStatus(provider);
    return label ?? (source && (SOURCES[source] ?? source));
  }

  async checkAuth(
    provider: string,
    { signal }: Operation = {},
  ): Promise<{ type: "api_key" | "oauth"; source?: string } | undefined> {
    signal?.throwIfAborted();
    await this.#synchronise();
    if (!this.hasConfiguredAuth(provider)) return undefined;
    return { type: this.isUsingOAuth(provider) ? "oauth" : "api_key", source: this.#sourceOf(provider) };
  }

  /** The credentials of a request; `undefined` if nothing is configured. */
  async getAuth(target: string | Model, overrides: AuthOverrides = {}): Promise<AuthResult | undefined> {
    const { signal, apiKey, env } = overrides;
    signal?.throwIfAborted();
    if (env && Object.keys(env).length > 0) {
      throw new Error(
        "ModelRuntime.getAuth: the override `env` is not available in this version of pi: give `apiKey`, or set the " +
          "variables in process.env",
      );
    }
    await this.#synchronise();
    const provider = typeof target === "string" ? target : target.provider;
    if (apiKey === undefined && !this.hasConfiguredAuth(provider)) return undefined;
    let auth: AuthResult["auth"];
    if (typeof target === "string") {
      auth = { apiKey: apiKey ?? await this.#models.getApiKeyForProvider(target) };
    } else {
      const found = await this.#models.getApiKeyAndHeaders(target);
      if (!found.ok) throw new Error(found.error);
      auth = { apiKey: apiKey ?? found.apiKey, headers: found.headers };
    }
    await this.#keepRenewed(provider);
    return { auth, source: this.#sourceOf(provider) };
  }

  async setRuntimeApiKey(provider: string, apiKey: string, { signal }: Operation = {}): Promise<void> {
    signal?.throwIfAborted();
    this.#auth.setRuntimeApiKey(provider, apiKey);
    this.#runtimeKeys.add(provider);
  }

  async removeRuntimeApiKey(provider: string, { signal }: Operation = {}): Promise<void> {
    signal?.throwIfAborted();
    this.#auth.removeRuntimeApiKey(provider);
    this.#runtimeKeys.delete(provider);
  }

  async settleCredentialWrites(): Promise<void> {
    // Every write is done when the call returns.
  }

  async listCredentials({ signal }: Operation = {}): Promise<CredentialInfo[]> {
    signal?.throwIfAborted();
    await this.#synchronise();
    const stored = Object.entries(this.#auth.getAll()) as [string, Credential][];
    const listed = stored.map(([providerId, { type }]) => ({ providerId, type }));
    const others = [...this.#runtimeKeys].filter((id) => !listed.some(({ providerId }) => providerId === id));
    return [...listed, ...others.map((providerId) => ({ providerId, type: "api_key" as const }))];
  }

  async login(provider: string, type: "api_key" | "oauth", interaction: Interaction): Promise<Credential> {
    interaction.signal?.throwIfAborted();
    let credential: Credential;
    if (type === "oauth") {
      credential = { type, ...await signInWith(provider, callbacksOf(interaction)) };
    } else {
      const message = `Enter ${this.#models.getProviderDisplayName(provider)} API key`;
      credential = { type: "api_key", key: await interaction.prompt({ type: "secret", message }) };
    }
    interaction.signal?.throwIfAborted();
    await this.#write(provider, credential);
    return credential;
  }

  async logout(provider: string, { signal }: Operation = {}): Promise<void> {
    signal?.throwIfAborted();
    if (this.#store) await this.#store.delete(provider);
    else this.#auth.logout(provider);
    await this.#synchronise();
  }

  async refresh(options?: object): Promise<object> {
    await this.#synchronise();
    return await this.#models.refresh(options);
  }

  registerProvider(id: string, config: unknown): void {
    this.#models.registerProvider(id, config);
  }

  registerNativeProvider(provider: unknown): void {
    this.#models.registerProvider(provider, undefined);
  }

  unregisterProvider(id: string): void {
    this.#models.unregisterProvider(id);
  }

  stream(model: Model, context: unknown, options?: StreamOptions): AssistantMessageEventStream {
    return this.streamSimple(model, context, options);
  }

  streamSimple(model: Model, context: unknown, options?: StreamOptions): AssistantMessageEventStream {
    if (!this.#store) return this.#models.streamSimple(model, context, options);
    const stream = new AssistantMessageEventStream();
    const pass = async () => {
      await this.#synchronise();
      for await (const event of this.#models.streamSimple(model, context, options)) stream.push(event);
      await this.#keepRenewed(model.provider);
    };
    pass()
      .catch((error) => stream.push(failedResponse(model, error)))
      .finally(() => stream.end());
    return stream;
  }

  complete(model: Model, context: unknown, options?: StreamOptions): Promise<unknown> {
    return this.streamSimple(model, context, options).result();
  }

  completeSimple(model: Model, context: unknown, options?: StreamOptions): Promise<unknown> {
    return this.streamSimple(model, context, options).result();
  }
}

/** Members that need features which this version lacks. */
const UNSUPPORTED_MEMBERS: Record<string, string> = {
  streamDeferred: "answers that are fetched later are not known to it",
  fetchDeferred: "answers that are fetched later are not known to it",
  cancelDeferred: "answers that are fetched later are not known to it",
  generateImages: "it has no models that make pictures",
  classify: "it has no models that classify",
  registerVirtualModel: "it has no virtual models; register a provider with a streamSimple that chooses",
  unregisterVirtualModel: "it has no virtual models",
  resolveModel: "it has no virtual models",
};
for (const [name, reason] of Object.entries(UNSUPPORTED_MEMBERS)) {
  Object.defineProperty(ModelRuntime.prototype, name, {
    configurable: true,
    writable: true,
    value() {
      throw new Error(`ModelRuntime.${name}() is not available in this version of pi: ${reason}`);
    },
  });
}
