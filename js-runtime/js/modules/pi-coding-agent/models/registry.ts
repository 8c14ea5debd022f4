// `ModelRegistry`: the known models and their credentials. `ctx.modelRegistry` is that of the
// session; extensions can create others.
import { host, hostSync } from "pi:host.ts";
import { path } from "pi:node.ts";
import type { StreamOptions } from "pi:pi-ai/api-registry.ts";
import { AssistantMessageEventStream } from "pi:pi-ai/event-stream.ts";
import type { Model } from "pi:pi-ai/models.ts";
import { failedResponse } from "pi:pi-ai/program.ts";
import { type DescribedProvider, describedProvider } from "pi:pi-ai/builtin-providers.ts";
import { type ProviderAuth, resolveAuth } from "pi:pi-ai/provider-auth.ts";
import { ownAuth } from "pi:pi-ai/providers.ts";
import { completeSimple, streamSimple } from "pi:pi-ai/stream.ts";
import { AuthStorage, type Calls, REGISTRY } from "pi:pi-coding-agent/models/auth-storage.ts";
import { getAgentDir } from "pi:pi-coding-agent/config.ts";
import { ModelRuntime } from "pi:pi-coding-agent/models/runtime.ts";

interface Named {
  provider: string;
  id: string;
}

export type ResolvedAuth =
  | { ok: true; apiKey?: string; headers?: Record<string, string> }
  | { ok: false; error: string };

interface WithModels {
  getModels(): readonly Model[];
}

/** Registers providers: the part of the bridge that has their functions. */
interface Registrar {
  register(registry: number, name: unknown, config: unknown): void;
  unregister(registry: number, name: string): void;
  /** The last configuration of each name. */
  configurations(registry: number): ReadonlyMap<string, unknown>;
  /** Calls `refreshModels` of the providers. */
  refresh(registry: number, options?: object): Promise<object>;
}

let registrar: Registrar | undefined;

export function setRegistrar(to: Registrar): void {
  registrar = to;
}

const HOST_CALLS: Calls = { host, hostSync };

// Not a private member: extensions wrap such objects, in a Proxy or with Object.create().
const CALLS = Symbol("calls");
const RUNTIME = Symbol("runtime");

function call<T>(registry: ModelRegistry, method: string, args: object = {}): T {
  return registry[CALLS].hostSync<T>(`registry.${method}`, { registry: registry[REGISTRY], ...args });
}

function wait<T>(registry: ModelRegistry, method: string, args: object): Promise<T> {
  return registry[CALLS].host<T>(`registry.${method}`, { registry: registry[REGISTRY], ...args });
}

async function withCredentials(
  registry: ModelRegistry,
  model: Model,
  options: StreamOptions,
): Promise<StreamOptions> {
  const auth = await registry.getApiKeyAndHeaders(model);
  if (!auth.ok) throw new Error(auth.error);
  const headers = { ...auth.headers, ...(options.headers as object | undefined) };
  return { apiKey: auth.apiKey, ...options, headers };
}

function streamWith(
  registry: ModelRegistry,
  model: Model,
  context: unknown,
  options: StreamOptions = {},
): AssistantMessageEventStream {
  const stream = new AssistantMessageEventStream();
  const pass = async () => {
    const events = streamSimple(model, context, await withCredentials(registry, model, options));
    for await (const event of events) stream.push(event);
  };
  pass()
    .catch((error) => stream.push(failedResponse(model, error)))
    .finally(() => stream.end());
  return stream;
}

function registeredConfiguration(registry: ModelRegistry, name: string): unknown {
  const isThere = registry.getRegisteredProviderIds().includes(name);
  return isThere ? registrar!.configurations(registry[REGISTRY]).get(name) : undefined;
}

/** The `auth` of a registered object with `getModels()` that supplies the credentials of requests. */
function ownAuthOf(registry: ModelRegistry, name: string): ProviderAuth | undefined {
  const configuration = registeredConfiguration(registry, name);
  return isNative(configuration) ? ownAuth(configuration as Parameters<typeof ownAuth>[0]) : undefined;
}

const isNative = (configuration: unknown) => typeof (configuration as Partial<WithModels> | undefined)?.getModels === "function";

/** Only these models cross into JavaScript, not the whole catalogue. */
const modelsOf = (registry: ModelRegistry, provider: string) => call<Model[]>(registry, "all", { provider });

/** The key and the headers that the settings or an extension configure for a provider. */
async function configuredAuth(registry: ModelRegistry, id: string) {
  const { source } = registry.getProviderAuthStatus(id);
  if (source === undefined || source === "stored" || source === "environment") return undefined;
  const [model] = modelsOf(registry, id);
  const auth = model && await registry.getApiKeyAndHeaders(model);
  if (!auth?.ok || !auth.apiKey) return undefined;
  return { apiKey: auth.apiKey, ...(auth.headers ? { headers: auth.headers } : {}) };
}

/** The models that match `patterns`, as in `--models`, and problems of the patterns. */
export async function resolveModelScopeWithDiagnostics(
  patterns: string[],
  registry: ModelRegistry,
): Promise<{ scopedModels: { model: Model; thinkingLevel?: string }[]; diagnostics: object[] }> {
  if (registry?.[REGISTRY] === undefined) {
    throw new TypeError("resolveModelScopeWithDiagnostics: give a ModelRegistry (ctx.modelRegistry)");
  }
  return call(registry, "scope", { patterns });
}

export class ModelRegistry {
  readonly authStorage: AuthStorage;
  readonly [REGISTRY]: number;
  readonly [CALLS]: Calls;
  private [RUNTIME]: ModelRuntime | undefined;

