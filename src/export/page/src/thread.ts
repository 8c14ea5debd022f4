// One branch from its first entry to its last. Entries are rendered when they come near the window,
// or when the browser is idle: long sessions open at once.

import { append, button, element } from "./dom.js";
import { fill, titleOf } from "./entry.js";
import { Calls, type Node, pathTo } from "./session.js";

const RENDER_MARGIN = "1500px";
/** The number of frames during which entries that come into view may still change their size. */
const SETTLING = 12;

export interface ThreadOptions {
  /** Called when the reader selects another branch, at this entry. */
  go: (node: Node) => void;
  /** Called when entries were rendered, so that matches in them can be marked. */
  filled: (article: HTMLElement) => void;
}

export class Thread {
  path: Node[] = [];
  private calls = new Calls([]);
  private readonly articles = new Map<Node, HTMLElement>();
  private readonly waiting = new Map<HTMLElement, Node>();
  private readonly observer: IntersectionObserver;
  private idle = false;

  constructor(
    private readonly target: HTMLElement,
    private readonly roots: Node[],
    private readonly options: ThreadOptions,
  ) {
    this.observer = new IntersectionObserver(
      (seen) => {
        for (const { isIntersecting, target } of seen) if (isIntersecting) this.make(target as HTMLElement);
      },
      { rootMargin: RENDER_MARGIN },
    );
    // A printed page contains all entries.
    window.addEventListener("beforeprint", () => this.makeAll());
  }

  show(leaf: Node | null): void {
    this.observer.disconnect();
    this.articles.clear();
    this.waiting.clear();
    this.path = pathTo(leaf);
    this.calls = new Calls(this.path);
    const all = document.createDocumentFragment();
    for (const node of this.path) {
      // Results of tools are shown with their calls.
      if (this.calls.placeOf(node) !== node) {
        append(all, this.siblings(node));
        continue;
      }
      const article = element("article", { class: `entry type-${cssName(node.type)}`, "data-entry": String(node.index) });
      append(all, this.siblings(node), article);
      this.articles.set(node, article);
      this.waiting.set(article, node);
    }
    if (this.path.length === 0) append(all, element("p", { class: "nothing" }, "Nothing has been said here yet."));
    this.target.replaceChildren(all);
    for (const article of this.articles.values()) this.observer.observe(article);
    this.whenIdle();
  }

  has(node: Node): boolean {
    return this.path[this.depthOf(node)] === node;
  }

  private depthOf(node: Node): number {
    let depth = 0;
    for (let up = node.parent; up; up = up.parent) depth++;
    return depth;
  }

  /** Scrolls an entry of this branch into view. */
  reveal(node: Node, mark = true): void {
    const place = this.calls.placeOf(node);
    const article = this.articles.get(place);
    if (!article) return;
    this.make(article);
    const inner = place === node ? null : article.querySelector<HTMLElement>(`[data-entry="${node.index}"]`);
    const shown = inner ?? article;
    if (inner instanceof HTMLDetailsElement) inner.open = true;
    if (mark) {
      for (const old of this.target.querySelectorAll(".target")) old.classList.remove("target");
      shown.classList.add("target");
    }
    let frames = SETTLING;
    const settle = (): void => {
      if (shown.isConnected) shown.scrollIntoView({ block: "start" });
      if (--frames > 0) requestAnimationFrame(settle);
    };
    settle();
  }

  article(node: Node): HTMLElement | undefined {
    const article = this.articles.get(this.calls.placeOf(node));
    if (article) this.make(article);
    return article;
  }

  /** The entries that are rendered already. */
  made(): HTMLElement[] {
    return [...this.articles.values()].filter((article) => !this.waiting.has(article));
  }

  private make(article: HTMLElement): void {
    const node = this.waiting.get(article);
    if (!node) return;
    this.waiting.delete(article);
    this.observer.unobserve(article);
    fill(article, node, this.calls);
    article.classList.add("made");
    if (node.label) article.prepend(element("span", { class: "label" }, node.label));
    const anchor = element("a", { class: "anchor", href: fragment(node), title: titleOf(node) }, "#");
    article.append(anchor);
    this.options.filled(article);
  }

  private makeAll(): void {
    for (const article of [...this.waiting.keys()]) this.make(article);
  }

  private whenIdle(): void {
    if (this.idle) return;
    this.idle = true;
    const work = (left: () => number): void => {
      this.idle = false;
      for (const article of this.waiting.keys()) {
        if (left() < 4) break;
        this.make(article);
      }
      if (this.waiting.size > 0) this.whenIdle();
    };
    if (typeof requestIdleCallback === "function") {
      requestIdleCallback((deadline) => work(() => deadline.timeRemaining()));
    } else {
      const until = 20;
      setTimeout(() => {
        const end = performance.now() + until;
        work(() => end - performance.now());
      }, until);
    }
  }

  /** The position among the branches at a fork, with links to the others. */
  private siblings(node: Node): HTMLElement | null {
    const all = node.parent ? node.parent.children : this.roots;
    if (all.length < 2) return null;
    const at = all.indexOf(node);
    const step = (by: number, label: string, title: string): HTMLButtonElement => {
      const other = all[at + by];
      const made = button(label, title, () => other && this.options.go(other));
      made.disabled = !other;
      return made;
    };
    return element(
      "nav",
      { class: "siblings" },
      step(-1, "\u2039", "The branch before"),
      element("span", {}, `branch ${at + 1} of ${all.length}`),
      step(1, "\u203a", "The next branch"),
    );
  }
}

function cssName(type: string): string {
  return /^\w+$/.test(type) ? type : "unknown";
}

export function fragment(node: Node): string {
  try {
    return `#${encodeURIComponent(node.id)}`;
  } catch {
    // A lone surrogate cannot be part of an address.
    return `#entry-${node.index}`;
  }
}
