// A read-only mirror of a session's entries. The program has the original; a read fetches only the
// entries that are new.
import { contextOfPath } from "pi:pi-coding-agent/session-manager/context-entries.ts";

export interface Entry {
  type: string;
  id: string;
  parentId: string | null;
  timestamp: string;
  [member: string]: unknown;
}

export interface TreeNode {
  entry: Entry;
  children: TreeNode[];
  label?: string;
  labelTimestamp?: string;
}

export interface NewEntries {
  id: string;
  cwd: string;
  dir: string;
  /** `null` if the session lives in memory. */
  file?: string | null;
  header: unknown;
  leafId: string | null;
  /** Entries from the requested index on; from the beginning if `id` is another. */
  entries: Entry[];
}

interface Label {
  text: string;
  timestamp: string;
}

const EMPTY_SESSION: NewEntries = { id: "", cwd: "", dir: "", header: null, leafId: null, entries: [] };

export type View = ReturnType<typeof createView>;

/** `fetch` requests the entries after the first `since` of session `id` from the program. */
export function createView(
  fetch: (id: string, since: number) => NewEntries,
  context: () => unknown,
) {
  let state = EMPTY_SESSION;
  let byId = new Map<string, Entry>();
  let labels = new Map<string, Label>();
  let name: string | undefined;

  function sync(): NewEntries {
    const { id, entries } = state;
    const next = fetch(id, entries.length);
    const fresh = next.entries;
    if (next.id === id) {
      next.entries = entries;
    } else {
      next.entries = [];
      byId = new Map();
      labels = new Map();
      name = undefined;
    }
    for (const entry of fresh) {
      next.entries.push(entry);
      byId.set(entry.id, entry);
      if (entry.type === "label") {
        const target = entry.targetId as string;
        const { timestamp } = entry;
        if (entry.label) labels.set(target, { text: entry.label as string, timestamp });
        else labels.delete(target);
      } else if (entry.type === "session_info") {
        name = (entry.name as string | undefined)?.trim() || undefined;
      }
    }
    state = next;
    return state;
  }

  function branch(from: string | null): Entry[] {
    const path: Entry[] = [];
    const seen = new Set<string>();
    for (let id = from; id && !seen.has(id); ) {
      const entry = byId.get(id);
      if (!entry) break;
      // A damaged file may contain a cycle.
      seen.add(id);
      path.push(entry);
      id = entry.parentId;
    }
    return path.reverse();
  }

  /** Sorts children by time; entries whose parent is gone are roots. */
  function tree(): TreeNode[] {
    const nodes = new Map<string, TreeNode>();
    for (const entry of state.entries) {
      const label = labels.get(entry.id);
      const named = { label: label?.text, labelTimestamp: label?.timestamp };
      nodes.set(entry.id, { entry, children: [], ...named });
    }
    const roots: TreeNode[] = [];
    for (const node of nodes.values()) {
      const { parentId, id } = node.entry;
      const parent = parentId && parentId !== id ? nodes.get(parentId) : undefined;
      (parent?.children ?? roots).push(node);
    }
    for (const node of nodes.values()) {
      node.children.sort((a, b) => Date.parse(a.entry.timestamp) - Date.parse(b.entry.timestamp));
    }
    return roots;
  }

  return {
    getCwd: () => sync().cwd,
    getSessionDir: () => sync().dir,
    getSessionId: () => sync().id,
    getSessionFile: () => sync().file ?? undefined,
    isPersisted: () => typeof sync().file === "string",
    getLeafId: () => sync().leafId,
    getLeafEntry(): Entry | undefined {
      const { leafId } = sync();
      return leafId ? byId.get(leafId) : undefined;
    },
    getEntry(id: string): Entry | undefined {
      sync();
      return byId.get(id);
    },
    getChildren(parentId: string | null): Entry[] {
      return sync().entries.filter((entry) => entry.parentId === parentId);
    },
    getLabel(id: string): string | undefined {
      sync();
      return labels.get(id)?.text;
    },
    getBranch(fromId?: string): Entry[] {
      const { leafId } = sync();
      return branch(fromId ?? leafId);
    },
    getHeader: () => sync().header,
    getEntries: (): Entry[] => [...sync().entries],
    getTree(): TreeNode[] {
      sync();
      return tree();
    },
    getSessionName(): string | undefined {
      sync();
      return name;
    },
    buildSessionContext: context,
    buildContextEntries(): Entry[] {
      const { leafId } = sync();
      return contextOfPath(branch(leafId));
    },
  };
}
