// `refreshModels` of providers, from newer versions: an extension that registers a provider
// supplies its models later. The function is called twice, as there: for the models that are known
// offline, while the extension loads, and for new ones when the provider is active and has a key.
import { host, hostSync } from "ext:js_runtime/bridge/host.ts";
import { abort, AbortController, clearTimeout, isArray, Promise, race, SafeMap, setTimeout } from "ext:js_runtime/primordials.ts";
import { report } from "ext:js_runtime/bridge/registry.ts";
import { ModelRegistry } from "pi:pi-coding-agent/models/registry.ts";
import { getAgentDir } from "pi:pi-coding-agent/config.ts";
import { path } from "pi:node.ts";

/** A list of models that is stored for the next start. */
interface Stored {
  models: readonly unknown[];
  lastModified?: number;
  checkedAt?: number;
  etag?: string;
}

interface Publication {
  /** `null` deletes the stored list. */
  persist?: Stored | null;
  update?: () => void;
}

interface Context {
  credential?: unknown;
  stored?: Stored;
  allowNetwork: boolean;
  force?: boolean;
  signal: AbortSignal;
  publish(publication: Publication): Promise<boolean>;
}

export interface Refresher {
  extension: number;
  registry: number;
  name: string;
  /** Calls the function of the extension. */
  callRefresh(context: Context): unknown;
  /** The models after the call if it returned none; `undefined` if nothing is new. */
  models(result: unknown): readonly unknown[] | undefined;
  /** Replaces the models of the provider. */
  setModels(models: readonly unknown[]): void;
}

/** Milliseconds for requests over the network. */
const REFRESH_TIMEOUT = 15_000;

interface Running {
  refresher: Refresher;
  controller: AbortController;
}

/** The running refresh, by provider. */
const current = new SafeMap<string, Running>();
/** Refreshes that loading waits for, by extension. */
const restoring = new SafeMap<number, Promise<void>>();

const keyOf = ({ registry, name }: { registry: number; name: string }) => `${registry}:${name}`;

/** The file of newer versions, in their format and with their lock. */
const storeFile = () => path().join(getAgentDir(), "models-store.json");

function storedOf(name: string): Stored | undefined {
  const { settings } = hostSync<{ settings?: Record<string, Stored> }>("settings.load", { path: storeFile() });
  return settings?.[name];
}

async function refreshOnce(refresher: Refresher, controller: AbortController, more: Partial<Context>): Promise<void> {
  const { name } = refresher;
  const { signal } = controller;
  const context: Context = {
    allowNetwork: false,
    stored: storedOf(name),
    ...more,
    signal,
    async publish({ persist, update }) {
      if (signal.aborted) return false;
      if (persist !== undefined) {
        const changes = [{ key: name, value: persist ?? undefined }];
        hostSync("settings.change", { path: storeFile(), changes });
      }
      update?.();
      return true;
    },
  };
  const result = await refresher.callRefresh(context);
  const models = refresher.models(result);
  if (models && !signal.aborted) refresher.setModels(models);
}

/** The credential for network requests: a renewed sign-in, or a key; `undefined` without either. */
async function credentialOf({ registry, name }: Refresher): Promise<unknown> {
  const models = new ModelRegistry(registry);
  const key = await models.getApiKeyForProvider(name);
  if (key === undefined || key === null) return undefined;
  const stored = models.authStorage.get(name);
  return stored?.type === "oauth" ? stored : { type: "api_key", key };
}

async function refreshOnline(refresher: Refresher, controller: AbortController, force?: boolean): Promise<void> {
  const credential = await credentialOf(refresher);
  if (!credential || controller.signal.aborted) return;
  let timer = 0;
  const timedOut = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`it took longer than ${REFRESH_TIMEOUT / 1000} s and was given up`));
      abort(controller);
    }, REFRESH_TIMEOUT);
  });
  try {
    await race(refreshOnce(refresher, controller, { allowNetwork: true, credential, force }), timedOut);
  } finally {
    clearTimeout(timer);
  }
}

function reportFailure({ extension, name }: Refresher, error: unknown): void {
  const why = error instanceof Error ? error.message : `${error}`;
  report(extension, "register_provider", new Error(`refreshModels of the provider "${name}": ${why}`));
}

async function refreshOffline(refresher: Refresher, controller: AbortController, before?: Promise<void>): Promise<void> {
  try {
    await refreshOnce(refresher, controller, {});
  } catch (error) {
    reportFailure(refresher, error);
  }
  await before;
}

async function refreshOnlineLater(refresher: Refresher, controller: AbortController, first: Promise<void>): Promise<void> {
  try {
    await first;
    if (refresher.registry === 0) {
      const { fetches } = await host<{ fetches: boolean }>("providers.active", {});
      if (!fetches) return;
    }
    await refreshOnline(refresher, controller);
  } catch (error) {
    // A refresh that another one has replaced was stopped on purpose.
    if (current.get(keyOf(refresher))?.controller === controller) reportFailure(refresher, error);
  }
}

/** Stops the previous refresh of the same provider, whose result no longer counts. */
function begin(refresher: Refresher): AbortController {
  stopRefresh(refresher);
  const controller = new AbortController();
  current.set(keyOf(refresher), { refresher, controller });
  return controller;
}

/** Starts a refresh, which replaces a running one of the same provider. */
export function startRefresh(refresher: Refresher): void {
  const controller = begin(refresher);
  const first = refreshOffline(refresher, controller, restoring.get(refresher.extension));
  restoring.set(refresher.extension, first);
  refreshOnlineLater(refresher, controller, first);
}

export function stopRefresh(provider: { registry: number; name: string }): void {
  const before = current.get(keyOf(provider));
  if (before) abort(before.controller);
  current.delete(keyOf(provider));
}

export interface RefreshOptions {
  allowNetwork?: boolean;
  force?: boolean;
  providers?: readonly string[];
  signal?: AbortSignal;
}

/** Implements `modelRegistry.refresh()`: the caller gets the errors. */
export async function refreshAll(registry: number, options: RefreshOptions = {}): Promise<object> {
  const { allowNetwork = true, force, providers, signal } = options;
  const errors = new Map<string, unknown>();
  const refresh = async (refresher: Refresher) => {
    const controller = begin(refresher);
    signal?.addEventListener("abort", () => abort(controller));
    try {
      await (allowNetwork ? refreshOnline(refresher, controller, force) : refreshOnce(refresher, controller, { force }));
    } catch (error) {
      errors.set(refresher.name, error);
    }
  };
  const all: Promise<void>[] = [];
  const chosen: Refresher[] = [];
  current.forEach(({ refresher }) => {
    const { name } = refresher;
    if (refresher.registry === registry && (providers?.includes(name) ?? true)) chosen.push(refresher);
  });
  for (const refresher of chosen) all.push(refresh(refresher));
  for (const running of all) await running;
  return { aborted: signal?.aborted === true, errors };
}

/** Waits until providers registered during loading know the models that they know offline. */
export async function modelsRestored(extension: number): Promise<void> {
  const first = restoring.get(extension);
  restoring.delete(extension);
  await first;
}

export const modelsOf = (result: unknown): readonly unknown[] | undefined =>
  isArray(result) ? result : undefined;
