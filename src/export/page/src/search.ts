// Searches all branches for words, and marks them in the visible ones.

import { words } from "./outline.js";
import type { Node } from "./session.js";

const MARKS = "found";
/** More marks would take longer than reading. */
const MAX_MATCHES = 2_000;

export function find(nodes: Node[], query: string): Set<Node> | null {
  const queryTerms = terms(query);
  if (queryTerms.length === 0) return null;
  return new Set(
    nodes.filter((node) => {
      const all = words(node);
      return queryTerms.every((term) => all.includes(term));
    }),
  );
}

export function terms(query: string): string[] {
  return query.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Marks matches without changing elements; a browser without that feature shows none. */
export class Marks {
  private readonly ranges: Highlight | null;
  private queryTerms: string[] = [];

  constructor() {
    this.ranges = typeof Highlight === "function" && "highlights" in CSS ? new Highlight() : null;
    if (this.ranges) CSS.highlights.set(MARKS, this.ranges);
  }

  set(query: string, shown: HTMLElement[]): void {
    this.queryTerms = terms(query);
    this.ranges?.clear();
    for (const one of shown) this.mark(one);
  }

  mark(target: HTMLElement): void {
    if (!this.ranges || this.queryTerms.length === 0) return;
    const texts = document.createTreeWalker(target, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      const content = (node.nodeValue ?? "").toLowerCase();
      // Some letters are longer in lower case, which would shift the positions.
      if (content.length !== node.nodeValue?.length) continue;
      for (const term of this.queryTerms) {
        for (let at = content.indexOf(term); at >= 0; at = content.indexOf(term, at + term.length)) {
          if (this.ranges.size >= MAX_MATCHES) return;
          const range = new Range();
          range.setStart(node, at);
          range.setEnd(node, at + term.length);
          this.ranges.add(range);
        }
      }
    }
  }

  /** Opens elements that hide a match. */
  open(target: HTMLElement): void {
    if (this.queryTerms.length === 0) return;
    const found = (part: HTMLElement): string[] => {
      const content = (part.textContent ?? "").toLowerCase();
      return this.queryTerms.filter((term) => content.includes(term));
    };
    const all = found(target).length < this.queryTerms.length;
    for (const details of target.querySelectorAll("details")) {
      if (all || found(details).length > 0) details.open = true;
    }
    // The match is further down, in the part that is cut off.
    if (all) for (const more of target.querySelectorAll<HTMLButtonElement>("button.more")) more.click();
  }
}
