// Searches the messages of earlier sessions: `/find words` for the user, who may go back to one of
// them, and a tool for the model.
import { SessionManager } from "@mariozechner/pi-coding-agent";
import type { ExtensionAPI, SessionInfo } from "@mariozechner/pi-coding-agent";
import { Type } from "@sinclair/typebox";

interface Match {
  session: SessionInfo;
  /** The text around the first of the words. */
  excerpt: string;
}

/** Sessions that contain all the words, the newest first. */
async function search(words: string, but: string | undefined, everywhere: boolean, cwd: string): Promise<Match[]> {
  const wanted = words.toLowerCase().split(/\s+/).filter((word) => word !== "");
  if (wanted.length === 0) return [];
  const sessions = everywhere ? await SessionManager.listAll() : await SessionManager.list(cwd);
  const matches = sessions.filter(({ path }) => path !== but).flatMap((session) => {
    const text = session.allMessagesText.replace(/\s+/g, " ");
    const places = wanted.map((word) => text.toLowerCase().indexOf(word));
    if (places.includes(-1)) return [];
    const from = Math.max(0, Math.min(...places) - 40);
    return [{ session, excerpt: text.slice(from, from + 160).trim() }];
  });
  return matches.sort((a, b) => b.session.modified.getTime() - a.session.modified.getTime());
}

const label = ({ session, excerpt }: Match) =>
  `${session.modified.toISOString().slice(0, 16).replace("T", " ")} ${session.name ?? session.firstMessage.slice(0, 40)} | ${excerpt}`;

export default function (pi: ExtensionAPI) {
  pi.registerCommand("find", {
    description: "Finds a session of this folder by what was said in it, and opens it",
    handler: async (words, ctx) => {
      const found = await search(words, ctx.sessionManager.getSessionFile(), false, ctx.cwd);
      if (found.length === 0) return ctx.ui.notify(`No message of another session here contains "${words}".`, "info");
      const labels = found.slice(0, 20).map((match, index) => `${index + 1}. ${label(match)}`);
      const chosen = await ctx.ui.select(`Sessions with "${words}"`, labels);
      if (chosen !== undefined) await ctx.switchSession(found[labels.indexOf(chosen)].session.path);
    },
  });

  pi.registerTool({
    name: "search_sessions",
    label: "Search sessions",
    description: "Searches what was said in earlier conversations; finds those in which all the words were said",
    promptSnippet: "Search earlier conversations",
    promptGuidelines: ["Use search_sessions when the user refers to something that was said or decided before."],
    parameters: Type.Object({
      words: Type.String(),
      everywhere: Type.Optional(Type.Boolean({ description: "Also sessions of other folders" })),
    }),
    async execute(_toolCallId, { words, everywhere = false }, _signal, _onUpdate, ctx) {
      const found = await search(words, ctx.sessionManager.getSessionFile(), everywhere, ctx.cwd);
      const text = found.slice(0, 10).map((match) => `${match.session.cwd}: ${label(match)}`).join("\n");
      return {
        content: [{ type: "text", text: text || "That was not said." }],
        details: { sessions: found.map(({ session }) => session.path) },
      };
    },
  });
}
