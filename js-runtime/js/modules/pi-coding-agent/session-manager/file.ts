// Reads and writes the entries of a session file, one JSON text per line.
import { hostSync } from "pi:host.ts";
import { fs, path } from "pi:node.ts";

interface Entry {
  type: string;
}

export const CURRENT_SESSION_VERSION = 3;

/** Lines that are no JSON are skipped: the last one may have been cut off. */
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

/** The context that a model gets at a leaf: `null` is the position before the first entry. */
export function buildSessionContext(entries: Entry[], leafId?: string | null): unknown {
  const atEnd = leafId === undefined;
  return hostSync("sessions.contextOf", { lines: entries, leafId, atEnd });
}

/** Converts the entries of an older file, header first, to this version, in place. */
export function migrateSessionEntries(entries: Entry[]): void {
  const migrated = hostSync<Entry[] | undefined>("sessions.migrate", { lines: entries });
  migrated?.forEach((entry, index) => {
    const old = entries[index] as unknown as Record<string, unknown>;
    for (const member of Object.keys(old)) delete old[member];
    Object.assign(old, entry);
  });
}

interface Branch {
  getSessionId(): string;
  getCwd(): string;
  getBranch(): object[];
}

/** Writes the branch as a session of its own; returns the path. */
export function exportBranch(branch: Branch, outputPath?: string): string {
  const { dirname, resolve } = path();
  const { mkdirSync, writeFileSync } = fs();
  const timestamp = new Date().toISOString();
  const to = resolve(outputPath ?? `session-${timestamp.replace(/[:.]/g, "-")}.jsonl`);
  const [id, cwd] = [branch.getSessionId(), branch.getCwd()];
  const header = { type: "session", version: CURRENT_SESSION_VERSION, id, timestamp, cwd };
  const entries = branch.getBranch() as { id: string }[];
  const chained = entries.map((entry, index) => ({ ...entry, parentId: entries[index - 1]?.id ?? null }));
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, [header, ...chained].map((line) => `${JSON.stringify(line)}\n`).join(""));
  return to;
}
