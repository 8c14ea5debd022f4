// The agent's loop in JavaScript, because all of its parts are functions of the extension: the
// stream, the tools, the hooks, the listeners. The program's loop would cross the bridge for every
// step. Validation, models and built-in tools are still those of the program.
import { EventStream } from "pi:pi-ai/event-stream.ts";
import { validateToolArguments } from "pi:pi-ai/schema.ts";
import { streamSimple } from "pi:pi-ai/stream.ts";
import type {
  AgentContext,
  AgentEvent,
  AgentLoopConfig,
  AgentTool,
  AssistantMessage,
  Emit,
  Message,
  StreamEvent,
  StreamFn,
  ToolCall,
  ToolResult,
} from "pi:pi-agent-core/types.ts";

/** A call that may run, or the outcome of one that may not. */
type Prepared =
  | { call: ToolCall; tool: AgentTool; args: unknown }
  | { call: ToolCall; result: ToolResult };

const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
const refusal = (text: string): ToolResult => ({ content: [{ type: "text", text }], details: {} });

/**
 * The reason why no call of a truncated response runs: even arguments that are complete JSON may
 * lack their end.
 */
const truncated = ({ name }: ToolCall) =>
  `Tool call "${name}" did not run: the answer reached the output token limit, so its arguments may be cut off. ` +
  "Make the call again with complete arguments, in smaller parts if they are long.";

/** One run: appends messages to `context` and to `appended`, and passes events to `emit`. */
class Loop {
  private context: AgentContext;
  private config: AgentLoopConfig;
  private emit: Emit;
  private signal: AbortSignal | undefined;
  private streamFn: StreamFn;
  readonly appended: Message[] = [];
  /** Whether a result of the last calls does not end the run. */
  private calledOn = false;

  constructor(
    context: AgentContext,
    config: AgentLoopConfig,
    emit: Emit,
    signal?: AbortSignal,
    streamFn: StreamFn = streamSimple as unknown as StreamFn,
  ) {
    this.context = context;
    this.config = config;
    this.emit = emit;
    this.signal = signal;
    this.streamFn = streamFn;
  }

  async run(prompts: Message[]): Promise<Message[]> {
    await this.emit({ type: "agent_start" });
    await this.emit({ type: "turn_start" });
    for (const prompt of prompts) await this.append(prompt);
    await this.turns();
    await this.emit({ type: "agent_end", messages: this.appended });
    return this.appended;
  }

  private async append(message: Message): Promise<void> {
    await this.emit({ type: "message_start", message });
    await this.emit({ type: "message_end", message });
    this.context.messages.push(message);
    this.appended.push(message);
  }

  private async turns(): Promise<void> {
    const { getSteeringMessages, getFollowUpMessages } = this.config;
    let waiting = (await getSteeringMessages?.()) ?? [];
    let first = true;
    do {
      let goesOn = true;
      while (goesOn || waiting.length > 0) {
        if (!first) await this.emit({ type: "turn_start" });
        first = false;
        for (const message of waiting) await this.append(message);
        const message = await this.streamResponse();
        const failed = message.stopReason === "error" || message.stopReason === "aborted";
        this.calledOn = false;
        const toolResults = failed ? [] : await this.callTools(message);
        await this.emit({ type: "turn_end", message, toolResults });
        if (failed) return;
        goesOn = this.calledOn;
        waiting = (await getSteeringMessages?.()) ?? [];
      }
      waiting = (await getFollowUpMessages?.()) ?? [];
    } while (waiting.length > 0);
  }

