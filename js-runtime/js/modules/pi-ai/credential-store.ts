// Credentials that newer versions keep in memory, and the interface of such stores.

export type Credential = { type: "api_key" | "oauth"; [member: string]: unknown };
export type CredentialInfo = { providerId: string; type: Credential["type"] };

interface Options {
  signal?: AbortSignal;
}

export interface CredentialStore {
  read(providerId: string, options?: Options): Promise<Credential | undefined>;
  list(options?: Options): Promise<readonly CredentialInfo[]>;
  /** The only way to write: `change` gets the current value, and `undefined` leaves it as it is. */
  modify(
    providerId: string,
    change: (current: Credential | undefined) => Promise<Credential | undefined>,
    options?: Options,
  ): Promise<Credential | undefined>;
  delete(providerId: string, options?: Options): Promise<void>;
}

export class InMemoryCredentialStore implements CredentialStore {
  #credentials = new Map<string, Credential>();
  /** Serialises the changes of each provider. */
  #last = new Map<string, Promise<unknown>>();

  #inTurn<T>(providerId: string, { signal }: Options, change: () => Promise<T>): Promise<T> {
    const before = this.#last.get(providerId) ?? Promise.resolve();
    const done = before.then(() => {
      signal?.throwIfAborted();
      return change();
    });
    // The caller gets the error; the next operation runs all the same.
    this.#last.set(providerId, done.catch(() => undefined));
    return done;
  }

  async read(providerId: string, { signal }: Options = {}): Promise<Credential | undefined> {
    signal?.throwIfAborted();
    return this.#credentials.get(providerId);
  }

  async list({ signal }: Options = {}): Promise<CredentialInfo[]> {
    signal?.throwIfAborted();
    return [...this.#credentials].map(([providerId, { type }]) => ({ providerId, type }));
  }

  modify(
    providerId: string,
    change: (current: Credential | undefined) => Promise<Credential | undefined>,
    options: Options = {},
  ): Promise<Credential | undefined> {
    return this.#inTurn(providerId, options, async () => {
      const current = this.#credentials.get(providerId);
      const next = await change(current);
      options.signal?.throwIfAborted();
      if (next !== undefined) this.#credentials.set(providerId, next);
      return next ?? current;
    });
  }

  delete(providerId: string, options: Options = {}): Promise<void> {
    return this.#inTurn(providerId, options, async () => void this.#credentials.delete(providerId));
  }
}
