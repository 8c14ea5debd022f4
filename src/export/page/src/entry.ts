// Renders the entries of a session file, more prominently the more they matter.

import { append, element } from "./dom.js";
import { count, dateTime, time } from "./format.js";
import { markdown } from "./markdown.js";
import { custom, message } from "./message.js";
import { output } from "./output.js";
import type { Calls, Node } from "./session.js";
import { json, number, text } from "./values.js";

/** Fills the element with the entry; an entry that cannot be rendered is shown as JSON. */
export function fill(target: HTMLElement, node: Node, calls: Calls): void {
  try {
    show(target, node, calls);
  } catch (error) {
    target.replaceChildren(
      element("div", { class: "problem" }, `This entry cannot be shown: ${String(error)}`),
      output(json(node.entry), { lines: 12, language: "json" }),
    );
  }
}

function show(target: HTMLElement, node: Node, calls: Calls): void {
  const { entry } = node;
  switch (node.type) {
    case "message":
      return message(target, node, calls);
    case "custom_message":
      return custom(target, entry, time(entry.timestamp));
    case "compaction": {
      const before = number(entry.tokensBefore);
      const title = `Compaction${before > 0 ? ` of ${count(before, "token")}` : ""}`;
      return summary(target, title, node, "the model goes on with this summary of what came before");
    }
    case "branch_summary":
      return summary(target, "Summary of a branch", node, "another way was tried and left");
    case "model_change":
      return note(target, "model", `${text(entry.provider)}/${text(entry.modelId)}`);
    case "thinking_level_change":
      return note(target, "thinking", text(entry.thinkingLevel));
    case "session_info":
      return note(target, "session name", text(entry.name) || "(none)");
    case "label":
      return note(target, "label", text(entry.label) || "(removed)");
    case "custom":
      return data(target, `data of an extension: ${text(entry.customType)}`, entry.data);
    default:
      return data(target, `entry of type ${node.type || "(none)"}`, entry);
  }
}

function summary(target: HTMLElement, title: string, node: Node, what: string): void {
  target.classList.add("summary");
  const by = node.entry.fromHook === true ? " \u00b7 written by an extension" : "";
  append(
    target,
    element(
      "details",
      { class: "summarised" },
      element("summary", {}, title, element("span", { class: "aside" }, ` ${what}${by}`)),
      markdown(text(node.entry.summary)),
    ),
  );
}

function note(target: HTMLElement, what: string, value: string): void {
  target.classList.add("note");
  append(target, element("span", { class: "note-name" }, what), " ", value);
}

function data(target: HTMLElement, title: string, value: unknown): void {
  target.classList.add("note");
  const made = element("details", { class: "quiet" }, element("summary", {}, title));
  // The JSON is rendered on demand, because most of it is never opened.
  made.addEventListener("toggle", () => append(made, output(json(value), { lines: 40, language: "json" })), {
    once: true,
  });
  append(target, made);
}

export function titleOf(node: Node): string {
  return [dateTime(node.entry.timestamp), node.id].filter(Boolean).join(" \u00b7 ");
}
