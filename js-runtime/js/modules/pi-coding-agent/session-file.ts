// Reading the entries of a session file, one JSON text a line.
import { hostSync } from "pi:host.ts";

interface Entry {
  type: string;
}

export const CURRENT_SESSION_VERSION = 3;

/** Lines that are no JSON are left out: the last one may have been cut off. */
export function parseSessionEntries(content: string): Entry[] {
  const entries: Entry[] = [];
  for (const line of content.split("\n")) {
    if (line.trim() === "") continue;
    try {
      entries.push(JSON.parse(line));
    } catch {
      continue;
    }
  }
  return entries;
}

export function getLatestCompactionEntry<T extends Entry>(entries: T[]): T | null {
  return entries.findLast((entry) => entry.type === "compaction") ?? null;
}

/** What a model is told at a leaf: `null` is the place before the first entry. */
export function buildSessionContext(entries: Entry[], leafId?: string | null): unknown {
  const atEnd = leafId === undefined;
  return hostSync("sessions.contextOf", { lines: entries, leafId, atEnd });
}

/** Brings the entries of an older file, header first, to this version, in place. */
export function migrateSessionEntries(entries: Entry[]): void {
  const migrated = hostSync<Entry[] | undefined>("sessions.migrate", { lines: entries });
  migrated?.forEach((entry, index) => {
    const old = entries[index] as unknown as Record<string, unknown>;
    for (const member of Object.keys(old)) delete old[member];
    Object.assign(old, entry);
  });
}
