// Responses of the scripted model, and their form on the wire (Anthropic's).
import { checkOptions, checkValue, COUNT, OBJECT, oneOf, TEXT } from "pi:pi-coding-agent/test/validate.ts";
import type { Requirement } from "pi:pi-coding-agent/test/validate.ts";

export interface Text {
  type: "text";
  text: string;
}
export interface Thinking {
  type: "thinking";
  thinking: string;
}
export interface Call {
  type: "call";
  name: string;
  arguments: Record<string, unknown>;
}
export interface Failure {
  type: "failure";
  status: number;
  message: string;
}
export type Part = string | Text | Thinking | Call;

/** A response with its other members. */
export interface Reply {
  content: Part | Part[];
  /** The reported size of the conversation in tokens; decides when pi compacts it. */
  inputTokens?: number;
  outputTokens?: number;
  /** The stop reason; by default it follows from the content. */
  stop?: "stop" | "toolUse" | "length";
}
export type Answer = Part | Part[] | Reply | Failure;

export const say = (text: string): Text => ({ type: "text", text });
export const think = (thinking: string): Thinking => ({ type: "thinking", thinking });
export function call(name: string, args: Record<string, unknown> = {}): Call {
  checkValue("call: the tool", name, TEXT);
  checkValue(`call("${name}"): the arguments`, args, OBJECT);
  return { type: "call", name, arguments: args };
}
export const fail = (status: number, message: string): Failure => ({ type: "failure", status, message });

type Event = { type: string } & Record<string, unknown>;

/** The options of a reply. */
const REPLY: Record<string, Requirement> = {
  content: ["what the model says", () => true],
  inputTokens: COUNT,
  outputTokens: COUNT,
  stop: oneOf("stop", "toolUse", "length"),
};

const isReply = (answer: Answer): answer is Reply =>
  typeof answer === "object" && !Array.isArray(answer) && "content" in answer;

/** Renders the events of a stream, or the failure. */
export function render(answer: Answer, number: number, model: string): Event[] | Failure {
  if (typeof answer === "object" && "type" in answer && answer.type === "failure") return answer;
  if (isReply(answer)) checkOptions("An answer of the model", answer, REPLY);
  const reply: Reply = isReply(answer) ? answer : { content: answer as Part | Part[] };
  const parts = (Array.isArray(reply.content) ? reply.content : [reply.content]).map(part);
  const { inputTokens = 10, outputTokens = 5 } = reply;
  const events: Event[] = [{
    type: "message_start",
    message: {
      id: `msg_${number}`,
      type: "message",
      role: "assistant",
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: {
        input_tokens: inputTokens,
        output_tokens: 1,
        cache_read_input_tokens: 0,
        cache_creation_input_tokens: 0,
      },
    },
  }];
  parts.forEach((part, index) => {
    const { start, deltas } = block(part, `${number}_${index}`);
    events.push({ type: "content_block_start", index, content_block: start });
    for (const delta of deltas) events.push({ type: "content_block_delta", index, delta });
    events.push({ type: "content_block_stop", index });
  });
  const calls = parts.some(({ type }) => type === "call");
  const stops = { stop: "end_turn", toolUse: "tool_use", length: "max_tokens" };
  events.push({
    type: "message_delta",
    delta: { stop_reason: stops[reply.stop ?? (calls ? "toolUse" : "stop")], stop_sequence: null },
    usage: { output_tokens: outputTokens },
  });
  events.push({ type: "message_stop" });
  return events;
}

function part(value: Part): Text | Thinking | Call {
  if (typeof value === "string") return say(value);
  const type = (value as { type?: unknown } | null | undefined)?.type;
  if (type === "text" || type === "thinking" || type === "call") return value;
  throw new TypeError(
    `The model cannot answer ${JSON.stringify(value)}: use a text, say(), think(), call() or fail()`,
  );
}

/** Splits a text into pieces, as models send it. */
const pieces = (text: string): string[] => text.match(/\S*\s*/g)!.filter((piece) => piece !== "");

function block(part: Text | Thinking | Call, id: string): { start: object; deltas: object[] } {
  switch (part.type) {
    case "text":
      return {
        start: { type: "text", text: "" },
        deltas: pieces(part.text).map((text) => ({ type: "text_delta", text })),
      };
    case "thinking":
      return {
        start: { type: "thinking", thinking: "", signature: "" },
        deltas: [
          ...pieces(part.thinking).map((thinking) => ({ type: "thinking_delta", thinking })),
          { type: "signature_delta", signature: `signature_${id}` },
        ],
      };
    case "call":
      return {
        start: { type: "tool_use", id: `call_${id}`, name: part.name, input: {} },
        deltas: pieces(JSON.stringify(part.arguments)).map((partial_json) => ({
          type: "input_json_delta",
          partial_json,
        })),
      };
  }
}
