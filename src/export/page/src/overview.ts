// The overview of the session: name, folder, time, models, tokens, cost, system prompt and tools.

import { append, element } from "./dom.js";
import { count, dateTime, dollars, firstLine, tokens } from "./format.js";
import { output } from "./output.js";
import type { Node, Session } from "./session.js";
import { content, json, list, members, number, text } from "./values.js";

interface Totals {
  user: number;
  responses: number;
  calls: number;
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  cost: number;
  models: Set<string>;
}

export function totals(nodes: Node[]): Totals {
  const sum: Totals = {
    user: 0, responses: 0, calls: 0, input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0, models: new Set(),
  };
  for (const { type, entry } of nodes) {
    if (type !== "message") continue;
    const message = members(entry.message);
    if (message.role === "user") sum.user++;
    if (message.role !== "assistant") continue;
    sum.responses++;
    sum.calls += list(message.content).filter((block) => members(block).type === "toolCall").length;
    const usage = members(message.usage);
    sum.input += number(usage.input);
    sum.output += number(usage.output);
    sum.cacheRead += number(usage.cacheRead);
    sum.cacheWrite += number(usage.cacheWrite);
    sum.cost += number(members(usage.cost).total);
    if (text(message.model)) sum.models.add(`${text(message.provider)}/${text(message.model)}`);
  }
  return sum;
}

export function title(session: Session): string {
  if (session.name) return session.name;
  const first = session.nodes.find((node) => members(node.entry.message).role === "user");
  const line = first && firstLine(content(members(first.entry.message).content).text, 80);
  return line || "pi session";
}

export function overview(target: HTMLElement, session: Session): void {
  const { header, about, nodes } = session;
  const sum = totals(nodes);
  const facts = element("dl", {});
  const fact = (name: string, value: string): void => {
    if (value) append(facts, element("div", {}, element("dt", {}, name), element("dd", {}, value)));
  };
  const [first, last] = [dateTime(header.timestamp), dateTime(nodes.at(-1)?.entry.timestamp)];
  const day = first.slice(0, 10);
  const until = day && last.startsWith(day) ? last.slice(11) : last;
  fact("Date", last && last !== first ? `${first} \u2013 ${until}` : first);
  fact("Folder", text(header.cwd));
  fact("Models", [...sum.models].join(", "));
  fact(
    "Messages",
    `${sum.user.toLocaleString("en-US")} from the user, ${count(sum.responses, "answer")}, ${count(sum.calls, "tool call")}`,
  );
  const cached = sum.cacheRead + sum.cacheWrite;
  const used = `${tokens(sum.input)} in, ${tokens(sum.output)} out`;
  fact(
    "Tokens",
    cached > 0 ? `${used}, ${tokens(sum.cacheRead)} read from cache, ${tokens(sum.cacheWrite)} written to cache` : used,
  );
  if (sum.cost > 0) fact("Cost", dollars(sum.cost));
  const ends = nodes.filter((node) => node.children.length === 0).length;
  if (ends > 1) fact("Branches", String(ends));
  fact("Session", text(header.id));
  fact("Forked from", text(header.parentSession));
  append(target, element("h1", {}, title(session)), facts);
  if (session.skipped > 0) {
    append(target, element("div", { class: "problem" }, `${count(session.skipped, "line")} could not be read.`));
  }
  promptAndTools(target, text(about.systemPrompt), list(about.tools));
}

/** Known only if the session was exported while it was open. */
function promptAndTools(target: HTMLElement, prompt: string, tools: unknown[]): void {
  if (prompt) {
    append(
      target,
      element(
        "details",
        { class: "told" },
        element("summary", {}, "System prompt"),
        output(prompt, { lines: 400, class: "output wrapped" }),
      ),
    );
  }
  if (tools.length === 0) return;
  const box = element("details", { class: "told" }, element("summary", {}, count(tools.length, "tool")));
  for (const tool of tools.map(members)) {
    append(
      box,
      element(
        "details",
        { class: "quiet" },
        element(
          "summary",
          {},
          element("b", {}, text(tool.name)),
          element("span", { class: "aside" }, ` ${firstLine(text(tool.description))}`),
        ),
        output(text(tool.description), { lines: 40, class: "output wrapped" }),
        output(json(tool.parameters ?? {}), { lines: 100, language: "json" }),
      ),
    );
  }
  append(target, box);
}
