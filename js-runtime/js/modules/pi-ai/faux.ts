// A provider with scripted responses for tests. It is an API like any other that an extension
// registers, so that the agent can use it, too.
import { registerApiProvider, unregisterApiProviders } from "pi:pi-ai/api-registry.ts";
import type { Stream, StreamOptions } from "pi:pi-ai/api-registry.ts";
import { type AssistantMessageEventStream, createAssistantMessageEventStream } from "pi:pi-ai/event-stream.ts";
import type { Model } from "pi:pi-ai/models.ts";

interface Text {
  type: "text";
  text: string;
}

interface Thinking {
  type: "thinking";
  thinking: string;
}

interface ToolCall {
  type: "toolCall";
  id: string;
  name: string;
  arguments: Record<string, unknown>;
}

type Block = Text | Thinking | ToolCall;

interface Message {
  role: "assistant";
  content: Block[];
  stopReason: string;
  errorMessage?: string;
  [member: string]: unknown;
}

type Step =
  | Message
  | ((context: unknown, options: StreamOptions | undefined, state: State, model: Model) => unknown);

interface State {
  callCount: number;
}

interface FauxOptions {
  api?: string;
  provider?: string;
  models?: (Partial<Model> & { id: string })[];
  tokensPerSecond?: number;
  tokenSize?: { min?: number; max?: number };
}

interface Context {
  systemPrompt?: string;
  messages: { role: string; content: unknown; toolName?: string }[];
  tools?: unknown[];
}

const FREE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const noUsage = () => ({ ...FREE, totalTokens: 0, cost: { ...FREE, total: 0 } });

const unique = (prefix: string) =>
  `${prefix}:${Date.now()}:${Math.random().toString(36).slice(2)}`;

export const fauxText = (text: string): Text => ({ type: "text", text });
export const fauxThinking = (thinking: string): Thinking => ({ type: "thinking", thinking });
export const fauxToolCall = (
  name: string,
  args: Record<string, unknown>,
  options: { id?: string } = {},
): ToolCall => ({ type: "toolCall", id: options.id ?? unique("tool"), name, arguments: args });

export function fauxAssistantMessage(
  content: string | Block | Block[],
  options: { stopReason?: string; errorMessage?: string; responseId?: string; timestamp?: number } = {},
): Message {
  const blocks = typeof content === "string" ? [fauxText(content)] : [content].flat();
  return {
    role: "assistant",
    content: blocks,
    api: "faux",
    provider: "faux",
    model: "faux-1",
    usage: noUsage(),
    stopReason: options.stopReason ?? "stop",
    errorMessage: options.errorMessage,
    responseId: options.responseId,
    timestamp: options.timestamp ?? Date.now(),
  };
}

/** Estimates four characters per token. */
const tokens = (text: string) => Math.ceil(text.length / 4);

function plain(content: unknown): string {
  if (typeof content === "string") return content;
  const blocks = Array.isArray(content) ? content : [];
  const texts = blocks.map((block) => {
    if (block.type === "text") return block.text;
    if (block.type === "thinking") return block.thinking;
    if (block.type === "image") return `[image:${block.mimeType}:${block.data.length}]`;
    return `${block.name}:${JSON.stringify(block.arguments)}`;
  });
  return texts.join("\n");
}

function promptOf({ systemPrompt, messages, tools }: Context): string {
  const parts = systemPrompt ? [`system:${systemPrompt}`] : [];
  for (const { role, content, toolName } of messages) {
    parts.push(`${role}:${role === "toolResult" ? `${toolName}\n` : ""}${plain(content)}`);
  }
  if (tools?.length) parts.push(`tools:${JSON.stringify(tools)}`);
  return parts.join("\n\n");
}

/** Estimates the usage; a session finds its earlier messages in the cache. */
function usageOf(
  message: Message,
  context: Context,
  options: StreamOptions | undefined,
  previousPrompts: Map<string, string>,
) {
  const prompt = promptOf(context);
  const usage = { ...noUsage(), input: tokens(prompt), output: tokens(plain(message.content)) };
  const session = options?.sessionId as string | undefined;
  if (session && options?.cacheRetention !== "none") {
    const before = previousPrompts.get(session) ?? "";
    let same = 0;
    while (same < before.length && before[same] === prompt[same]) same += 1;
    usage.cacheRead = tokens(before.slice(0, same));
    usage.cacheWrite = tokens(prompt.slice(same));
    usage.input = before ? Math.max(0, usage.input - usage.cacheRead) : usage.input;
    previousPrompts.set(session, prompt);
  }
  usage.totalTokens = usage.input + usage.output + usage.cacheRead + usage.cacheWrite;
  return usage;
}

function* pieces(text: string, smallest: number, largest: number): Generator<string> {
  if (text === "") yield "";
  for (let at = 0; at < text.length;) {
    const size = 4 * (smallest + Math.floor(Math.random() * (largest - smallest + 1)));
    yield text.slice(at, at + size);
    at += size;
  }
}

