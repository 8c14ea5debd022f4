// Reading the entries of a session file, one JSON text a line.

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
