// Renders the messages of a conversation.

import { append, element } from "./dom.js";
import { dollars, firstLine, time, tokens } from "./format.js";
import { markdown } from "./markdown.js";
import { output } from "./output.js";
import { picture } from "./pictures.js";
import type { Calls, Node } from "./session.js";
import { fits, tool } from "./tool.js";
import { content, json, list, type Members, members, number, text } from "./values.js";

/** A line above an entry: the author, and the remaining details in small. */
export function heading(author: string, ...rest: string[]): HTMLElement {
  const line = element("header", {}, element("span", { class: "who" }, author));
  for (const one of rest.filter(Boolean)) append(line, element("span", { class: "aside" }, one));
  return line;
}

export function message(target: HTMLElement, node: Node, calls: Calls): void {
  const entryMessage = members(node.entry.message);
  const at = time(entryMessage.timestamp) || time(node.entry.timestamp);
  const role = text(entryMessage.role);
  target.classList.add(`role-${/^\w+$/.test(role) ? role : "unknown"}`);
  switch (role) {
    case "user":
      return append(target, heading("You", at), ...userContent(entryMessage.content));
    case "assistant":
      return assistant(target, node, entryMessage, at, calls);
    case "toolResult":
      // The call is not on this branch, or the result would be shown there.
      return append(target, tool({ name: entryMessage.toolName }, entryMessage));
    case "bashExecution":
      return bash(target, entryMessage, at);
    case "custom":
    case "hookMessage":
      return custom(target, entryMessage, at);
    default:
      append(target, heading(role || "Message", at), output(json(entryMessage), { lines: 12, language: "json" }));
  }
}

/** The form of an expanded `/skill:name`: the skill's text, then the user's message. */
const SKILL = /^<skill name="([^"\n]*)"[^>\n]*>\n([\s\S]*?)\n<\/skill>(?:\n\n([\s\S]*))?$/;

function userContent(value: unknown): HTMLElement[] {
  const parts = content(value);
  const skill = SKILL.exec(parts.text);
  if (!skill) return plainParts(value);
  const [, name = "", body = "", rest = ""] = skill;
  const folded = element("details", { class: "quiet" }, element("summary", {}, `skill ${name}`), markdown(body));
  return [folded, ...plainParts([{ type: "text", text: rest }]), ...parts.pictures.map((one) => picture(one))];
}

/** Text and pictures. */
function plainParts(value: unknown): HTMLElement[] {
  const parts = content(value);
  const made = parts.text ? [markdown(parts.text)] : [];
  return [...made, ...parts.pictures.map((one) => picture(one))];
}

function assistant(target: HTMLElement, node: Node, entryMessage: Members, at: string, calls: Calls): void {
  const usage = members(entryMessage.usage);
  const cost = number(members(usage.cost).total);
  const read = number(usage.input) + number(usage.cacheRead) + number(usage.cacheWrite);
  append(
    target,
    heading(
      "Assistant",
      at,
      text(entryMessage.model),
      read + number(usage.output) > 0 ? `${tokens(read)} in, ${tokens(number(usage.output))} out` : "",
      cost > 0 ? dollars(cost) : "",
    ),
  );
  // In very old files the content is a text.
  const blocks = typeof entryMessage.content === "string" ? [{ type: "text", text: entryMessage.content }] : list(entryMessage.content);
  for (const block of blocks.map(members)) {
    switch (block.type) {
      case "text":
        if (text(block.text).trim()) append(target, markdown(text(block.text)));
        break;
      case "thinking":
        append(target, thinking(block));
        break;
      case "toolCall": {
        const result = calls.result(node, text(block.id));
        const card = tool(block, result ? members(result.entry.message) : null);
        if (result) card.dataset.entry = String(result.index);
        append(target, card);
        break;
      }
      case "image":
        append(target, ...plainParts([block]));
        break;
      default:
        append(target, output(json(block), { lines: 12, language: "json" }));
    }
  }
  failureNotice(target, entryMessage);
}

function thinking(block: Members): HTMLElement | null {
  const thought = text(block.thinking).trim();
  if (!thought && block.redacted !== true) return null;
  return element(
    "details",
    { class: "thinking", "data-kind": "thinking" },
    element("summary", {}, "Thinking"),
    thought ? markdown(thought) : element("div", { class: "nothing" }, "(hidden by the provider)"),
  );
}

function failureNotice(target: HTMLElement, entryMessage: Members): void {
  const words: Record<string, string> = {
    error: "The request failed",
    aborted: "Aborted",
    length: "Cut off: the answer reached its maximal length",
  };
  const word = words[text(entryMessage.stopReason)];
  if (!word) return;
  const reason = text(entryMessage.errorMessage);
  append(target, element("div", { class: "problem" }, reason ? `${word}: ${reason}` : word));
}

function bash(target: HTMLElement, entryMessage: Members, at: string): void {
  const notes: string[] = [];
  if (entryMessage.cancelled === true) notes.push("cancelled");
  else if (typeof entryMessage.exitCode === "number" && entryMessage.exitCode !== 0) notes.push(`exit code ${entryMessage.exitCode}`);
  if (entryMessage.excludeFromContext === true) notes.push("not told to the model");
  const card = element("details", { class: notes.length ? "tool failed" : "tool done", open: true });
  if (notes.length === 1 && entryMessage.excludeFromContext === true) card.className = "tool done";
  const body = element("div", { class: "tool-body" });
  if (!fits(text(entryMessage.command))) {
    append(body, output(text(entryMessage.command), { lines: 20, language: "bash", class: "output command" }));
  }
  if (text(entryMessage.output)) append(body, output(text(entryMessage.output), { lines: 20, tail: true }));
  else append(body, element("div", { class: "nothing" }, "(no output)"));
  if (entryMessage.truncated === true) {
    const path = text(entryMessage.fullOutputPath);
    append(body, element("div", { class: "nothing" }, `Truncated.${path ? ` All of it was in ${path}` : ""}`));
  }
  append(
    card,
    element(
      "summary",
      {},
      element("span", { class: "tool-name" }, "$"),
      element("span", { class: "tool-argument" }, firstLine(text(entryMessage.command))),
      notes.length > 0 && element("span", { class: "tool-state" }, notes.join(", ")),
    ),
    body,
  );
  append(target, heading("You ran", at), card);
}

/** A message of an extension. */
export function custom(target: HTMLElement, entryMessage: Members, at: string): void {
  target.classList.add("role-custom");
  const name = text(entryMessage.customType) || "extension";
  if (entryMessage.display === false) {
    append(
      target,
      element(
        "details",
        { class: "quiet" },
        element("summary", {}, `${name}: not shown in the conversation`),
        ...plainParts(entryMessage.content),
      ),
    );
    return;
  }
  append(target, heading(name, at), ...plainParts(entryMessage.content));
}
