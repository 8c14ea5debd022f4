// The text of a session entry as one line of the tree, and the text by which a search finds it.
import { env } from "pi:node.ts";
import { theme } from "pi:pi-coding-agent/theme/index.ts";

interface Block {
  type: string;
  text?: string;
  id?: string;
  name?: string;
  arguments?: Record<string, unknown>;
}

export interface EntryMessage {
  role: string;
  content?: string | Block[];
  stopReason?: string;
  errorMessage?: string;
  toolCallId?: string;
  toolName?: string;
  command?: string;
}

export interface TreeEntry {
  type: string;
  id: string;
  parentId: string | null;
  message?: EntryMessage;
  customType?: string;
  content?: string | Block[];
  summary?: string;
  tokensBefore?: number;
  modelId?: string;
  thinkingLevel?: string;
  label?: string;
  name?: string;
}

export interface SessionTreeNode {
  entry: TreeEntry;
  children: SessionTreeNode[];
  label?: string;
  labelTimestamp?: string;
}

export interface ToolCall {
  name: string;
  arguments: Record<string, unknown>;
}

/** Longer texts are cut for display and search. */
const MAX_TEXT = 200;
const MAX_COMMAND = 50;
const MAX_ARGUMENTS = 40;

const oneLine = (text: string): string => text.replace(/[\n\t]/g, " ").trim();

export function textOf(content: string | Block[] | undefined, most = MAX_TEXT): string {
  if (typeof content === "string") return content.slice(0, most);
  const texts = (content ?? []).filter((block) => block?.type === "text");
  return texts.map(({ text }) => text ?? "").join("").slice(0, most);
}

export function toolCallsOf({ message }: TreeEntry): [id: string, call: ToolCall][] {
  if (message?.role !== "assistant" || !Array.isArray(message.content)) return [];
  return message.content
    .filter((block) => block?.type === "toolCall")
    .map(({ id = "", name = "", arguments: args = {} }) => [id, { name, arguments: args }]);
}

export function searchText({ entry, label = "" }: SessionTreeNode): string {
  const { type, message } = entry;
  const parts: Readonly<Record<string, (string | undefined)[]>> = {
    message: [message?.role, textOf(message?.content), message?.command],
    custom_message: [entry.customType, textOf(entry.content, Infinity)],
    compaction: ["compaction"],
    branch_summary: ["branch summary", entry.summary],
    session_info: ["title", entry.name],
    model_change: ["model", entry.modelId],
    thinking_level_change: ["thinking", entry.thinkingLevel],
    custom: ["custom", entry.customType],
    label: ["label", entry.label],
  };
  return [label, ...(parts[type] ?? [])].filter(Boolean).join(" ").toLowerCase();
}

export function entryLine(entry: TreeEntry, calls: ReadonlyMap<string, ToolCall>): string {
  const dim = (text: string) => theme.fg("dim", text);
  switch (entry.type) {
    case "message":
      return entry.message ? messageLine(entry.message, calls) : "";
    case "custom_message": {
      const title = theme.fg("customMessageLabel", `[${entry.customType}]: `);
      return title + oneLine(textOf(entry.content, Infinity));
    }
    case "compaction":
      return theme.fg("borderAccent", `[compaction: ${Math.round((entry.tokensBefore ?? 0) / 1000)}k tokens]`);
    case "branch_summary":
      return theme.fg("warning", "[branch summary]: ") + oneLine(entry.summary ?? "");
    case "model_change":
      return dim(`[model: ${entry.modelId}]`);
    case "thinking_level_change":
      return dim(`[thinking: ${entry.thinkingLevel}]`);
    case "custom":
      return dim(`[custom: ${entry.customType}]`);
    case "label":
      return dim(`[label: ${entry.label ?? "(cleared)"}]`);
    case "session_info": {
      const name = entry.name ? dim(entry.name) : theme.italic(dim("empty"));
      return dim("[title: ") + name + dim("]");
    }
    default:
      return "";
  }
}

function messageLine(message: EntryMessage, calls: ReadonlyMap<string, ToolCall>): string {
  const muted = (text: string) => theme.fg("muted", text);
  const text = oneLine(textOf(message.content));
  switch (message.role) {
    case "user":
      return theme.fg("accent", "user: ") + text;
    case "assistant": {
      const { stopReason, errorMessage } = message;
      let shown = text || muted("(no content)");
      if (!text && stopReason === "aborted") shown = muted("(aborted)");
      else if (!text && errorMessage) shown = theme.fg("error", oneLine(errorMessage).slice(0, 80));
      return theme.fg("success", "assistant: ") + shown;
    }
    case "toolResult": {
      const call = calls.get(message.toolCallId ?? "");
      return muted(call ? `[${callLine(call)}]` : `[${message.toolName ?? "tool"}]`);
    }
    case "bashExecution":
      return theme.fg("dim", `[bash]: ${oneLine(message.command ?? "")}`);
    default:
      return theme.fg("dim", `[${message.role}]`);
  }
}

function shortPath(path: unknown, otherwise = ""): string {
  const text = String(path || otherwise);
  const home = env("HOME") || env("USERPROFILE");
  return home && text.startsWith(home) ? `~${text.slice(home.length)}` : text;
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}...` : text;
}

function callLine({ name, arguments: args }: ToolCall): string {
  const file = () => shortPath(args.path || args.file_path);
  switch (name) {
    case "read": {
      if (args.offset === undefined && args.limit === undefined) return `read: ${file()}`;
      const start = Number(args.offset ?? 1);
      const end = args.limit === undefined ? 0 : start + Number(args.limit) - 1;
      return `read: ${file()}:${start}${end ? `-${end}` : ""}`;
    }
    case "write":
    case "edit":
      return `${name}: ${file()}`;
    case "bash": {
      const command = String(args.command || "");
      const dots = command.length > MAX_COMMAND ? "..." : "";
      return `bash: ${oneLine(command).slice(0, MAX_COMMAND)}${dots}`;
    }
    case "grep":
      return `grep: /${args.pattern || ""}/ in ${shortPath(args.path, ".")}`;
    case "find":
      return `find: ${args.pattern || ""} in ${shortPath(args.path, ".")}`;
    case "ls":
      return `ls: ${shortPath(args.path, ".")}`;
    default:
      return `${name}: ${cut(JSON.stringify(args) ?? "", MAX_ARGUMENTS)}`;
  }
}
