// `streamProxy`: requests models through a server that has the keys. The server sends events
// without the message so far, which is rebuilt here.
import { AssistantMessageEventStream } from "pi:pi-ai/event-stream.ts";
import { parseStreamingJson, readToolArguments } from "pi:pi-ai/schema.ts";
import type { Model } from "pi:pi-agent-core/types.ts";

interface ProxyOptions {
  authToken: string;
  proxyUrl: string;
  signal?: AbortSignal;
  temperature?: number;
  maxTokens?: number;
  reasoning?: string;
}

interface ProxyEvent {
  type: string;
  contentIndex: number;
  delta: string;
  contentSignature?: string;
  /** Newer proxies send this at the end of a call. */
  toolCall?: Block;
  id: string;
  toolName: string;
  reason: string;
  usage: unknown;
  errorMessage?: string;
}

interface Block {
  type: string;
  text?: string;
  textSignature?: string;
  thinking?: string;
  thinkingSignature?: string;
  arguments?: unknown;
  id?: string;
  name?: string;
}

/** The message that grows with the events. */
class Partial {
  private texts = new Map<number, string>();
  readonly message;

  constructor(model: Model) {
    const none = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
    this.message = {
      role: "assistant",
      stopReason: "stop",
      content: [] as Block[],
      api: model.api,
      provider: model.provider,
      model: model.id,
      usage: { ...none, totalTokens: 0, cost: { ...none, total: 0 } } as unknown,
      errorMessage: undefined as string | undefined,
      timestamp: Date.now(),
    };
  }

  private block(event: ProxyEvent, type: string): Block {
    const block = this.message.content[event.contentIndex];
    if (block?.type !== type) throw new Error(`Received ${event.type} for non-${type} content`);
    return block;
  }

  /** Returns the event in the form of pi-ai; `undefined` for one without content. */
  addEvent(event: ProxyEvent): { type: string } | undefined {
    const { message: partial } = this;
    const { type, contentIndex, delta, reason } = event;
    const result = { type, contentIndex, partial };
    switch (type) {
      case "start":
        return { type, partial } as { type: string };
      case "text_start":
        partial.content[contentIndex] = { type: "text", text: "" };
        return result;
      case "text_delta":
        this.block(event, "text").text += delta;
        return { ...result, delta } as { type: string };
      case "text_end": {
        const block = this.block(event, "text");
        block.textSignature = event.contentSignature;
        return { ...result, content: block.text } as { type: string };
      }
      case "thinking_start":
        partial.content[contentIndex] = { type: "thinking", thinking: "" };
        return result;
      case "thinking_delta":
        this.block(event, "thinking").thinking += delta;
        return { ...result, delta } as { type: string };
      case "thinking_end": {
        const block = this.block(event, "thinking");
        block.thinkingSignature = event.contentSignature;
        return { ...result, content: block.thinking } as { type: string };
      }
      case "toolcall_start":
        partial.content[contentIndex] = {
          type: "toolCall",
          id: event.id,
          name: event.toolName,
          arguments: {},
        };
        return result;
      case "toolcall_delta": {
        const block = this.block(event, "toolCall");
        const json = (this.texts.get(contentIndex) ?? "") + delta;
        this.texts.set(contentIndex, json);
        partial.content[contentIndex] = { ...block, arguments: parseStreamingJson(json) ?? {} };
        return { ...result, delta } as { type: string };
      }
      case "toolcall_end": {
        const block = this.block(event, "toolCall");
        const json = this.texts.get(contentIndex);
        this.texts.delete(contentIndex);
        Object.assign(block, event.toolCall ?? (json === undefined ? {} : readToolArguments(json)));
        return { ...result, toolCall: block } as { type: string };
      }
      case "done":
        partial.stopReason = reason;
        partial.usage = event.usage;
        return { type, reason, message: partial } as { type: string };
      case "error":
        partial.stopReason = reason;
        partial.usage = event.usage;
        partial.errorMessage = event.errorMessage;
        return { type, reason, error: partial } as { type: string };
      default:
        console.warn(`Unhandled proxy event type: ${type}`);
        return undefined;
    }
  }
}

async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    rest += decoder.decode(value, { stream: !done });
    const complete = rest.split("\n");
    if (!done) rest = complete.pop() as string;
    yield* complete;
    if (done) return;
  }
}

async function refusalOf(response: Response): Promise<string> {
  const body = await response.json().catch(() => undefined) as { error?: string } | undefined;
  return `Proxy error: ${body?.error || `${response.status} ${response.statusText}`}`;
}

async function pump(
  stream: AssistantMessageEventStream,
  partial: Partial,
  model: Model,
  context: unknown,
  { authToken, proxyUrl, signal, temperature, maxTokens, reasoning }: ProxyOptions,
): Promise<void> {
  const response = await fetch(`${proxyUrl}/api/stream`, {
    method: "POST",
    headers: { Authorization: `Bearer ${authToken}`, "Content-Type": "application/json" },
    body: JSON.stringify({ model, context, options: { temperature, maxTokens, reasoning } }),
    signal,
  });
  if (!response.ok || !response.body) throw new Error(await refusalOf(response));
  for await (const line of lines(response.body)) {
    const data = line.startsWith("data: ") ? line.slice(6).trim() : "";
    const event = data && partial.addEvent(JSON.parse(data));
    if (event) stream.push(event);
  }
  if (signal?.aborted) throw new Error("Request aborted by user");
  stream.end();
}

export function streamProxy(
  model: Model,
  context: unknown,
  options: ProxyOptions,
): AssistantMessageEventStream {
  const stream = new AssistantMessageEventStream();
  const partial = new Partial(model);
  pump(stream, partial, model, context, options).catch((error) => {
    const aborted = options.signal?.aborted;
    const reason = aborted ? "aborted" : "error";
    partial.message.stopReason = reason;
    partial.message.errorMessage = aborted
      ? "Request aborted by user"
      : error instanceof Error ? error.message : String(error);
    stream.push({ type: "error", reason, error: partial.message } as { type: string });
    stream.end();
  });
  return stream;
}
