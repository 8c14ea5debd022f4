// `ModelRegistry`: the models that can be named, and what it takes to use them.
// `ctx.modelRegistry` is the session's own; others can be made beside it.
import { host, hostSync } from "pi:host.ts";
import { path } from "pi:node.ts";
import type { StreamOptions } from "pi:pi-ai/api-registry.ts";
import { AssistantMessageEventStream } from "pi:pi-ai/event-stream.ts";
import type { Model } from "pi:pi-ai/models.ts";
import { failed } from "pi:pi-ai/program.ts";
import { completeSimple, stream, streamSimple } from "pi:pi-ai/stream.ts";
import { AuthStorage, type Calls } from "pi:pi-coding-agent/auth-storage.ts";
import { getAgentDir } from "pi:pi-coding-agent/config.ts";

interface Named {
  provider: string;
  id: string;
}

export type ResolvedAuth =
  | { ok: true; apiKey?: string; headers?: Record<string, string> }
  | { ok: false; error: string };

interface Provider {
  id: string;
  name: string;
  baseUrl: string;
  getModels(): Model[];
  stream: typeof stream;
  streamSimple: typeof streamSimple;
}

/** How providers are registered: the bridge's part, which has the functions. */
interface Registrar {
  register(registry: number, name: unknown, config: unknown): void;
  unregister(registry: number, name: string): void;
  /** What was given last for each name. */
  given(registry: number): ReadonlyMap<string, unknown>;
}

let registrar: Registrar | undefined;

export function setRegistrar(to: Registrar): void {
  registrar = to;
}

const OWN: Calls = { host, hostSync };

export class ModelRegistry {
  readonly authStorage: AuthStorage;
  #registry: number;
  #calls: Calls;

  constructor(registry: number, calls: Calls = OWN, authStorage?: AuthStorage) {
    this.#registry = registry;
    this.#calls = calls;
    this.authStorage = authStorage ?? new AuthStorage(registry, calls);
  }

  static create(
    authStorage: AuthStorage,
    modelsJsonPath: string = path().join(getAgentDir(), "models.json"),
  ): ModelRegistry {
    hostSync("registry.models", { registry: authStorage.registry, models: modelsJsonPath });
    return new ModelRegistry(authStorage.registry, OWN, authStorage);
  }

  static inMemory(authStorage: AuthStorage): ModelRegistry {
    return new ModelRegistry(authStorage.registry, OWN, authStorage);
  }

  #ask<T>(method: string, args: object = {}): T {
    return this.#calls.hostSync<T>(`registry.${method}`, { registry: this.#registry, ...args });
  }

  #wait<T>(method: string, args: object): Promise<T> {
    return this.#calls.host<T>(`registry.${method}`, { registry: this.#registry, ...args });
  }

  refresh = (): void => this.#ask("refresh");
  getError = (): string | undefined => this.#ask("error");
  getAll = (): Model[] => this.#ask("all");
  getAvailable = (): Model[] => this.#ask("available");
  find = (provider: string, id: string): Model | undefined => this.#ask("find", { provider, id });
  hasConfiguredAuth = ({ provider }: Named): boolean => this.#ask("hasAuth", { provider });
  isUsingOAuth = ({ provider }: Named): boolean => this.#ask("usesOAuth", { provider });

  getApiKeyAndHeaders(model: Named): Promise<ResolvedAuth> {
    return this.#wait("credentials", { model });
  }

  getApiKeyForProvider(provider: string): Promise<string | undefined> {
    return this.#wait("apiKey", { provider });
  }

  /** The name of 0.5x. */
  getApiKey({ provider }: Named): Promise<string | undefined> {
    return this.getApiKeyForProvider(provider);
  }

  registerProvider(name: unknown, config: unknown): void {
    registrar!.register(this.#registry, name, config);
  }

  unregisterProvider(name: string): void {
    registrar!.unregister(this.#registry, name);
  }

  getRegisteredProviderIds(): string[] {
    return this.#ask("registered");
  }

  /** As it was given; `undefined` of a provider that no extension has registered. */
  getRegisteredProviderConfig(name: string): unknown {
    const isThere = this.getRegisteredProviderIds().includes(name);
    return isThere ? registrar!.given(this.#registry).get(name) : undefined;
  }

  getProviderDisplayName = (provider: string): string => this.#ask("name", { provider });

  getProviderAuthStatus(provider: string): { configured: boolean; source?: string } {
    const source = this.#ask<string | null>("authSource", { provider });
    return source ? { configured: true, source } : { configured: false };
  }

  async getProviderAuth(provider: string): Promise<{ auth: { apiKey: string } } | undefined> {
    const apiKey = await this.getApiKeyForProvider(provider);
    return apiKey ? { auth: { apiKey } } : undefined;
  }

  /** Its models, and how they are asked with a key that the caller has. */
  getProvider(id: string): Provider | undefined {
    const models = () => this.getAll().filter(({ provider }) => provider === id);
    const [first] = models();
    if (!first) return undefined;
    const name = this.getProviderDisplayName(id);
    return { id, name, baseUrl: first.baseUrl as string, getModels: models, stream, streamSimple };
  }

  async #authorised(model: Model, options: StreamOptions): Promise<StreamOptions> {
    const auth = await this.getApiKeyAndHeaders(model);
    if (!auth.ok) throw new Error(auth.error);
    const headers = { ...auth.headers, ...(options.headers as object | undefined) };
    return { apiKey: auth.apiKey, ...options, headers };
  }

  /** Asks the model with the user's key. */
  async complete(model: Model, context: unknown, options: StreamOptions = {}): Promise<unknown> {
    return await completeSimple(model, context, await this.#authorised(model, options));
  }

  stream(model: Model, context: unknown, options: StreamOptions = {}): AssistantMessageEventStream {
    const told = new AssistantMessageEventStream();
    const pass = async () => {
      const events = streamSimple(model, context, await this.#authorised(model, options));
      for await (const event of events) told.push(event);
    };
    pass()
      .catch((error) => told.push(failed(model, error)))
      .finally(() => told.end());
    return told;
  }

  streamSimple = this.stream;
}