  /** Requests one response of the model; its growing versions replace each other in the context. */
  private async streamResponse(): Promise<AssistantMessage> {
    const { context, config, signal } = this;
    const { messages, systemPrompt, tools } = context;
    const transformed = (await config.transformContext?.(messages, signal)) ?? messages;
    const llm = { systemPrompt, messages: await config.convertToLlm(transformed), tools };
    const response = await this.streamFn(config.model, llm, await this.options());
    let at = -1;
    const replaceLast = (message: Message) => {
      if (at < 0) at = messages.push(message) - 1;
      else messages[at] = message;
    };
    for await (const event of response as AsyncIterable<StreamEvent>) {
      if (event.type === "done" || event.type === "error") break;
      if (event.type !== "start" && at < 0) continue;
      const partial = event.partial as AssistantMessage;
      replaceLast(partial);
      const message = { ...partial };
      await (event.type === "start"
        ? this.emit({ type: "message_start", message })
        : this.emit({ type: "message_update", assistantMessageEvent: event, message }));
    }
    const final = (await response.result()) as AssistantMessage;
    if (at < 0) await this.emit({ type: "message_start", message: { ...final } });
    replaceLast(final);
    await this.emit({ type: "message_end", message: final });
    this.appended.push(final);
    return final;
  }

  /** The options for the stream, without those for the loop. */
  private async options(): Promise<Record<string, unknown>> {
    const {
      model,
      convertToLlm: _convert,
      transformContext: _transform,
      getApiKey,
      getSteeringMessages: _steering,
      getFollowUpMessages: _followUp,
      toolExecution: _execution,
      beforeToolCall: _before,
      afterToolCall: _after,
      ...options
    } = this.config;
    const apiKey = (await getApiKey?.(model.provider)) || options.apiKey;
    const requestOptions = { ...options, apiKey, signal: this.signal };
    return Object.fromEntries(Object.entries(requestOptions).filter(([, value]) => value !== undefined));
  }

  private async callTools(message: AssistantMessage): Promise<Message[]> {
    const calls = message.content.filter((block) => block.type === "toolCall") as ToolCall[];
    const results: Message[] = [];
    const oneByOne = this.config.toolExecution === "sequential" ||
      calls.some((call) => this.tool(call)?.executionMode === "sequential");
    const begin = Promise.withResolvers<void>();
    const ended: (() => Promise<Message>)[] = [];
    for (const call of calls) {
      const prepared = await this.prepare(message, call);
      if ("result" in prepared) {
        results.push(await this.tellResult(call, prepared.result, true));
      } else if (oneByOne) {
        results.push(await this.finish(message, prepared, this.execute(prepared)));
      } else {
        // Resolves when all calls are prepared.
        const running = begin.promise.then(() => this.execute(prepared));
        ended.push(() => this.finish(message, prepared, running));
      }
    }
    begin.resolve();
    for (const finish of ended) results.push(await finish());
    for (const result of results) this.context.messages.push(result);
    this.appended.push(...results);
    return results;
  }

  private tool(call: ToolCall): AgentTool | undefined {
    return this.context.tools?.find(({ name }) => name === call.name);
  }

  private async prepare(assistantMessage: AssistantMessage, call: ToolCall): Promise<Prepared> {
    await this.emit({
      type: "tool_execution_start",
      toolCallId: call.id,
      toolName: call.name,
      args: call.arguments,
    });
    if (assistantMessage.stopReason === "length") return { call, result: refusal(truncated(call)) };
    const tool = this.tool(call);
    if (!tool) return { call, result: refusal(`Tool ${call.name} not found`) };
    try {
      const prepared = tool.prepareArguments?.(call.arguments) ?? call.arguments;
      const args = validateToolArguments(tool as never, { ...call, arguments: prepared } as never);
      const { context } = this;
      const about = { assistantMessage, toolCall: call, args, context };
      const verdict = await this.config.beforeToolCall?.(about, this.signal);
      if (!verdict?.block) return { call, tool, args };
      const result = refusal(verdict.reason || "Tool execution was blocked");
      return { call, result: verdict.terminate === true ? { ...result, terminate: true } : result };
    } catch (error) {
      return { call, result: refusal(textOf(error)) };
    }
  }

