// One line for each entry, for the tree at the side; the name of its kind; and all of its words,
// for the search.

import { firstLine } from "./format.js";
import type { Node } from "./session.js";
import { headline } from "./tool.js";
import { content, list, type Members, members, text } from "./values.js";

export type Kind = "user" | "assistant" | "tool" | "summary" | "extension" | "note";

export function kindOf(node: Node): Kind {
  switch (node.type) {
    case "message":
      switch (members(node.entry.message).role) {
        case "user":
        case "bashExecution":
          return "user";
        case "assistant":
          return "assistant";
        case "toolResult":
          return "tool";
        default:
          return "extension";
      }
    case "compaction":
    case "branch_summary":
      return "summary";
    case "custom_message":
      return "extension";
    default:
      return "note";
  }
}

export function outline(node: Node): string {
  const { entry } = node;
  switch (node.type) {
    case "message":
      return ofMessage(members(entry.message));
    case "custom_message":
      return `${text(entry.customType)}: ${unmarked(firstLine(content(entry.content).text))}`;
    case "compaction":
      return "compaction";
    case "branch_summary":
      return "summary of a branch";
    case "model_change":
      return `model ${text(entry.modelId)}`;
    case "thinking_level_change":
      return `thinking ${text(entry.thinkingLevel)}`;
    case "session_info":
      return `name ${text(entry.name)}`;
    case "label":
      return `label ${text(entry.label) || "removed"}`;
    case "custom":
      return `data ${text(entry.customType)}`;
    default:
      return node.type;
  }
}

function ofMessage(message: Members): string {
  const parts = content(message.content);
  const line = unmarked(firstLine(parts.text.replace(/^<skill name="([^"\n]*)".*/, "skill $1")));
  switch (message.role) {
    case "assistant": {
      if (line) return line;
      const calls = list(message.content).map(members).filter((block) => block.type === "toolCall");
      if (calls.length === 0) return text(message.errorMessage) || "(nothing)";
      return calls.map((call) => `${text(call.name)} ${headline(text(call.name), members(call.arguments))}`).join(", ");
    }
    case "toolResult":
      return `${text(message.toolName)}: ${line}`;
    case "bashExecution":
      return `$ ${firstLine(text(message.command))}`;
    default:
      return line || (parts.pictures.length > 0 ? "(picture)" : "(nothing)");
  }
}

/** Removes the markup characters of Markdown. */
function unmarked(line: string): string {
  return line.replace(/\*\*|__|`|^[#>\s]+/g, "");
}

/** Members without words: bulk data, and ids. */
const WORDLESS = new Set(["data", "signature", "textSignature", "thinkingSignature", "thoughtSignature", "parentId"]);

/** All texts of the entry that a reader could search for, in lower case. */
export function words(node: Node): string {
  const found: string[] = [node.label];
  const waiting: unknown[] = [node.entry];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === "string") found.push(value);
    else if (Array.isArray(value)) waiting.push(...value.slice(0, 10_000));
    else if (typeof value === "object" && value !== null) {
      const isImage = (value as Members).type === "image";
      for (const [name, member] of Object.entries(value)) {
        if (WORDLESS.has(name) && (name !== "data" || isImage)) continue;
        waiting.push(member);
      }
    }
  }
  return found.join("\n").toLowerCase();
}
