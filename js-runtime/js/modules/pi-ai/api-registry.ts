// The wire APIs by name: those of the program, and those that extensions implement. Both sides know
// all of them: an extension may stream through an API of the program, and the program through one
// of an extension.
import { hostSync } from "pi:host.ts";
import type { AssistantMessageEventStream } from "pi:pi-ai/event-stream.ts";
import type { Model } from "pi:pi-ai/models.ts";
import { throughProgram } from "pi:pi-ai/program.ts";

export interface StreamOptions {
  signal?: AbortSignal;
  [option: string]: unknown;
}

export type Stream = (
  model: Model,
  context: unknown,
  options?: StreamOptions,
) => AssistantMessageEventStream;

export interface ApiProvider {
  api: string;
  stream: Stream;
  streamSimple: Stream;
}

/** The functions that the program calls, by number. */
export const apiFunctions = new Map<number, Stream>();

interface Registered {
  provider: ApiProvider;
  sourceId?: string;
  id: number;
}

/** Registrations by name, in order; the last one counts. */
const registered = new Map<string, Registered[]>();
/** Whether `clearApiProviders` was called, which hides the program's APIs from extensions. */
let cleared = false;
let last = 0;

/** Refuses models of another API, which the provider would misunderstand. */
function withModelCheck(api: string, stream: Stream): Stream {
  return (model, context, options) => {
    if (model.api !== api) throw new Error(`Mismatched api: ${model.api} expected ${api}`);
    return stream(model, context, options);
  };
}

/** Registers an API in JavaScript only. The program calls its function by the returned number. */
export function keepApi(provider: ApiProvider, sourceId?: string): number {
  const { api, stream, streamSimple } = provider;
  for (const [name, fn] of Object.entries({ stream, streamSimple })) {
    if (typeof fn !== "function") {
      throw new TypeError(`registerApiProvider: ${name} of "${api}" must be a function`);
    }
  }
  last += 1;
  apiFunctions.set(last, streamSimple);
  const guard = { api, stream: withModelCheck(api, stream), streamSimple: withModelCheck(api, streamSimple) };
  const all = registered.get(api) ?? [];
  registered.set(api, [...all, { provider: guard, sourceId, id: last }]);
  return last;
}

function forget(matches: (entry: Registered) => boolean): void {
  for (const [api, entries] of registered) {
    const remaining = entries.filter((entry) => !matches(entry));
    if (remaining.length === entries.length) continue;
    for (const entry of entries) if (matches(entry)) apiFunctions.delete(entry.id);
    if (remaining.length > 0) registered.set(api, remaining);
    else registered.delete(api);
  }
}

/** Removes functions that the program does not call any more. */
export function forgetStreams(ids: number[]): void {
  forget((entry) => ids.includes(entry.id));
}

/** Removes the APIs of a source that the program has removed already. */
export function forgetApis(sourceId: string): void {
  forget((entry) => entry.sourceId === sourceId);
}

export function registerApiProvider(provider: ApiProvider, sourceId?: string): void {
  const id = keepApi(provider, sourceId);
  hostSync("ai.registerApi", { api: provider.api, id, sourceId });
}

export function unregisterApiProviders(sourceId: string): void {
  forgetApis(sourceId);
  hostSync("ai.unregisterApis", { sourceId });
}

const programs = (): string[] => (cleared ? [] : hostSync<string[]>("ai.apis"));

function ofProgram(api: string): ApiProvider {
  return {
    api,
    stream: withModelCheck(api, throughProgram(api, false)),
    streamSimple: withModelCheck(api, throughProgram(api, true)),
  };
}

/** The API of that name that an extension implements. */
export const ownApi = (api: string): ApiProvider | undefined => registered.get(api)?.at(-1)?.provider;

export function getApiProvider(api: string): ApiProvider | undefined {
  const own = ownApi(api);
  if (own) return own;
  return programs().includes(api) ? ofProgram(api) : undefined;
}

export function getApiProviders(): ApiProvider[] {
  const own = Array.from(registered.values(), (entries) => entries.at(-1)!.provider);
  const others = programs().filter((api) => !registered.has(api));
  return [...others.map(ofProgram), ...own];
}

/** Hides all APIs from extensions; the agent keeps the program's own. */
export function clearApiProviders(): void {
  forget(() => true);
  hostSync("ai.unregisterApis", {});
  cleared = true;
}

export function registerBuiltInApiProviders(): void {
  cleared = false;
  // A registration of the program's own API replaces that of an extension.
  for (const api of programs()) {
    const own = registered.get(api);
    if (own) {
      forgetStreams(own.map(({ id }) => id));
      hostSync("ai.unregisterApi", { api });
    }
  }
}

export function resetApiProviders(): void {
  clearApiProviders();
  registerBuiltInApiProviders();
}
