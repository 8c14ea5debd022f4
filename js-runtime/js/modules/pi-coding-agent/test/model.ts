// A model server on loopback with scripted responses.
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { render } from "pi:pi-coding-agent/test/model-answers.ts";
import type { Answer } from "pi:pi-coding-agent/test/model-answers.ts";

const { createServer } = process.getBuiltinModule("node:http");

export const PROVIDER = "scripted";
export const MODEL = "scripted-1";

/** A request to the model. */
export interface ModelRequest {
  /** The number of the request, from 1. */
  number: number;
  system: string;
  messages: { role: string; text: string }[];
  /** Text of the newest message, tool results included. */
  last: string;
  /** The names of the tools that it may call. */
  tools: string[];
  headers: Record<string, string>;
  /** The body as it came over the wire. */
  body: Record<string, unknown>;
}

export type ResponseSource = (request: ModelRequest) => Answer | Promise<Answer>;
export type Script = (Answer | ResponseSource)[] | ResponseSource;

type Body = Record<string, unknown>;

/** The text in a content, including that of tool results. */
function text(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const parts = content.map((block: Body) => {
    switch (block.type) {
      case "text":
        return String(block.text);
      case "tool_result":
        return text(block.content);
      case "image":
        return "[image]";
      default:
        return "";
    }
  });
  return parts.filter((part) => part !== "").join("\n");
}

function understood(number: number, headers: IncomingMessage["headers"], body: Body): ModelRequest {
  const messages = ((body.messages ?? []) as Body[]).map((message) => ({
    role: String(message.role),
    text: text(message.content),
  }));
  return {
    number,
    system: text(body.system),
    messages,
    last: messages.at(-1)?.text ?? "",
    tools: ((body.tools ?? []) as { name: string }[]).map(({ name }) => name),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
    body,
  };
}

const ordinal = (count: number) => `${count} answer${count === 1 ? "" : "s"}`;

export class Model {
  readonly requests: ModelRequest[] = [];
  /** The number of requests without a response. */
  thinking = 0;
  private _server: Server;
  private _script: (Answer | ResponseSource)[] = [];
  private _rule: ResponseSource | undefined;
  private _sent = 0;
  private _complain: (message: string) => void;

  constructor(script: Script, complain: (message: string) => void) {
    if (typeof script === "function") this._rule = script;
    else this.push(...script);
    this._complain = complain;
    this._server = createServer((request, response) => void this._serve(request, response));
  }

  push(...answers: (Answer | ResponseSource)[]): void {
    this._script.push(...answers);
    this._sent += answers.length;
  }

  /** The number of responses that were not requested. */
  get left(): number {
    return this._script.length;
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this._server.once("error", reject);
      this._server.listen(0, "127.0.0.1", resolve);
    });
    return `http://127.0.0.1:${(this._server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this._server.close();
    this._server.closeAllConnections();
  }

  private async _serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      let json = "";
      request.setEncoding("utf8");
      for await (const chunk of request) json += chunk;
      const body = JSON.parse(json) as Body;
      const parsed = understood(this.requests.length + 1, request.headers, body);
      this.requests.push(parsed);
      this.thinking += 1;
      const answer = await this._respond(parsed).finally(() => (this.thinking -= 1));
      const rendered = render(answer, parsed.number, String(body.model));
      if (!Array.isArray(rendered)) return refuse(response, rendered.status, rendered.message);
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const event of rendered) {
        response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
      }
      response.end();
    } catch (error) {
      // The connection was closed, so an aborted request gets no response.
      if (request.destroyed && !request.complete) return;
      this._complain(`The model cannot answer: ${error instanceof Error ? error.message : error}`);
      refuse(response, 400, "the test has no answer");
    }
  }

  private async _respond(request: ModelRequest): Promise<Answer> {
    if (this._script.length === 0 && this._rule) return await this._rule(request);
    const next = this._script.shift();
    if (next === undefined) {
      const given = this._sent === 0 ? "was given no answers" : `had only ${ordinal(this._sent)}`;
      throw new Error(
        `it ${given}, and this is request ${request.number}, after ${JSON.stringify(request.last)}. ` +
          "Add to `model` of t.start(), or call pi.answer()",
      );
    }
    return typeof next === "function" ? await next(request) : next;
  }
}

function refuse(response: ServerResponse, status: number, message: string): void {
  if (response.headersSent) return void response.end();
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ type: "error", error: { type: "api_error", message } }));
}