/** Describes how a kind of block is streamed: the empty block, its text, and how to extend it. */
function streamingOf(block: Block) {
  if (block.type === "text") {
    const open = { type: "text", text: "" };
    return { kind: "text", open, text: block.text, grow: (d: string) => (open.text += d) };
  }
  if (block.type === "thinking") {
    const open = { type: "thinking", thinking: "" };
    return { kind: "thinking", open, text: block.thinking, grow: (d: string) => (open.thinking += d) };
  }
  const open = { ...block, arguments: {} };
  return { kind: "toolcall", open, text: JSON.stringify(block.arguments), grow: () => {} };
}

export function registerFauxProvider(options: FauxOptions = {}) {
  const api = options.api ?? unique("faux");
  const provider = options.provider ?? "faux";
  const source = unique("faux-provider");
  const largest = Math.max(1, options.tokenSize?.max ?? 5);
  const smallest = Math.min(largest, Math.max(1, options.tokenSize?.min ?? 3));
  const speed = options.tokensPerSecond ?? 0;
  const state: State = { callCount: 0 };
  const previousPrompts = new Map<string, string>();
  let steps: Step[] = [];
  const modelOptions = options.models?.length ? options.models : [{ id: "faux-1", name: "Faux Model" }];
  const models = modelOptions.map((model) => ({
    name: model.id,
    reasoning: false,
    input: ["text", "image"],
    cost: { ...FREE },
    contextWindow: 128_000,
    maxTokens: 16_384,
    ...model,
    api,
    provider,
    baseUrl: "http://localhost:0",
  }));

  async function play(
    stream: AssistantMessageEventStream,
    message: Message,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const partial: Message = { ...message, content: [] };
    const show = (event: { type: string }) => stream.push({ ...event, partial: { ...partial } } as never);
    const finish = (type: "done" | "error", reason: string, whole: Message) => {
      stream.push({ type, reason, [type === "done" ? "message" : "error"]: whole } as never);
      stream.end(whole);
    };
    const aborted = () =>
      finish("error", "aborted", {
        ...partial,
        stopReason: "aborted",
        errorMessage: "Request was aborted",
        timestamp: Date.now(),
      });
    if (signal?.aborted) return aborted();
    show({ type: "start" });
    for (const [contentIndex, block] of message.content.entries()) {
      const { kind, open, text, grow } = streamingOf(block);
      partial.content = [...partial.content, open as Block];
      const step = (name: string, more: object) =>
        show({ type: `${kind}_${name}`, contentIndex, ...more } as never);
      step("start", {});
      for (const delta of pieces(text, smallest, largest)) {
        const pause = speed > 0 ? (tokens(delta) / speed) * 1000 : 0;
        await (pause > 0
          ? new Promise((resolve) => setTimeout(resolve, pause))
          : Promise.resolve());
        if (signal?.aborted) return aborted();
        grow(delta);
        step("delta", { delta });
      }
      partial.content = [...partial.content.slice(0, -1), block];
      step("end", block.type === "toolCall" ? { toolCall: block } : { content: text });
      if (signal?.aborted) return aborted();
    }
    const { stopReason } = message;
    const failed = stopReason === "error" || stopReason === "aborted";
    finish(failed ? "error" : "done", stopReason, message);
  }

  const stream: Stream = (model, context, streamOptions) => {
    const events = createAssistantMessageEventStream();
    const step = steps.shift();
    state.callCount += 1;
    const withContext = (message: Message) => ({
      ...structuredClone(message),
      api,
      provider,
      model: model.id,
      usage: usageOf(message, context as Context, streamOptions, previousPrompts),
    });
    const failure = (text: string) =>
      fauxAssistantMessage([], { stopReason: "error", errorMessage: text });
    const run = async () => {
      const onResponse = streamOptions?.onResponse as ((...args: unknown[]) => unknown) | undefined;
      await onResponse?.({ status: 200, headers: {} }, model);
      const resolved = typeof step === "function"
        ? await step(context, streamOptions, state, model)
        : step;
      const message = resolved as Message | undefined;
      await play(
        events,
        withContext(message ?? failure("No more faux responses queued")),
        streamOptions?.signal,
      );
    };
    queueMicrotask(() => {
      run().catch((error) => {
        const text = error instanceof Error ? error.message : String(error);
        const message = { ...failure(text), api, provider, model: model.id };
        events.push({ type: "error", reason: "error", error: message } as never);
        events.end(message);
      });
    });
    return events;
  };
  registerApiProvider({ api, stream, streamSimple: stream }, source);

  return {
    api,
    models,
    state,
    getModel: (id?: string) => (id ? models.find((model) => model.id === id) : models[0]),
    setResponses: (responses: Step[]) => void (steps = [...responses]),
    appendResponses: (responses: Step[]) => void steps.push(...responses),
    getPendingResponseCount: () => steps.length,
    unregister: () => unregisterApiProviders(source),
  };
}
