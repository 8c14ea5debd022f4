// Asking models: through an API that an extension has registered, or through the
// program, which knows all others.
import { host, hostSync } from "pi:host.ts";
import {
  type AssistantMessageEvent,
  AssistantMessageEventStream,
} from "pi:pi-ai/event-stream.ts";
import type { Model } from "pi:pi-ai/models.ts";

export interface StreamOptions {
  signal?: AbortSignal;
  [option: string]: unknown;
}

type Stream = (model: Model, context: unknown, options?: StreamOptions) => AssistantMessageEventStream;

export interface ApiProvider {
  api: string;
  stream: Stream;
  streamSimple: Stream;
}

const registered = new Map<string, { provider: ApiProvider; sourceId?: string }>();

/** Refuses models of another API before the provider misunderstands them. */
function guarded(api: string, stream: Stream): Stream {
  return (model, context, options) => {
    if (model.api !== api) throw new Error(`Mismatched api: ${model.api} expected ${api}`);
    return stream(model, context, options);
  };
}

export function registerApiProvider(provider: ApiProvider, sourceId?: string): void {
  const { api } = provider;
  registered.set(api, {
    provider: {
      api,
      stream: guarded(api, provider.stream),
      streamSimple: guarded(api, provider.streamSimple),
    },
    sourceId,
  });
}

/** The APIs of the program are not listed: they have no functions in JavaScript. */
export function getApiProvider(api: string): ApiProvider | undefined {
  return registered.get(api)?.provider;
}

export function getApiProviders(): ApiProvider[] {
  return Array.from(registered.values(), ({ provider }) => provider);
}

export function unregisterApiProviders(sourceId: string): void {
  for (const [api, entry] of registered) {
    if (entry.sourceId === sourceId) registered.delete(api);
  }
}

export function clearApiProviders(): void {
  registered.clear();
}

/** Fetches the events of a stream that the program runs, as many at a time as there are. */
async function pull(
  stream: AssistantMessageEventStream,
  { simple, model, context, options }: {
    simple: boolean;
    model: Model;
    context: unknown;
    options: StreamOptions;
  },
): Promise<void> {
  const { signal, ...rest } = options;
  const callback = Object.keys(rest).find((name) => typeof rest[name] === "function");
  if (callback) throw new Error(`The option "${callback}" is not available for models of the program`);
  const { id } = await host<{ id: number }>("ai.stream.open", { simple, model, context, options: rest });
  const abort = () => hostSync("ai.stream.abort", { id });
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort, { once: true });
  try {
    for (;;) {
      // Empty when there is nothing more to come; an aborted stream ends with an error event.
      const events = await host<AssistantMessageEvent[]>("ai.stream.next", { id });
      if (events.length === 0) break;
      for (const event of events) stream.push(event);
    }
  } finally {
    signal?.removeEventListener("abort", abort);
  }
  stream.end();
}

/** What `result()` gives if the program could not even begin. */
function failed(model: Model, error: unknown): AssistantMessageEvent {
  const none = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  return {
    type: "error",
    error: {
      role: "assistant",
      content: [],
      api: model.api,
      provider: model.provider,
      model: model.id,
      usage: { ...none, totalTokens: 0, cost: { ...none, total: 0 } },
      stopReason: "error",
      errorMessage: error instanceof Error ? error.message : String(error),
      timestamp: Date.now(),
    },
  };
}

/** Asks through an API of the program. */
function throughProgram(simple: boolean): Stream {
  return (model, context, options = {}) => {
    const stream = new AssistantMessageEventStream();
    pull(stream, { simple, model, context, options }).catch((error) => {
      stream.push(failed(model, error));
    });
    return stream;
  };
}

/** The same for one API, whichever the model names: for providers that speak a known API. */
function through(api: string, simple: boolean): Stream {
  const ask = throughProgram(simple);
  return (model, context, options) => ask({ ...model, api }, context, options);
}

export const streamAnthropic = through("anthropic-messages", false);
export const streamSimpleAnthropic = through("anthropic-messages", true);
export const streamOpenAICompletions = through("openai-completions", false);
export const streamSimpleOpenAICompletions = through("openai-completions", true);
export const streamOpenAIResponses = through("openai-responses", false);
export const streamSimpleOpenAIResponses = through("openai-responses", true);

export const stream: Stream = (model, context, options) => {
  const ask = registered.get(model.api)?.provider.stream ?? throughProgram(false);
  return ask(model, context, options);
};

export const streamSimple: Stream = (model, context, options) => {
  const ask = registered.get(model.api)?.provider.streamSimple ?? throughProgram(true);
  return ask(model, context, options);
};

export async function complete(model: Model, context: unknown, options?: StreamOptions): Promise<unknown> {
  return await stream(model, context, options).result();
}

export async function completeSimple(
  model: Model,
  context: unknown,
  options?: StreamOptions,
): Promise<unknown> {
  return await streamSimple(model, context, options).result();
}
