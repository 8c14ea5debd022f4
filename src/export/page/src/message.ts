// The messages of a conversation.

import { append, element } from "./dom.js";
import { dollars, firstLine, time, tokens } from "./format.js";
import { markdown } from "./markdown.js";
import { output } from "./output.js";
import { picture } from "./pictures.js";
import type { Calls, Node } from "./session.js";
import { fits, tool } from "./tool.js";
import { content, json, list, type Members, members, number, text } from "./values.js";

/** A line above an entry: the author, and the remaining details in small. */
export function heading(who: string, ...rest: string[]): HTMLElement {
  const line = element("header", {}, element("span", { class: "who" }, who));
  for (const one of rest.filter(Boolean)) append(line, element("span", { class: "aside" }, one));
  return line;
}

export function message(target: HTMLElement, node: Node, calls: Calls): void {
  const said = members(node.entry.message);
  const at = time(said.timestamp) || time(node.entry.timestamp);
  const role = text(said.role);
  target.classList.add(`role-${/^\w+$/.test(role) ? role : "unknown"}`);
  switch (role) {
    case "user":
      return append(target, heading("You", at), ...asked(said.content));
    case "assistant":
      return answer(target, node, said, at, calls);
    case "toolResult":
      // The call is not on this branch, or the result would be shown there.
      return append(target, tool({ name: said.toolName }, said));
    case "bashExecution":
      return bash(target, said, at);
    case "custom":
    case "hookMessage":
      return custom(target, said, at);
    default:
      append(target, heading(role || "Message", at), output(json(said), { lines: 12, language: "json" }));
  }
}

/** The form of an expanded `/skill:name`: the skill's text, then the user's message. */
const SKILL = /^<skill name="([^"\n]*)"[^>\n]*>\n([\s\S]*?)\n<\/skill>(?:\n\n([\s\S]*))?$/;

function asked(value: unknown): HTMLElement[] {
  const said = content(value);
  const skill = SKILL.exec(said.text);
  if (!skill) return written(value);
  const [, name = "", body = "", rest = ""] = skill;
  const folded = element("details", { class: "quiet" }, element("summary", {}, `skill ${name}`), markdown(body));
  return [folded, ...written([{ type: "text", text: rest }]), ...said.pictures.map((one) => picture(one))];
}

/** Text and pictures. */
function written(value: unknown): HTMLElement[] {
  const said = content(value);
  const made = said.text ? [markdown(said.text)] : [];
  return [...made, ...said.pictures.map((one) => picture(one))];
}

function answer(target: HTMLElement, node: Node, said: Members, at: string, calls: Calls): void {
  const usage = members(said.usage);
  const cost = number(members(usage.cost).total);
  const read = number(usage.input) + number(usage.cacheRead) + number(usage.cacheWrite);
  append(
    target,
    heading(
      "Assistant",
      at,
      text(said.model),
      read + number(usage.output) > 0 ? `${tokens(read)} in, ${tokens(number(usage.output))} out` : "",
      cost > 0 ? dollars(cost) : "",
    ),
  );
  // Very old files have a text.
  const blocks = typeof said.content === "string" ? [{ type: "text", text: said.content }] : list(said.content);
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
        append(target, ...written([block]));
        break;
      default:
        append(target, output(json(block), { lines: 12, language: "json" }));
    }
  }
  ending(target, said);
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

function ending(target: HTMLElement, said: Members): void {
  const words: Record<string, string> = {
    error: "The request failed",
    aborted: "Aborted",
    length: "Cut off: the answer reached its maximal length",
  };
  const word = words[text(said.stopReason)];
  if (!word) return;
  const reason = text(said.errorMessage);
  append(target, element("div", { class: "problem" }, reason ? `${word}: ${reason}` : word));
}

function bash(target: HTMLElement, said: Members, at: string): void {
  const notes: string[] = [];
  if (said.cancelled === true) notes.push("cancelled");
  else if (typeof said.exitCode === "number" && said.exitCode !== 0) notes.push(`exit code ${said.exitCode}`);
  if (said.excludeFromContext === true) notes.push("not told to the model");
  const card = element("details", { class: notes.length ? "tool failed" : "tool done", open: true });
  if (notes.length === 1 && said.excludeFromContext === true) card.className = "tool done";
  const body = element("div", { class: "tool-body" });
  if (!fits(text(said.command))) {
    append(body, output(text(said.command), { lines: 20, language: "bash", class: "output command" }));
  }
  if (text(said.output)) append(body, output(text(said.output), { lines: 20, tail: true }));
  else append(body, element("div", { class: "nothing" }, "(no output)"));
  if (said.truncated === true) {
    const path = text(said.fullOutputPath);
    append(body, element("div", { class: "nothing" }, `Truncated.${path ? ` All of it was in ${path}` : ""}`));
  }
  append(
    card,
    element(
      "summary",
      {},
      element("span", { class: "tool-name" }, "$"),
      element("span", { class: "tool-argument" }, firstLine(text(said.command))),
      notes.length > 0 && element("span", { class: "tool-state" }, notes.join(", ")),
    ),
    body,
  );
  append(target, heading("You ran", at), card);
}

/** A message of an extension. */
export function custom(target: HTMLElement, said: Members, at: string): void {
  target.classList.add("role-custom");
  const name = text(said.customType) || "extension";
  if (said.display === false) {
    append(
      target,
      element(
        "details",
        { class: "quiet" },
        element("summary", {}, `${name}: not shown in the conversation`),
        ...written(said.content),
      ),
    );
    return;
  }
  append(target, heading(name, at), ...written(said.content));
}
