// Selects the entries of a session that a model gets, and converts them to messages.
import { buildSessionContext } from "pi:pi-coding-agent/session-manager/file.ts";
import type { Entry } from "pi:pi-coding-agent/session-manager/view.ts";

type Message = Record<string, unknown> & { role: string };

/** The latest compaction on a path, the entries that it kept, and those after it. */
export function contextOfPath(path: Entry[]): Entry[] {
  const at = path.findLastIndex(({ type }) => type === "compaction");
  if (at < 0) return path;
  const first = path.findIndex(({ id }) => id === path[at].firstKeptEntryId);
  const kept = first < 0 || first >= at ? [] : path.slice(first, at);
  return [path[at], ...kept, ...path.slice(at + 1)];
}

/** The entries at the leaf, by default the last entry; `null` is before the first. */
export function buildContextEntries(
  entries: Entry[],
  leafId?: string | null,
  byId: Map<string, Entry> = new Map(entries.map((entry) => [entry.id, entry])),
): Entry[] {
  if (leafId === null) return [];
  const path: Entry[] = [];
  const seen = new Set<string>();
  let entry = (leafId ? byId.get(leafId) : undefined) ?? entries.at(-1);
  // A damaged file may contain a cycle.
  while (entry && !seen.has(entry.id)) {
    seen.add(entry.id);
    path.push(entry);
    entry = entry.parentId ? byId.get(entry.parentId) : undefined;
  }
  return contextOfPath(path.reverse());
}

interface Projection {
  entries: { sourceEntry: Entry; messages: Message[] }[];
  messages: Message[];
  thinkingLevel: unknown;
  model: unknown;
}

/** The messages that a model gets at a leaf, each with its entry. */
export function buildSessionProjection(
  entries: Entry[],
  leafId?: string | null,
  byId?: Map<string, Entry>,
): Projection {
  const projected = buildContextEntries(entries, leafId, byId).map((sourceEntry) => ({
    sourceEntry,
    messages: sessionEntryToContextMessages(sourceEntry),
  }));
  const { thinkingLevel, model } = buildSessionContext(entries, leafId) as Projection;
  return { entries: projected, messages: projected.flatMap(({ messages }) => messages), thinkingLevel, model };
}

/** The messages that an entry adds to the conversation: none or one. */
export function sessionEntryToContextMessages(entry: Entry): Message[] {
  const timestamp = Date.parse(entry.timestamp);
  switch (entry.type) {
    case "message": {
      const message = entry.message as Message;
      // Messages in files of other versions may lack content.
      return [message.content === null ? { ...message, content: [] } : message];
    }
    case "custom_message": {
      const { customType, content, display, details } = entry;
      return [{ role: "custom", customType, content: content ?? [], display, details, timestamp }];
    }
    case "branch_summary": {
      const { summary, fromId } = entry;
      return summary ? [{ role: "branchSummary", summary, fromId, timestamp }] : [];
    }
    case "compaction": {
      const { summary, tokensBefore } = entry;
      return [{ role: "compactionSummary", summary, tokensBefore, timestamp }];
    }
    default:
      return [];
  }
}
