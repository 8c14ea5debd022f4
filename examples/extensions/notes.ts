// Notes that belong to a session: `/note <text>` adds one, `/notes` shows them, and the model gets
// them with every prompt.
//
// Notes are entries of the session file, so they are there again when the session is opened another
// time; a fork has those that were made before the fork.
import type { ExtensionAPI, ExtensionContext } from "@mariozechner/pi-coding-agent";

const ENTRY = "notes.note";

interface Note {
  text: string;
}

export default function (pi: ExtensionAPI) {
  let notes: string[] = [];

  function show(ctx: ExtensionContext) {
    ctx.ui.setStatus("notes", notes.length > 0 ? `notes: ${notes.length}` : undefined);
  }

  // Emitted at the start, and again after /new, /reload, a switch or a fork.
  pi.on("session_start", (_event, ctx) => {
    notes = [];
    for (const entry of ctx.sessionManager.getBranch()) {
      if (entry.type === "custom" && entry.customType === ENTRY) notes.push((entry.data as Note).text);
    }
    show(ctx);
  });

  pi.on("before_agent_start", (event) => {
    if (notes.length === 0) return;
    const list = notes.map((note) => `- ${note}`).join("\n");
    return { systemPrompt: `${event.systemPrompt}\n\nThe user's notes:\n${list}` };
  });

  pi.registerCommand("note", {
    description: "Adds a note to this session",
    handler: async (args, ctx) => {
      const text = args.trim() || (await ctx.ui.input("Note"))?.trim();
      if (!text) return;
      pi.appendEntry(ENTRY, { text } satisfies Note);
      notes.push(text);
      show(ctx);
    },
  });

  pi.registerCommand("notes", {
    description: "Shows the notes of this session",
    handler: async (_args, ctx) => {
      const list = notes.map((note, index) => `${index + 1}. ${note}`).join("\n");
      ctx.ui.notify(list || "There are no notes in this session.", "info");
    },
  });
}
