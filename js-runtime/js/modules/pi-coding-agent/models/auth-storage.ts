// `AuthStorage`: keys and sign-ins, in the program's own store.
import { host, hostSync } from "pi:host.ts";
import { fs, path } from "pi:node.ts";
import { getAgentDir } from "pi:pi-coding-agent/config.ts";
import { getOAuthProviders, signInWith } from "pi:pi-ai/logins.ts";
import type { LoginCallbacks } from "pi:pi-ai/oauth-providers.ts";

type Credential = Record<string, unknown> & { type?: string };
type Data = Record<string, Credential>;
type Locked<T> = { result: T; next?: string };

/** The functions that call the program; a context uses its own. */
export interface Calls {
  host: typeof host;
  hostSync: typeof hostSync;
}

/** A backend for a file; the program itself reads and writes it. */
export class FileAuthStorageBackend {
  readonly authPath: string;

  constructor(authPath: string = path().join(getAgentDir(), "auth.json")) {
    this.authPath = authPath;
  }

  withLock<T>(fn: (current: string | undefined) => Locked<T>): T {
    const registry = openRegistry({ auth: this.authPath });
    const { result, next } = fn(contentOf(registry));
    if (next !== undefined) replaceAll(registry, JSON.parse(next));
    return result;
  }

  async withLockAsync<T>(fn: (current: string | undefined) => Promise<Locked<T>>): Promise<T> {
    const registry = openRegistry({ auth: this.authPath });
    const { result, next } = await fn(contentOf(registry));
    if (next !== undefined) replaceAll(registry, JSON.parse(next));
    return result;
  }
}

export class InMemoryAuthStorageBackend {
  private value: string | undefined;

  withLock<T>(fn: (current: string | undefined) => Locked<T>): T {
    const { result, next } = fn(this.value);
    if (next !== undefined) this.value = next;
    return result;
  }

  async withLockAsync<T>(fn: (current: string | undefined) => Promise<Locked<T>>): Promise<T> {
    const { result, next } = await fn(this.value);
    if (next !== undefined) this.value = next;
    return result;
  }
}

/** The entry of a provider in a file of credentials, unchanged: a sign-in may have expired. */
export function readStoredCredential(
  providerId: string,
  authPath: string = path().join(getAgentDir(), "auth.json"),
): Credential | undefined {
  try {
    const text = fs().readFileSync(authPath, "utf8").replace(/^\ufeff/, "");
    return (JSON.parse(text) as Data)[providerId];
  } catch {
    return undefined;
  }
}

type Backend = Pick<InMemoryAuthStorageBackend, "withLock">;

function openRegistry(files: { auth?: string; models?: string; data?: Data }): number {
  return hostSync<number>("registry.open", files);
}

const allOf = (registry: number) => hostSync<Data>("registry.auth.all", { registry });
const contentOf = (registry: number) => JSON.stringify(allOf(registry), null, 2);

/** Writes entry by entry, each under the lock, because other processes may write, too. */
function replaceAll(registry: number, data: Data): void {
  const before = allOf(registry);
  for (const provider of Object.keys(before)) {
    if (!(provider in data)) hostSync("registry.auth.remove", { registry, provider });
  }
  for (const [provider, credential] of Object.entries(data)) {
    if (JSON.stringify(before[provider]) === JSON.stringify(credential)) continue;
    hostSync("registry.auth.set", { registry, provider, credential });
  }
}

/** The key of the program's number for a store; a symbol cannot clash with names in subclasses. */
export const REGISTRY = Symbol("registry");

export class AuthStorage {
  readonly [REGISTRY]: number;
  private _calls: Calls;
  /** A backend of the caller; the program has a copy of its content. */
  private _backend: Backend | undefined;
  private _fallback: ((provider: string) => string | undefined) | undefined;
  private _errors: Error[] = [];

  constructor(registry: number, calls: Calls = { host, hostSync }, backend?: Backend) {
    this[REGISTRY] = registry;
    this._calls = calls;
    this._backend = backend;
  }

  static create(authPath?: string): AuthStorage {
    const auth = authPath ?? path().join(getAgentDir(), "auth.json");
    return new AuthStorage(openRegistry({ auth }));
  }

  static fromStorage(storage: Backend): AuthStorage {
    if (storage instanceof FileAuthStorageBackend) return AuthStorage.create(storage.authPath);
    const made = new AuthStorage(openRegistry({ data: {} }), undefined, storage);
    made.reload();
    return made;
  }

  static inMemory(data: Data = {}): AuthStorage {
    return new AuthStorage(openRegistry({ data }));
  }

  private _call<T>(method: string, args: object = {}): T {
    return this._calls.hostSync<T>(`registry.${method}`, { registry: this[REGISTRY], ...args });
  }

  private _try(work: () => void): void {
    try {
      work();
    } catch (error) {
      this._errors.push(error as Error);
    }
  }

  private _data(): Data {
    return this._call<Data>("auth.all");
  }

  get(provider: string): Credential | undefined {
    return this._data()[provider];
  }

  set(provider: string, credential: Credential): void {
    this._try(() => {
      this._call("auth.set", { provider, credential });
      this._store((data) => (data[provider] = credential));
    });
  }

  remove(provider: string): void {
    this._try(() => {
      this._call("auth.remove", { provider });
      this._store((data) => delete data[provider]);
    });
  }

  private _store(change: (data: Data) => void): void {
    this._backend?.withLock((current) => {
      const data = current ? JSON.parse(current) : {};
      change(data);
      return { result: undefined, next: JSON.stringify(data, null, 2) };
    });
  }

  list(): string[] {
    return Object.keys(this._data());
  }

  has(provider: string): boolean {
    return provider in this._data();
  }

  getAll(): Data {
    return this._data();
  }

  hasAuth(provider: string): boolean {
    return this._call<boolean>("auth.has", { provider }) || Boolean(this._fallback?.(provider));
  }

  reload(): void {
    this._try(() => {
      if (!this._backend) {
        this._call("auth.reload");
        const error = this._call<string | undefined>("auth.error");
        if (error) throw new Error(error);
        return;
      }
      const text = this._backend.withLock<string | undefined>((current) => ({ result: current }));
      replaceAll(this[REGISTRY], text ? JSON.parse(text) : {});
    });
  }

  setRuntimeApiKey(provider: string, apiKey: string): void {
    this._call("auth.runtime", { provider, key: apiKey });
  }

  removeRuntimeApiKey(provider: string): void {
    this._call("auth.runtime", { provider, key: "" });
  }

  setFallbackResolver(resolver: (provider: string) => string | undefined): void {
    this._fallback = resolver;
  }

  drainErrors(): Error[] {
    return this._errors.splice(0);
  }

  async getApiKey(
    provider: string,
    options?: { includeFallback?: boolean },
  ): Promise<string | undefined> {
    const args = { registry: this[REGISTRY], provider };
    const key = await this._calls.host<string | undefined>("registry.auth.key", args);
    // The sign-in may have been renewed.
    const stored = this.get(provider);
    if (this._backend && stored) this._try(() => this._store((data) => (data[provider] = stored)));
    if (key !== undefined || options?.includeFallback === false) return key;
    return this._fallback?.(provider);
  }

  async login(provider: string, callbacks: LoginCallbacks): Promise<void> {
    const credentials = await signInWith(provider, callbacks);
    this.set(provider, { type: "oauth", ...credentials });
  }

  logout(provider: string): void {
    this.remove(provider);
  }

  getOAuthProviders(): ReturnType<typeof getOAuthProviders> {
    return getOAuthProviders();
  }
}
