// The tree of all entries, or those that the search found. Only visible rows are elements: a
// session may have ten thousand.

import { button, element } from "./dom.js";
import { kindOf, outline } from "./outline.js";
import type { Node, Session } from "./session.js";

const ROW = 26;
const SPARE = 20;
const INDENT = 12;
const MAX_INDENT = 12;

interface Row {
  node: Node;
  depth: number;
}

const FILTERS: Record<string, (node: Node) => boolean> = {
  conversation: (node) => !["note", "tool"].includes(kindOf(node)),
  user: (node) => kindOf(node) === "user",
  labelled: (node) => node.label !== "",
  all: () => true,
};

export class Sidebar {
  private rows: Row[] = [];
  private shown: Row[] = [];
  private filter = "conversation";
  private found: Set<Node> | null = null;
  private path = new Set<Node>();
  private current: Node | null = null;
  private readonly space = element("div", { class: "rows" });

  constructor(
    private readonly target: HTMLElement,
    session: Session,
    private readonly go: (node: Node) => void,
  ) {
    this.rows = flatten(session.roots);
    target.append(this.space);
    target.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(target);
  }

  set(filter: string): void {
    this.filter = filter;
    this.refresh();
  }

  /** `null` ends the search. */
  search(found: Set<Node> | null): void {
    this.found = found;
    this.refresh();
  }

  show(path: Node[]): void {
    this.path = new Set(path);
    this.refresh();
  }

  /** Marks the entry that is being read. */
  follow(current: Node): void {
    if (current === this.current) return;
    this.current = current;
    this.draw();
    const at = this.shown.findIndex(({ node }) => node === current);
    if (at < 0) return;
    const top = at * ROW;
    const { scrollTop, clientHeight } = this.target;
    if (top < scrollTop || top > scrollTop + clientHeight - ROW) this.target.scrollTop = top - clientHeight / 2;
  }

  private refresh(): void {
    const matchesFilter = FILTERS[this.filter] ?? (() => true);
    this.shown = this.rows.filter(({ node }) => (this.found ? this.found.has(node) : matchesFilter(node)));
    this.space.style.height = `${this.shown.length * ROW}px`;
    this.draw();
  }

  private draw(): void {
    const first = Math.max(0, Math.floor(this.target.scrollTop / ROW) - SPARE);
    const last = Math.ceil((this.target.scrollTop + this.target.clientHeight) / ROW) + SPARE;
    const rows = this.shown.slice(first, last).map((row, index) => this.row(row, first + index));
    if (this.shown.length === 0) rows.push(element("div", { class: "nothing" }, "Nothing here."));
    this.space.replaceChildren(...rows);
  }

  private row({ node, depth }: Row, index: number): HTMLElement {
    const row = button("", outline(node), () => this.go(node));
    row.className = `row kind-${kindOf(node)}`;
    row.classList.toggle("on-path", this.path.has(node));
    row.classList.toggle("current", node === this.current);
    row.style.top = `${index * ROW}px`;
    row.style.paddingLeft = `${8 + Math.min(depth, MAX_INDENT) * INDENT}px`;
    row.append(element("span", { class: "dot" }));
    if (node.label) row.append(element("span", { class: "label" }, node.label));
    row.append(element("span", { class: "line" }, outline(node)));
    return row;
  }
}

/** Lists parents before children, indented only at forks. */
function flatten(roots: Node[]): Row[] {
  const rows: Row[] = [];
  const waiting: Row[] = [];
  const push = (nodes: Node[], depth: number): void => {
    for (const node of [...nodes].reverse()) waiting.push({ node, depth });
  };
  push(roots, 0);
  for (let row = waiting.pop(); row; row = waiting.pop()) {
    rows.push(row);
    const { children } = row.node;
    push(children, children.length > 1 ? row.depth + 1 : row.depth);
  }
  return rows;
}
