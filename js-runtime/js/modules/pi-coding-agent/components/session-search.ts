// Searches and sorts sessions by words, "phrases" and re:expressions.
import { fuzzyMatch } from "pi:pi-tui/fuzzy.ts";

export interface SessionInfo {
  path: string;
  id: string;
  cwd: string;
  name?: string;
  parentSessionPath?: string;
  created?: Date;
  modified: Date;
  messageCount: number;
  firstMessage: string;
  allMessagesText: string;
}

export type SortMode = "threaded" | "recent" | "relevance";
export type NameFilter = "all" | "named";

/** Scores a text, the lower the better; `undefined` if it does not match. */
type Matcher = (text: string) => number | undefined;

/** A match nearer to the start scores better. */
const PLACE_WEIGHT = 0.1;

const squeezed = (text: string): string => text.toLowerCase().replace(/\s+/g, " ").trim();

function scoreAt(index: number): number | undefined {
  return index < 0 ? undefined : index * PLACE_WEIGHT;
}

function phrase(words: string): Matcher {
  const wanted = squeezed(words);
  return (text) => scoreAt(squeezed(text).indexOf(wanted));
}

function word(wanted: string): Matcher {
  return (text) => {
    const { matches, score } = fuzzyMatch(wanted, text);
    return matches ? score : undefined;
  };
}

/** `undefined` for an invalid regular expression. */
function matchersOf(query: string): Matcher[] | undefined {
  if (query.startsWith("re:")) {
    try {
      const pattern = query.slice(3).trim();
      const expression = new RegExp(pattern, "i");
      return pattern ? [(text) => scoreAt(text.search(expression))] : undefined;
    } catch {
      return undefined;
    }
  }
  // A quote without its end is a character like any other.
  const quotes = query.split('"').length - 1;
  if (quotes % 2 === 1) return query.split(/\s+/).map(word);
  return query.split('"').flatMap((part, i) => {
    if (i % 2 === 1) return part.trim() ? [phrase(part)] : [];
    return part.split(/\s+/).filter(Boolean).map(word);
  });
}

export function hasName({ name }: SessionInfo): boolean {
  return Boolean(name?.trim());
}

/** The matching sessions, the best first; unsorted in "recent" order. */
export function findSessions(sessions: SessionInfo[], query: string, sort: SortMode): SessionInfo[] {
  const trimmed = query.trim();
  if (!trimmed) return sessions;
  const matchers = matchersOf(trimmed) ?? [() => undefined];
  const found = sessions.flatMap((session) => {
    const { id, name, allMessagesText, cwd } = session;
    const text = `${id} ${name ?? ""} ${allMessagesText} ${cwd}`;
    let score = 0;
    for (const match of matchers) {
      const points = match(text);
      if (points === undefined) return [];
      score += points;
    }
    return [{ session, score }];
  });
  if (sort !== "recent") {
    found.sort((a, b) => a.score - b.score || Number(b.session.modified) - Number(a.session.modified));
  }
  return found.map(({ session }) => session);
}

export interface SessionRow {
  session: SessionInfo;
  /** The lines that connect it with the session from which it was forked. */
  prefix: string;
}

/** Arranges sessions below those from which they were forked, the newest first. */
export function inThreads(sessions: SessionInfo[]): SessionRow[] {
  const known = new Set(sessions.map(({ path }) => path));
  const families = new Map<string | undefined, SessionInfo[]>();
  const newest = [...sessions].sort((a, b) => Number(b.modified) - Number(a.modified));
  for (const session of newest) {
    const { parentSessionPath: parent } = session;
    const key = parent !== undefined && known.has(parent) ? parent : undefined;
    families.set(key, [...(families.get(key) ?? []), session]);
  }
  const rows: SessionRow[] = [];
  const roots = families.get(undefined) ?? [];
  // `lead` is the prefix of the children's lines.
  const waiting = roots.map((session) => ({ session, prefix: "", lead: "   " })).reverse();
  for (let row = waiting.pop(); row; row = waiting.pop()) {
    rows.push({ session: row.session, prefix: row.prefix });
    const { lead } = row;
    const children = families.get(row.session.path) ?? [];
    // In files that were edited by hand a session may be its own ancestor.
    families.delete(row.session.path);
    const below = children.map((session, i) => {
      const isLast = i === children.length - 1;
      return {
        session,
        prefix: `${lead}${isLast ? "\u2514\u2500 " : "\u251c\u2500 "}`,
        lead: `${lead}${isLast ? "   " : "\u2502  "}`,
      };
    });
    waiting.push(...below.reverse());
  }
  return rows;
}
