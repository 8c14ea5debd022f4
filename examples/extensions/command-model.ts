// A program as a model: `PI_COMMAND_MODEL="ollama run llama3.2" pi --model command/program`.
//
// `streamSimple` is an API of the extension's own. It passes the conversation to the program's
// standard input, as one text, and pushes the output into an event stream, piece by piece; pi does
// the rest: the session, the display, aborts, retries.
import { spawn } from "node:child_process";
import { createAssistantMessageEventStream } from "@mariozechner/pi-ai";
import type { AssistantMessage, Context, Model, SimpleStreamOptions } from "@mariozechner/pi-ai";
import { serializeConversation } from "@mariozechner/pi-coding-agent";
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

const NO_COST = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

function ask(command: string, model: Model, context: Context, options: SimpleStreamOptions = {}) {
  const stream = createAssistantMessageEventStream();
  const text = { type: "text" as const, text: "" };
  const answer: AssistantMessage = {
    role: "assistant",
    content: [text],
    api: model.api,
    provider: model.provider,
    model: model.id,
    usage: { ...NO_COST, totalTokens: 0, cost: { ...NO_COST, total: 0 } },
    stopReason: "stop",
    timestamp: Date.now(),
  };
  stream.push({ type: "start", partial: answer });
  stream.push({ type: "text_start", contentIndex: 0, partial: answer });

  const child = spawn("sh", ["-c", command], { signal: options.signal, stdio: ["pipe", "pipe", "pipe"] });
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (piece: string) => (complaint += piece));
  child.stdout.setEncoding("utf8").on("data", (piece: string) => {
    text.text += piece;
    stream.push({ type: "text_delta", contentIndex: 0, delta: piece, partial: answer });
  });
  // The program need not read all of its input.
  child.stdin.on("error", () => {});
  child.stdin.end(`${context.systemPrompt ?? ""}\n\n${serializeConversation(context.messages)}\n\n[Assistant]: `);

  const finish = (problem?: string) => {
    stream.push({ type: "text_end", contentIndex: 0, content: text.text, partial: answer });
    if (problem === undefined) return stream.push({ type: "done", reason: "stop", message: answer });
    const reason = options.signal?.aborted ? "aborted" : "error";
    stream.push({ type: "error", reason, error: { ...answer, stopReason: reason, errorMessage: problem } });
  };
  child.on("error", (error) => finish(error.message));
  child.on("close", (code) => finish(code === 0 ? undefined : complaint.trim() || `${command}: exit code ${code}`));
  return stream;
}

export default function (pi: ExtensionAPI) {
  const command = process.env.PI_COMMAND_MODEL;
  if (!command) return;
  pi.registerProvider("command", {
    baseUrl: "command:",
    // A provider without a key counts as not configured.
    apiKey: "none",
    api: "command-line",
    streamSimple: (model, context, options) => ask(command, model, context, options),
    models: [{
      id: "program",
      name: command,
      reasoning: false,
      input: ["text"],
      cost: NO_COST,
      contextWindow: 32_000,
      maxTokens: 4_000,
    }],
  });
}
