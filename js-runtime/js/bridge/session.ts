// `ctx.sessionManager`: the entries of the session, mirrored. The program holds
// the truth; a read fetches only what came since the last one.
import { hostSync } from "ext:js_runtime/host.ts";

export interface Entry {
  type: string;
  id: string;
  parentId: string | null;
  timestamp: string;
  [member: string]: unknown;
}

interface Node {
  entry: Entry;
  children: Node[];
  label?: string;
}

interface Since {
  id: string;
  cwd: string;
  dir: string;
  /** `null` if the session lives in memory. */
  file?: string | null;
  header: unknown;
  leafId: string | null;
  /** From the index that was asked for; from the beginning if `id` is another. */
  entries: Entry[];
}

let state: Since = { id: "", cwd: "", dir: "", header: null, leafId: null, entries: [] };
let byId = new Map<string, Entry>();
let labels = new Map<string, string>();
let name: string | undefined;

function sync(): Since {
  const { id, entries } = state;
  const next = hostSync<Since>("session.since", { id, since: entries.length });
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
      if (entry.label) labels.set(target, entry.label as string);
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
  for (let id = from; id; ) {
    const entry = byId.get(id);
    if (!entry) break;
    path.push(entry);
    id = entry.parentId;
  }
  return path.reverse();
}

/** Children by time; entries whose parent is gone are roots. */
function tree(): Node[] {
  const { entries } = state;
  const nodes = new Map(
    entries.map((entry) => [
      entry.id,
      { entry, children: [], label: labels.get(entry.id) } as Node,
    ]),
  );
  const roots: Node[] = [];
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

export const sessionManager = {
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
    return labels.get(id);
  },
  getBranch(fromId?: string): Entry[] {
    const { leafId } = sync();
    return branch(fromId ?? leafId);
  },
  getHeader: () => sync().header,
  getEntries: (): Entry[] => [...sync().entries],
  getTree(): Node[] {
    sync();
    return tree();
  },
  getSessionName(): string | undefined {
    sync();
    return name;
  },
  buildSessionContext: () => hostSync("session.context"),
};