  private async execute(prepared: Prepared): Promise<{ result: ToolResult; isError: boolean }> {
    const { call, tool, args } = prepared as { call: ToolCall; tool: AgentTool; args: unknown };
    const updates: unknown[] = [];
    const onUpdate = (partialResult: unknown) => {
      updates.push(this.emit({
        type: "tool_execution_update",
        toolCallId: call.id,
        toolName: call.name,
        args: call.arguments,
        partialResult,
      }));
    };
    try {
      const result = await tool.execute(call.id, args, this.signal, onUpdate);
      return { result, isError: false };
    } catch (error) {
      return { result: refusal(textOf(error)), isError: true };
    } finally {
      await Promise.all(updates);
    }
  }

  private async finish(
    assistantMessage: AssistantMessage,
    prepared: Prepared,
    running: Promise<{ result: ToolResult; isError: boolean }>,
  ): Promise<Message> {
    const { call: toolCall, args } = prepared as { call: ToolCall; args: unknown };
    let { result, isError } = await running;
    try {
      const { context } = this;
      const about = { assistantMessage, toolCall, args, result, isError, context };
      const after = await this.config.afterToolCall?.(about, this.signal);
      if (after) {
        const { content = result.content, details = result.details } = after;
        const terminate = after.terminate ?? result.terminate;
        result = { content, details, ...(terminate !== undefined && { terminate }) };
        isError = after.isError ?? isError;
      }
    } catch (error) {
      result = refusal(textOf(error));
      isError = true;
    }
    return await this.tellResult(toolCall, result, isError);
  }

  private async tellResult(call: ToolCall, result: ToolResult, isError: boolean): Promise<Message> {
    this.calledOn ||= result.terminate !== true;
    const toolCallId = call.id;
    const toolName = call.name;
    await this.emit({ type: "tool_execution_end", toolCallId, toolName, result, isError });
    const message = {
      role: "toolResult",
      toolCallId,
      toolName,
      content: result.content,
      details: result.details,
      isError,
      timestamp: Date.now(),
    };
    await this.emit({ type: "message_start", message });
    await this.emit({ type: "message_end", message });
    return message;
  }
}

/** Runs the loop on new messages; resolves to all messages that were appended. */
export async function runAgentLoop(
  prompts: Message[],
  context: AgentContext,
  config: AgentLoopConfig,
  emit: Emit,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): Promise<Message[]> {
  const ownContext = { ...context, messages: [...context.messages] };
  return await new Loop(ownContext, config, emit, signal, streamFn).run(prompts);
}

function requireQuestion({ messages }: AgentContext): void {
  const last = messages.at(-1);
  if (!last) throw new Error("Cannot continue: no messages in context");
  if (last.role === "assistant") throw new Error("Cannot continue from message role: assistant");
}

/** Runs the loop on the messages in the context, to which it appends. */
export async function runAgentLoopContinue(
  context: AgentContext,
  config: AgentLoopConfig,
  emit: Emit,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): Promise<Message[]> {
  requireQuestion(context);
  return await new Loop({ ...context }, config, emit, signal, streamFn).run([]);
}

type AgentStream = EventStream<AgentEvent, Message[]>;

/** A failure of the loop itself ends the iteration, where the original would hang. */
function asStream(run: (emit: Emit) => Promise<Message[]>): AgentStream {
  const stream: AgentStream = new EventStream(
    ({ type }) => type === "agent_end",
    (event) => event.messages ?? [],
  );
  run((event) => stream.push(event)).then(
    (messages) => stream.end(messages),
    (error) => {
      stream.end([]);
      throw error;
    },
  );
  return stream;
}

export function agentLoop(
  prompts: Message[],
  context: AgentContext,
  config: AgentLoopConfig,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): AgentStream {
  return asStream((emit) => runAgentLoop(prompts, context, config, emit, signal, streamFn));
}

export function agentLoopContinue(
  context: AgentContext,
  config: AgentLoopConfig,
  signal?: AbortSignal,
  streamFn?: StreamFn,
): AgentStream {
  requireQuestion(context);
  return asStream((emit) => runAgentLoopContinue(context, config, emit, signal, streamFn));
}
