// Streams from models through the program, which has the wire APIs. Functions among the options
// stay here; the program requests their results.
import { host, hostSync } from "pi:host.ts";
import { getEnvApiKey, type Variables } from "pi:pi-ai/env-key.ts";
import { type AssistantMessageEvent, AssistantMessageEventStream } from "pi:pi-ai/event-stream.ts";
import type { Stream, StreamOptions } from "pi:pi-ai/api-registry.ts";
import type { Model } from "pi:pi-ai/models.ts";
import { withoutSystemMessages } from "pi:pi-ai/transcript.ts";

interface Call {
  simple: boolean;
  /** Overrides the API that the model names. */
  api?: string;
  model: Model;
  context: unknown;
  options: StreamOptions;
}

/** A request of the program for the result of a function among the options. */
interface HookRequest {
  ask: number;
  payload?: unknown;
  response?: { status: number; headers: Record<string, string> };
}

type Callback = (value: unknown, model: Model) => unknown;

async function answerHook(id: number, request: HookRequest, { model, options }: Call): Promise<void> {
  const { ask, payload, response } = request;
  let changed: unknown;
  let error: string | undefined;
  try {
    if (response) await (options.onResponse as Callback | undefined)?.(response, model);
    else changed = await (options.onPayload as Callback | undefined)?.(payload, model);
  } catch (thrown) {
    error = thrown instanceof Error ? thrown.message : String(thrown);
  }
  await host("ai.stream.respond", { id, ask, payload: changed, error });
}

/** Throws for options of an extension that the program cannot use. */
function check({ simple, api, model, options }: Call): void {
  if (!simple && (api ?? model.api) === "anthropic-messages" && options.client) {
    throw new Error(
      'The option "client" of anthropic-messages is not there: pi sends the request itself. ' +
        'The options "apiKey", "headers" and onPayload, and baseUrl of the model, say where to and how',
    );
  }
}

/** Fetches the events of a stream, as many at a time as are available. */
async function pull(stream: AssistantMessageEventStream, call: Call): Promise<void> {
  check(call);
  const { signal, onPayload, onResponse, ...options } = call.options;
  const callback = Object.keys(options).find((name) => typeof options[name] === "function");
  if (callback) {
    throw new Error(`The option "${callback}" is a function, which models of the program do not take`);
  }
  const { id } = await host<{ id: number }>("ai.stream.open", {
    simple: call.simple,
    api: call.api,
    model: call.model,
    context: withoutSystemMessages(call.context),
    options: { ...options, apiKey: options.apiKey ?? getEnvApiKey(call.model.provider, options.env as Variables) },
    hooks: { payload: typeof onPayload === "function", response: typeof onResponse === "function" },
  });
  const abort = () => hostSync("ai.stream.abort", { id });
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort, { once: true });
  try {
    for (;;) {
      // Empty at the end of the stream; an aborted stream ends with an error event.
      const events = await host<(AssistantMessageEvent & { question?: HookRequest })[]>(
        "ai.stream.next",
        { id },
      );
      if (events.length === 0) break;
      for (const event of events) {
        if (event.question) await answerHook(id, event.question, call);
        else stream.push(event);
      }
    }
  } finally {
    signal?.removeEventListener("abort", abort);
  }
  stream.end();
}

/** The result of a stream that could not even be started. */
export function failedResponse(
  model: Model,
  error: unknown,
  reason: "error" | "aborted" = "error",
): AssistantMessageEvent {
  const none = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  return {
    type: "error",
    reason,
    error: {
      role: "assistant",
      content: [],
      api: model.api,
      provider: model.provider,
      model: model.id,
      usage: { ...none, totalTokens: 0, cost: { ...none, total: 0 } },
      stopReason: reason,
      errorMessage: error instanceof Error ? error.message : String(error),
      timestamp: Date.now(),
    },
  };
}

/** Streams through `api`, whichever API the model names: for providers with a known API. */
export function throughProgram(api: string | undefined, simple: boolean): Stream {
  return (model, context, options = {}) => {
    const stream = new AssistantMessageEventStream();
    if (options.signal?.aborted) {
      // No request is sent to the model.
      stream.push(failedResponse(model, "Request was aborted.", "aborted"));
      stream.end();
      return stream;
    }
    pull(stream, { simple, api, model, context, options }).catch((error) => {
      stream.push(failedResponse(model, error));
      stream.end();
    });
    return stream;
  };
}
