// Messages of a session in the form for models, and as text to be summarized.
import { hostSync } from "pi:host.ts";

interface Block {
  type: string;
  text?: string;
  thinking?: string;
  name?: string;
  arguments?: Record<string, unknown>;
}

interface Message {
  role: string;
  content: string | Block[];
}

const SENT = ["user", "assistant", "toolResult"];
const OF_PI = ["bashExecution", "custom", "branchSummary", "compactionSummary"];

/**
 * Replaces the message roles that only pi knows by user messages, as the program does. Unknown
 * roles are left out.
 */
export function convertToLlm(messages: Partial<Message>[]): unknown[] {
  return messages.flatMap((message) => {
    const role = message?.role ?? "";
    if (SENT.includes(role)) return [message];
    return OF_PI.includes(role) ? hostSync("messages.to_llm", { messages: [message] }) : [];
  });
}

const MAX_RESULT_CHARACTERS = 2000;

function textOf(content: string | Block[]): string {
  if (typeof content === "string") return content;
  return content.map((block) => (block.type === "text" ? (block.text ?? "") : "")).join("");
}

function shorten(text: string): string {
  const rest = text.length - MAX_RESULT_CHARACTERS;
  if (rest <= 0) return text;
  return `${text.slice(0, MAX_RESULT_CHARACTERS)}\n\n[... ${rest} more characters truncated]`;
}

function callText({ name, arguments: args }: Block): string {
  const shown = Object.entries(args ?? {}).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return `${name}(${shown.join(", ")})`;
}

function section(title: string, parts: (string | undefined)[], separator: string): string[] {
  return parts.length > 0 ? [`[${title}]: ${parts.join(separator)}`] : [];
}

function sections({ role, content }: Message): string[] {
  if (role === "assistant" && typeof content !== "string") {
    const blocksOf = (type: string) => content.filter((block) => block.type === type);
    return [
      ...section("Assistant thinking", blocksOf("thinking").map((block) => block.thinking), "\n"),
      ...section("Assistant", blocksOf("text").map((block) => block.text), "\n"),
      ...section("Assistant tool calls", blocksOf("toolCall").map(callText), "; "),
    ];
  }
  const text = textOf(content);
  if (text && role === "user") return [`[User]: ${text}`];
  return text && role === "toolResult" ? [`[Tool result]: ${shorten(text)}`] : [];
}

/** Renders a conversation as plain text, so that a model does not mistake it for its own. */
export function serializeConversation(messages: Message[]): string {
  return messages.flatMap(sections).join("\n\n");
}
