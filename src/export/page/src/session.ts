// The tree of entries. A file may have lines with the same id, name parents that do not exist, or
// contain cycles.

import { type Members, members, text } from "./values.js";

export interface Node {
  entry: Members;
  type: string;
  id: string;
  /** The index of the entry in the file. */
  index: number;
  /** The parent precedes the entry in the file, so that every path ends. */
  parent: Node | null;
  children: Node[];
  label: string;
  /** The end of the most recently written branch through this entry. */
  newest: Node;
}

export interface Session {
  header: Members;
  /** Data from outside the file: leafId, systemPrompt, tools, program. */
  about: Members;
  nodes: Node[];
  roots: Node[];
  byId: Map<string, Node>;
  name: string;
  leaf: Node | null;
  /** The number of lines that could not be read. */
  skipped: number;
}

/**
 * The source has a line with the header, a line with data from outside the file, and a line for
 * each entry.
 */
export function parse(source: string): Session {
  const lines = source.split("\n").filter((line) => line.trim() !== "");
  let skipped = 0;
  const values: Members[] = [];
  for (const line of lines) {
    try {
      values.push(members(JSON.parse(line)));
    } catch {
      skipped++;
      values.push({});
    }
  }
  const [header = {}, about = {}, ...entries] = values;
  const session = build(entries);
  return { ...session, header, about, skipped, leaf: leafOf(session, about) };
}

type Tree = Pick<Session, "nodes" | "roots" | "byId" | "name">;

function build(entries: Members[]): Tree {
  const nodes: Node[] = [];
  const roots: Node[] = [];
  const byId = new Map<string, Node>();
  let name = "";
  for (const entry of entries) {
    if (typeof entry.id !== "string") continue;
    const parent = byId.get(text(entry.parentId)) ?? null;
    const node = { entry, type: text(entry.type), id: entry.id, index: nodes.length, parent, children: [], label: "" };
    const complete = Object.assign(node, { newest: null as unknown as Node });
    complete.newest = complete;
    (parent?.children ?? roots).push(complete);
    nodes.push(complete);
    byId.set(node.id, complete);
    if (node.type === "session_info") name = text(entry.name).trim();
  }
  for (const { type, entry } of nodes) {
    const target = type === "label" ? byId.get(text(entry.targetId)) : undefined;
    if (target) target.label = text(entry.label);
  }
  for (const node of [...nodes].reverse()) {
    const { parent, newest } = node;
    if (parent && parent.newest.index < newest.index) parent.newest = newest;
  }
  return { nodes, roots, byId, name };
}

function leafOf(tree: Tree, about: Members): Node | null {
  if (about.leafId === null) return null;
  return tree.byId.get(text(about.leafId)) ?? tree.nodes.at(-1) ?? null;
}

export function pathTo(leaf: Node | null): Node[] {
  const path: Node[] = [];
  for (let node = leaf; node; node = node.parent) path.push(node);
  return path.reverse();
}

/** The results of tools by the response that called them, on one branch. */
export class Calls {
  private readonly results = new Map<Node, Map<string, Node>>();
  /** The response in which each result is shown. */
  private readonly shownIn = new Map<Node, Node>();

  constructor(path: Node[]) {
    // An id may occur again in a later response.
    const open = new Map<string, Node>();
    for (const node of path) {
      if (node.type !== "message") continue;
      const message = members(node.entry.message);
      if (message.role === "assistant" && Array.isArray(message.content)) {
        for (const block of message.content.map(members)) {
          if (block.type === "toolCall") open.set(text(block.id), node);
        }
      } else if (message.role === "toolResult") {
        const id = text(message.toolCallId);
        const caller = open.get(id);
        if (!caller) continue;
        const results = this.results.get(caller) ?? new Map<string, Node>();
        results.set(id, node);
        this.results.set(caller, results);
        this.shownIn.set(node, caller);
        open.delete(id);
      }
    }
  }

  result(caller: Node, id: string): Node | undefined {
    return this.results.get(caller)?.get(id);
  }

  /** The entry in which this one is shown. */
  placeOf(node: Node): Node {
    return this.shownIn.get(node) ?? node;
  }
}
