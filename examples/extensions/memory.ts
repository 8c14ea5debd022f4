// Facts for every project and every session: the tool `remember` stores one in a SQLite database in
// the agent folder, `recall` finds it again by its words.
//
// `node:sqlite` with full-text search is part of pi: nothing to install.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { getAgentDir } from "@mariozechner/pi-coding-agent";
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import { Type } from "@sinclair/typebox";

interface Note {
  id: number;
  text: string;
  project: string;
  day: string;
}

function open(): DatabaseSync {
  const folder = join(getAgentDir(), "memory");
  mkdirSync(folder, { recursive: true });
  const database = new DatabaseSync(join(folder, "memory.db"));
  // Several sessions may use the database at a time.
  database.exec("PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5000");
  database.exec("CREATE VIRTUAL TABLE IF NOT EXISTS memory USING fts5(text, project UNINDEXED, day UNINDEXED)");
  return database;
}

/** Matches any of the words, as text: the model does not know FTS5's operators. */
const query = (words: string) =>
  words.split(/[^\p{L}\p{N}_]+/u).filter((word) => word !== "").map((word) => `"${word}"*`).join(" OR ");

export default function (pi: ExtensionAPI) {
  let database: DatabaseSync | undefined;
  const memory = () => (database ??= open());
  pi.on("session_shutdown", () => database?.close());

  const find = (words: string, limit: number) => {
    const match = query(words);
    if (match === "") return [];
    const statement = memory().prepare(
      "SELECT rowid AS id, text, project, day FROM memory WHERE memory MATCH ? ORDER BY rank LIMIT ?",
    );
    return statement.all(match, limit) as unknown as Note[];
  };
  const written = (found: Note[]) =>
    found.map(({ id, text, project, day }) => `#${id} (${day}, ${project}) ${text}`).join("\n");
  const answer = (text: string, details: object) => ({ content: [{ type: "text" as const, text }], details });

  pi.registerTool({
    name: "remember",
    label: "Remember",
    description: "Stores one fact for later sessions, in all projects",
    promptSnippet: "Store a fact for later sessions",
    promptGuidelines: ["Use remember for what the user states as a lasting preference or decision, one fact per call."],
    parameters: Type.Object({ text: Type.String({ minLength: 1 }) }),
    async execute(_toolCallId, { text }, _signal, _onUpdate, ctx) {
      const day = new Date().toISOString().slice(0, 10);
      const insert = memory().prepare("INSERT INTO memory (text, project, day) VALUES (?, ?, ?)");
      const id = Number(insert.run(text, ctx.cwd, day).lastInsertRowid);
      return answer(`Remembered as #${id}.`, { id });
    },
  });

  pi.registerTool({
    name: "recall",
    label: "Recall",
    description: "Searches what was remembered, by words; the best matches come first",
    promptSnippet: "Search what was remembered in earlier sessions",
    parameters: Type.Object({
      words: Type.String(),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, description: "How many (10)" })),
    }),
    async execute(_toolCallId, { words, limit = 10 }) {
      const found = find(words, limit);
      return answer(written(found) || "Nothing is known about that.", { ids: found.map(({ id }) => id) });
    },
  });

  pi.registerCommand("forget", {
    description: "Removes what is remembered about some words",
    handler: async (words, ctx) => {
      const found = find(words, 50);
      if (found.length === 0) return ctx.ui.notify("Nothing is known about that.", "info");
      if (!(await ctx.ui.confirm(`Forget ${found.length} of them?`, written(found)))) return;
      const remove = memory().prepare("DELETE FROM memory WHERE rowid = ?");
      for (const { id } of found) remove.run(id);
    },
  });
}
