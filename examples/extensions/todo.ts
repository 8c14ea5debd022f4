// A to-do list that the model keeps, and that follows the conversation: after a move in the tree, a
// fork or a reopening of the session the list is that of the new position.
//
// There is no state outside the session. Every call stores the whole list in the `details` of its
// result; the current list is that of the newest call on this branch.
import { StringEnum } from "@mariozechner/pi-ai";
import type { ExtensionAPI, ExtensionContext } from "@mariozechner/pi-coding-agent";
import { Type } from "@sinclair/typebox";

interface Item {
  text: string;
  done: boolean;
}

const NAME = "todo";

function listOf(ctx: ExtensionContext): Item[] {
  for (const entry of ctx.sessionManager.getBranch().reverse()) {
    if (entry.type !== "message" || entry.message.role !== "toolResult") continue;
    const { toolName, details, isError } = entry.message;
    if (toolName === NAME && !isError) return (details as { items: Item[] }).items;
  }
  return [];
}

const written = (items: Item[]) =>
  items.map(({ text, done }, index) => `${index + 1}. [${done ? "x" : " "}] ${text}`);

function show(ctx: ExtensionContext, items: Item[]) {
  const open = items.filter(({ done }) => !done);
  ctx.ui.setWidget(NAME, open.length > 0 ? written(items) : undefined);
}

export default function (pi: ExtensionAPI) {
  pi.on("session_start", (_event, ctx) => show(ctx, listOf(ctx)));
  pi.on("session_tree", (_event, ctx) => show(ctx, listOf(ctx)));

  pi.registerTool({
    name: NAME,
    label: "To-do",
    description: "Keeps the list of what is to be done: add items, and mark them as done by their numbers",
    promptSnippet: "Keep a list of what is to be done",
    promptGuidelines: ["Work in several steps starts with a todo call that adds them; each step that is done is marked."],
    // Two parallel calls would both change the same list.
    executionMode: "sequential",
    parameters: Type.Object({
      action: StringEnum(["add", "done", "list"] as const),
      texts: Type.Optional(Type.Array(Type.String(), { description: "For add" })),
      numbers: Type.Optional(Type.Array(Type.Integer({ minimum: 1 }), { description: "For done" })),
    }),

    async execute(_toolCallId, { action, texts = [], numbers = [] }, _signal, _onUpdate, ctx) {
      const items = listOf(ctx).map((item) => ({ ...item }));
      if (action === "add") items.push(...texts.map((text) => ({ text, done: false })));
      if (action === "done") {
        for (const number of numbers) {
          const item = items[number - 1];
          if (!item) throw new Error(`There is no item ${number}: the list has ${items.length}`);
          item.done = true;
        }
      }
      show(ctx, items);
      const text = written(items).join("\n") || "The list is empty.";
      return { content: [{ type: "text", text }], details: { items } };
    },
  });
}
