// Renders a tool call with its result: the call in one line, the rest below it.

import { diff, requestedEdits } from "./diff.js";
import { append, element } from "./dom.js";
import { firstLine } from "./format.js";
import { languageOf } from "./highlight.js";
import { output } from "./output.js";
import { picture } from "./pictures.js";
import { content, json, type Members, members, text } from "./values.js";

/** Tools whose results are folded, because they are long and the call matters more. */
const CLOSED = new Set(["read", "ls", "find", "grep"]);

/** Whether the headline contains the whole command. */
export const fits = (command: string): boolean => command.length <= 90 && !command.trim().includes("\n");

const pathOf = (args: Members): string => text(args.path) || text(args.file_path);

/** `result` is the message of the tool, if there is one. */
export function tool(call: Members, result: Members | null): HTMLElement {
  const name = text(call.name);
  const args = members(call.arguments);
  const state = result ? (result.isError === true ? "failed" : "done") : "open";
  const card = element("details", { class: `tool ${state}`, "data-kind": "tool", open: !CLOSED.has(name) });
  const status = state === "failed" ? "failed" : state === "open" ? "no result" : "";
  append(
    card,
    element(
      "summary",
      {},
      element("span", { class: "tool-name" }, name || "tool"),
      element("span", { class: "tool-argument" }, headline(name, args)),
      status && element("span", { class: "tool-state" }, status),
    ),
    body(name, args, call, result),
  );
  return card;
}

/** The argument that identifies a call. */
export function headline(name: string, args: Members): string {
  switch (name) {
    case "bash":
      return firstLine(text(args.command));
    case "grep":
    case "find":
      return [text(args.pattern), pathOf(args)].filter(Boolean).join(" in ") + options(args);
    case "read": {
      const { offset, limit } = args;
      const from = typeof offset === "number" ? offset : 1;
      const range = typeof limit === "number" ? `:${from}-${from + limit - 1}` : from > 1 ? `:${from}-` : "";
      return pathOf(args) + range;
    }
    default: {
      const first = pathOf(args) || Object.values(args).find((value) => typeof value === "string");
      return firstLine(text(first), 120);
    }
  }
}

/** The options of a search besides its pattern and path. */
function options({ pattern: _, path: __, ...rest }: Members): string {
  const set = Object.entries(rest).filter(([, value]) => value !== undefined && value !== null && value !== false);
  const named = set.map(([name, value]) => (value === true ? name : `${name} ${firstLine(String(value), 60)}`));
  return named.length > 0 ? ` (${named.join(", ")})` : "";
}

function body(name: string, args: Members, call: Members, result: Members | null): HTMLElement {
  const box = element("div", { class: "tool-body" });
  const parts = content(result?.content);
  const failed = result?.isError === true;
  switch (name) {
    case "bash":
      if (!fits(text(args.command))) {
        append(box, output(text(args.command), { lines: 20, language: "bash", class: "output command" }));
      }
      break;
    case "write":
      append(box, output(text(args.content), { lines: 12, language: languageOf(pathOf(args)) }));
      // The result only confirms the write.
      if (!failed) return pictures(box, parts.pictures);
      break;
    case "edit": {
      const changed = text(members(result?.details).diff) || requestedEdits(args);
      if (changed) append(box, diff(changed));
      if (!failed) return pictures(box, parts.pictures);
      break;
    }
    case "read":
    case "ls":
    case "find":
    case "grep":
      break;
    default: {
      const shown = typeof call.arguments === "object" ? args : call.arguments;
      if (Object.keys(args).length > 0 || typeof shown === "string") {
        append(box, output(json(shown), { lines: 12, language: "json", class: "output arguments" }));
      }
    }
  }
  const language = name === "read" && !failed ? languageOf(pathOf(args)) : "";
  if (parts.text) append(box, output(parts.text, { lines: 12, language, tail: name === "bash" }));
  else if (result && parts.pictures.length === 0) append(box, element("div", { class: "nothing" }, "(no output)"));
  return pictures(box, parts.pictures);
}

function pictures(box: HTMLElement, found: ReturnType<typeof content>["pictures"]): HTMLElement {
  for (const one of found) append(box, picture(one));
  return box;
}
