// The tree of a session as rows: their order, and the lines that connect them. Not recursive,
// because the depth of a session grows with its length.
import type { SessionTreeNode } from "pi:pi-coding-agent/components/tree-entries.ts";

export interface TreeRow {
  node: SessionTreeNode;
  /** The indentation in levels of three columns. */
  indent: number;
  /** Whether the row has siblings and is connected with their parent. */
  connected: boolean;
  isLast: boolean;
  /** Connected levels of ancestors, and whether more of their siblings follow. */
  gutters: ReadonlyMap<number, boolean>;
}

/** Every node, parents first; of several branches the active one comes first. */
export function inOrder(roots: SessionTreeNode[], leaf: string | null): SessionTreeNode[] {
  const before: SessionTreeNode[] = [];
  const open = [...roots];
  for (let node = open.pop(); node; node = open.pop()) {
    before.push(node);
    open.push(...node.children);
  }
  const active = new Set<SessionTreeNode>();
  for (const node of before.reverse()) {
    if (node.entry.id === leaf || node.children.some((child) => active.has(child))) active.add(node);
  }
  const sorted = (nodes: SessionTreeNode[]) => [
    ...nodes.filter((node) => active.has(node)),
    ...nodes.filter((node) => !active.has(node)),
  ];
  const ordered: SessionTreeNode[] = [];
  const waiting = sorted(roots).reverse();
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    ordered.push(node);
    waiting.push(...sorted(node.children).reverse());
  }
  return ordered;
}

/** The visible rows, and their parents. */
export class TreeLayout {
  readonly rows: TreeRow[];
  readonly indexes: ReadonlyMap<string, number>;
  private parents = new Map<string, string | null>();
  private families = new Map<string | null, string[]>();

  /** `visible` is in the order of [inOrder]; `parentOf` also covers hidden nodes. */
  constructor(visible: SessionTreeNode[], parentOf: ReadonlyMap<string, string | null>) {
    this.indexes = new Map(visible.map(({ entry }, i) => [entry.id, i]));
    for (const { entry } of visible) {
      // Hidden ancestors are skipped.
      let parent = parentOf.get(entry.id) ?? null;
      while (parent !== null && !this.indexes.has(parent)) parent = parentOf.get(parent) ?? null;
      this.parents.set(entry.id, parent);
      this.families.set(parent, [...this.childrenOf(parent), entry.id]);
    }
    const rows = new Map<string, TreeRow>();
    this.rows = visible.map((node) => {
      const row = this.row(node, rows);
      rows.set(node.entry.id, row);
      return row;
    });
  }

  childrenOf(id: string | null): string[] {
    return this.families.get(id) ?? [];
  }

  parentOf(id: string): string | null {
    return this.parents.get(id) ?? null;
  }

  private row(node: SessionTreeNode, rows: ReadonlyMap<string, TreeRow>): TreeRow {
    const { id } = node.entry;
    const parentId = this.parentOf(id);
    const siblings = this.childrenOf(parentId);
    const isLast = siblings.at(-1) === id;
    const parent = parentId === null ? undefined : rows.get(parentId);
    if (!parent) return { node, indent: 0, connected: false, isLast, gutters: new Map() };
    const branches = siblings.length > 1;
    // The row after a branching is indented once, so that a long chain stays straight.
    const indent = parent.indent + (branches || this.isBranch(parent) ? 1 : 0);
    const gutters = parent.connected
      ? new Map([...parent.gutters, [Math.max(0, parent.indent - 1), !parent.isLast] as const])
      : parent.gutters;
    return { node, indent, connected: branches, isLast, gutters };
  }

  /** Whether the row is one of several siblings. */
  private isBranch({ node, indent }: TreeRow): boolean {
    const parent = this.parentOf(node.entry.id);
    const isOneOfMany = this.childrenOf(parent).length > 1;
    return isOneOfMany && (indent > 0 || parent === null);
  }

  /** Whether the row is the first of an unbranched chain with rows below it. */
  isFoldable(id: string): boolean {
    if (this.childrenOf(id).length === 0) return false;
    const parent = this.parentOf(id);
    return parent === null || this.childrenOf(parent).length > 1;
  }

  /** The first row of the chain above or below. */
  chainStart(from: string, direction: "up" | "down"): string {
    let id = from;
    if (direction === "down") {
      for (let children = this.childrenOf(id); children.length > 0; children = this.childrenOf(id)) {
        id = children[0];
        if (children.length > 1) break;
      }
      return id;
    }
    for (let parent = this.parentOf(id); parent !== null; parent = this.parentOf(id)) {
      if (this.childrenOf(parent).length > 1 && id !== from) return id;
      id = parent;
    }
    return id;
  }
}