  /** Takes the number of a registry or, as in newer versions, a `ModelRuntime`. */
  constructor(source: number | ModelRuntime, calls: Calls = HOST_CALLS, authStorage?: AuthStorage) {
    const registry = typeof source === "number" ? source : source?.[REGISTRY];
    if (registry === undefined) {
      throw new TypeError("new ModelRegistry(): give a ModelRuntime, or use ModelRegistry.create()");
    }
    this[REGISTRY] = registry;
    this[CALLS] = calls;
    this.authStorage = authStorage ?? new AuthStorage(registry, calls);
    if (source instanceof ModelRuntime) this[RUNTIME] = source;
  }

  /** This registry in the form of newer versions. */
  get runtime(): ModelRuntime {
    return (this[RUNTIME] ??= ModelRuntime.forRegistry(this));
  }

  static create(
    authStorage: AuthStorage,
    modelsJsonPath: string = path().join(getAgentDir(), "models.json"),
  ): ModelRegistry {
    hostSync("registry.models", { registry: authStorage[REGISTRY], models: modelsJsonPath });
    return new ModelRegistry(authStorage[REGISTRY], HOST_CALLS, authStorage);
  }

  static inMemory(authStorage: AuthStorage): ModelRegistry {
    return new ModelRegistry(authStorage[REGISTRY], HOST_CALLS, authStorage);
  }

  /** Reads the files again before it returns, and calls `refreshModels` of providers. */
  refresh(options?: object): Promise<object> {
    call(this, "refresh");
    return registrar!.refresh(this[REGISTRY], options);
  }

  getError(): string | undefined {
    return call(this, "error");
  }

  getAll(): Model[] {
    return call(this, "all");
  }

  getAvailable(): Model[] {
    return call(this, "available");
  }

  find(provider: string, id: string): Model | undefined {
    return call(this, "find", { provider, id });
  }

  hasConfiguredAuth({ provider }: Named): boolean {
    return call(this, "hasAuth", { provider });
  }

  isUsingOAuth({ provider }: Named): boolean {
    return call(this, "usesOAuth", { provider });
  }

  async getApiKeyAndHeaders(model: Named): Promise<ResolvedAuth> {
    const auth = await wait<ResolvedAuth>(this, "credentials", { model });
    const own = ownAuthOf(this, model.provider);
    if (!auth.ok || !own) return auth;
    try {
      const found = await resolveAuth(own, this.authStorage.get(model.provider));
      if (!found) return { ok: false, error: `Provider is not configured: ${model.provider}` };
      return { ok: true, apiKey: found.auth.apiKey, headers: { ...auth.headers, ...found.auth.headers } };
    } catch (error) {
      return { ok: false, error: error instanceof Error ? error.message : String(error) };
    }
  }

  async getApiKeyForProvider(provider: string): Promise<string | undefined> {
    const key = await wait<string | undefined>(this, "apiKey", { provider });
    const own = ownAuthOf(this, provider);
    if (!own || key === undefined) return key;
    return (await resolveAuth(own, this.authStorage.get(provider)))?.auth.apiKey;
  }

  /** The name in 0.5x. */
  getApiKey({ provider }: Named): Promise<string | undefined> {
    return this.getApiKeyForProvider(provider);
  }

  registerProvider(name: unknown, config: unknown): void {
    registrar!.register(this[REGISTRY], name, config);
  }

  unregisterProvider(name: string): void {
    registrar!.unregister(this[REGISTRY], name);
  }

  getRegisteredProviderIds(): string[] {
    return call(this, "registered");
  }

  /** The configuration as it was passed; `undefined` for a provider that no extension has registered. */
  getRegisteredProviderConfig(name: string): unknown {
    const configuration = registeredConfiguration(this, name);
    return isNative(configuration) ? undefined : configuration;
  }

  /** The registered object with `getModels()`, if the provider is one. */
  getRegisteredNativeProvider(name: string): unknown {
    const configuration = registeredConfiguration(this, name);
    return isNative(configuration) ? configuration : undefined;
  }

  getProviderDisplayName(provider: string): string {
    return call(this, "name", { provider });
  }

  getProviderAuthStatus(provider: string): { configured: boolean; source?: string; label?: string } {
    const source = call<{ source: string; label?: string } | null>(this, "authSource", { provider });
    return source ? { configured: true, ...source } : { configured: false };
  }

  async getProviderAuth(provider: string): Promise<{ auth: { apiKey: string } } | undefined> {
    const apiKey = await this.getApiKeyForProvider(provider);
    return apiKey ? { auth: { apiKey } } : undefined;
  }

  /**
   * The provider with its models, the credentials of its requests, and functions to stream with a
   * key of the caller. A provider that was registered as an object is that object.
   */
  getProvider(id: string): DescribedProvider | undefined {
    const native = this.getRegisteredNativeProvider(id);
    if (native) return native as DescribedProvider;
    const models = () => modelsOf(this, id);
    if (models().length === 0) return undefined;
    return describedProvider({
      id,
      name: this.getProviderDisplayName(id),
      models,
      configured: () => configuredAuth(this, id),
      refreshModels: async (options?: object) => void (await this.refresh({ ...options, providers: [id] })),
    });
  }

  /** Requests a completion with the user's key. */
  async complete(model: Model, context: unknown, options: StreamOptions = {}): Promise<unknown> {
    return await completeSimple(model, context, await withCredentials(this, model, options));
  }

  stream(model: Model, context: unknown, options?: StreamOptions): AssistantMessageEventStream {
    return streamWith(this, model, context, options);
  }

  streamSimple(model: Model, context: unknown, options?: StreamOptions): AssistantMessageEventStream {
    return streamWith(this, model, context, options);
  }
}
