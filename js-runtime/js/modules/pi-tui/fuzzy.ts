// Fuzzy search: the letters of the query in order, not necessarily together. A lower
// score is a better match.

export interface FuzzyMatch {
  matches: boolean;
  score: number;
}

const WORD_START = /[\s\-_./:]/;
const NO_MATCH: Readonly<FuzzyMatch> = { matches: false, score: 0 };

function scoreOf(query: string, text: string): FuzzyMatch {
  let score = 0;
  let last = -1;
  let run = 0;
  let from = 0;
  for (let i = 0; i < query.length; i++) {
    const at = text.indexOf(query[i], from);
    if (at < 0) return { ...NO_MATCH };
    // The very start counts as a continuation.
    if (at === last + 1) {
      run += 1;
      score -= run * 5;
    } else {
      run = 0;
      if (last >= 0) score += (at - last - 1) * 2;
    }
    if (at === 0 || WORD_START.test(text[at - 1])) score -= 10;
    score += at * 0.1;
    last = at;
    from = at + 1;
  }
  return { matches: true, score };
}

/** Also finds "v2" in "2v": letters and digits may be swapped, for a slightly worse score. */
export function fuzzyMatch(query: string, text: string): FuzzyMatch {
  const wanted = query.toLowerCase();
  const hay = text.toLowerCase();
  const direct = scoreOf(wanted, hay);
  if (direct.matches) return direct;
  const parts = /^([a-z]+)([0-9]+)$/.exec(wanted) ?? /^([0-9]+)([a-z]+)$/.exec(wanted);
  if (!parts) return direct;
  const swapped = scoreOf(parts[2] + parts[1], hay);
  return swapped.matches ? { matches: true, score: swapped.score + 5 } : direct;
}

/** The items that match every word of `query`, best first. */
export function fuzzyFilter<T>(items: T[], query: string, getText: (item: T) => string): T[] {
  const words = query.split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) return items;
  const found: { item: T; score: number }[] = [];
  for (const item of items) {
    const text = getText(item);
    const matches = words.map((word) => fuzzyMatch(word, text));
    if (matches.every((match) => match.matches)) {
      found.push({ item, score: matches.reduce((sum, match) => sum + match.score, 0) });
    }
  }
  return found.sort((a, b) => a.score - b.score).map(({ item }) => item);
}
