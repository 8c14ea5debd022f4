// Requests a summary from a model: through the program, or through the extension itself, once or
// with retries.
import { host, hostSync } from "pi:host.ts";
import { getEnvApiKey, type Variables } from "pi:pi-ai/env-key.ts";
import { ownApi } from "pi:pi-ai/api-registry.ts";
import type { StreamOptions } from "pi:pi-ai/api-registry.ts";
import type { Model } from "pi:pi-ai/models.ts";

interface Message {
  content: { type: string; text?: string }[];
  stopReason: string;
  errorMessage?: string;
}

type Streamed = { result(): Promise<Message> };
export type StreamFn = (model: Model, context: unknown, options?: StreamOptions) => Streamed | Promise<Streamed>;

export interface RetryPolicy {
  enabled: boolean;
  maxRetries: number;
  baseDelayMs: number;
  maxAgentDelayMs?: number;
}

export interface RetryCallbacks {
  onRetryScheduled?(attempt: number, maxAttempts: number, delayMs: number, errorMessage: string): void | Promise<void>;
  onRetryAttemptStart?(): void | Promise<void>;
  onRetryFinished?(success: boolean, attempt: number, finalError?: string): void | Promise<void>;
}

export interface SummaryOptions {
  model: Model;
  apiKey?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  thinkingLevel?: string;
  streamFn?: StreamFn;
  env?: Variables;
  retry?: RetryPolicy;
  callbacks?: RetryCallbacks;
  sessionId?: string;
}

interface ModelRequest {
  ask: number;
  request: { systemPrompt: string; messages: unknown[]; maxTokens?: number; reasoning?: string };
}

let tokens = 0;

/** Answers one request of the program with `streamFn`; the program itself cannot use APIs of extensions. */
async function respond({ ask, request }: ModelRequest, streamFn: StreamFn, by: SummaryOptions): Promise<object> {
  const { systemPrompt, messages, maxTokens, reasoning } = request;
  const { model, apiKey, headers, env, signal, sessionId } = by;
  const options = { apiKey, headers, env, signal, sessionId, maxTokens, reasoning };
  try {
    const { content, stopReason, errorMessage } =
      await (await streamFn(model, { systemPrompt, messages }, options)).result();
    const texts = content.filter(({ type }) => type === "text").map(({ text }) => text);
    const ended = stopReason === "error" || stopReason === "aborted" ? stopReason : "stop";
    return { ask, text: texts.join("\n"), stopReason: ended, errorMessage };
  } catch (error) {
    const errorMessage = error instanceof Error ? error.message : String(error);
    return { ask, stopReason: signal?.aborted ? "aborted" : "error", errorMessage };
  }
}

async function serve(token: number, streamFn: StreamFn, by: SummaryOptions): Promise<void> {
  for (;;) {
    const question = await host<ModelRequest | null>("compaction.next", { token });
    if (!question) return;
    void respond(question, streamFn, by).then((answer) => hostSync("compaction.respond", answer));
  }
}

async function requestOnce<T>(what: string, request: object, by: SummaryOptions): Promise<T> {
  const { model, headers, signal, thinkingLevel, env, sessionId } = by;
  signal?.throwIfAborted();
  const token = (tokens += 1);
  const abort = () => hostSync("compaction.abort", { token });
  signal?.addEventListener("abort", abort, { once: true });
  const streamFn = by.streamFn ?? (ownApi(model.api)?.streamSimple as unknown as StreamFn | undefined);
  if (streamFn) hostSync("compaction.open", { token });
  try {
    const written = host<T>(`compaction.${what}`, {
      token,
      ...request,
      model,
      apiKey: by.apiKey ?? getEnvApiKey(model.provider, env),
      headers,
      thinking: thinkingLevel,
      sessionId,
      byExtension: streamFn !== undefined,
    });
    // The one that ends first decides.
    written.catch(() => {});
    if (streamFn) await Promise.race([serve(token, streamFn, by), written]);
    return await written;
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}

const MAX_RETRY_DELAY = 60_000;

/** Resolves to `false` if the signal ended the wait. */
function waitFor(milliseconds: number, signal: AbortSignal | undefined): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve(false);
    const end = () => {
      clearTimeout(timer);
      resolve(false);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve(true);
    }, milliseconds);
    signal?.addEventListener("abort", end, { once: true });
  });
}

/** Repeats the request after a transient failure, as often as `retry` allows. */
export async function requestSummary<T>(what: string, request: object, by: SummaryOptions): Promise<T> {
  const { retry, callbacks, signal } = by;
  for (let attempt = 0;; attempt += 1) {
    try {
      const done = await requestOnce<T>(what, request, by);
      if (attempt > 0) await callbacks?.onRetryFinished?.(true, attempt);
      return done;
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      const again = retry?.enabled && attempt < retry.maxRetries && !signal?.aborted &&
        hostSync<boolean>("ai.is_retryable", { text });
      if (!again) {
        if (attempt > 0) await callbacks?.onRetryFinished?.(false, attempt, text);
        throw error;
      }
      const delay = Math.min(retry.baseDelayMs * 2 ** attempt, retry.maxAgentDelayMs ?? MAX_RETRY_DELAY);
      await callbacks?.onRetryScheduled?.(attempt + 1, retry.maxRetries, delay, text);
      if (!await waitFor(delay, signal)) {
        await callbacks?.onRetryFinished?.(false, attempt + 1, text);
        throw error;
      }
      await callbacks?.onRetryAttemptStart?.();
    }
  }
}
