// The outcome of one prompt or command.
import type { RpcEvent } from "pi:pi-coding-agent/test/connection.ts";
import { textOf, transcript } from "pi:pi-coding-agent/test/transcript.ts";

export interface ToolRun {
  name: string;
  args: Record<string, unknown>;
  /** The text that the model gets. */
  text: string;
  content: unknown[];
  details: unknown;
  isError: boolean;
  /** Texts of the partial results, in order. */
  updates: string[];
}

export class Run {
  readonly events: RpcEvent[];
  private _tidy: (text: string) => string;

  constructor(events: RpcEvent[], tidy: (text: string) => string) {
    this.events = events;
    this._tidy = tidy;
  }

  // deno-lint-ignore no-explicit-any
  private _messages(role: string): any[] {
    return this.events
      .filter((event) => event.type === "message_end" && event.message.role === role)
      .map(({ message }) => message);
  }

  /** The last text of the model. */
  get text(): string {
    return textOf(this._messages("assistant").at(-1)?.content);
  }

  /** The error of the last response. */
  get error(): string | undefined {
    return this._messages("assistant").at(-1)?.errorMessage;
  }

  /** `stop`, `toolUse`, `length`, `error` or `aborted`; `undefined` without a response. */
  get stopReason(): string | undefined {
    return this._messages("assistant").at(-1)?.stopReason;
  }

  /** Messages that extensions have added to the conversation. */
  get messages(): { customType: string; text: string; details: unknown; display: boolean }[] {
    return this._messages("custom").map(({ customType, content, details, display }) => ({
      customType,
      text: textOf(content),
      details,
      display,
    }));
  }

  /** The tools in the order in which they ended. */
  get tools(): ToolRun[] {
    const eventsOf = (type: string, id: string) =>
      this.events.filter((event) => event.type === type && event.toolCallId === id);
    return this.events.filter(({ type }) => type === "tool_execution_end").map((end) => ({
      name: end.toolName,
      args: eventsOf("tool_execution_start", end.toolCallId)[0]?.args ?? {},
      text: textOf(end.result?.content),
      content: end.result?.content ?? [],
      details: end.result?.details,
      isError: end.isError === true,
      updates: eventsOf("tool_execution_update", end.toolCallId).map(({ partialResult }) => textOf(partialResult?.content)),
    }));
  }

  transcript(): string {
    return this._tidy(transcript(this.events));
  }
}
