// Assembles the page: the session from its element, the tree at the side, the branch in the middle,
// keys and addresses.

import { switchable } from "./appearance.js";
import { button, part } from "./dom.js";
import { count } from "./format.js";
import { overview, title } from "./overview.js";
import { save } from "./save.js";
import { find, Marks } from "./search.js";
import { type Node, parse } from "./session.js";
import { Sidebar } from "./sidebar.js";
import { fragment, Thread } from "./thread.js";

const source = part("session").textContent ?? "";
const session = parse(source);
document.title = title(session);
overview(part("overview"), session);
part("save").addEventListener("click", () => save(source, session));
switchable(part("theme") as HTMLButtonElement);

const marks = new Marks();
const closed = { thinking: true, tool: null as boolean | null };

const thread = new Thread(part("thread"), session.roots, {
  go: (node) => go(node),
  filled: (article) => {
    for (const details of article.querySelectorAll<HTMLDetailsElement>("details[data-kind]")) settle(details);
    marks.mark(article);
  },
});
const sidebar = new Sidebar(part("tree"), session, (node) => {
  document.body.classList.remove("sidebar-open");
  go(node);
});

function settle(details: HTMLDetailsElement): void {
  const shut = details.dataset.kind === "thinking" ? closed.thinking : closed.tool;
  if (shut !== null) details.open = !shut;
}

/** Moves to an entry: on the visible branch, or on the newest one that leads through it. */
function go(node: Node): void {
  const address = fragment(node);
  if (location.hash === address) arrive(node);
  else location.hash = address;
}

function arrive(node: Node): void {
  if (!thread.has(node)) show(node.newest);
  sidebar.follow(node);
  quietUntil = performance.now() + 500;
  const article = thread.article(node);
  if (article) marks.open(article);
  thread.reveal(node);
}

function show(leaf: Node | null): void {
  thread.show(leaf);
  sidebar.show(thread.path);
}

// The tree follows the reader's position, except while the page itself moves to an entry.
let scrolling = false;
let quietUntil = 0;
part("main").addEventListener(
  "scroll",
  () => {
    if (scrolling || performance.now() < quietUntil) return;
    scrolling = true;
    requestAnimationFrame(() => {
      scrolling = false;
      const { left, width, top } = part("thread").getBoundingClientRect();
      const at = document.elementFromPoint(left + width / 2, Math.max(top, 0) + 90);
      const entry = at?.closest<HTMLElement>("article")?.dataset.entry;
      const node = entry && session.nodes[Number(entry)];
      if (node) sidebar.follow(node);
    });
  },
  { passive: true },
);

function addressed(): Node | null {
  const hash = location.hash.slice(1);
  try {
    const found = session.byId.get(decodeURIComponent(hash));
    if (found) return found;
  } catch {
    // The address is not one of an entry.
  }
  const index = /^entry-(\d+)$/.exec(hash);
  return (index && session.nodes[Number(index[1])]) || null;
}

window.addEventListener("hashchange", () => {
  const node = addressed();
  if (node) arrive(node);
});

const toggles: Record<"thinking" | "tool", HTMLElement> = {
  thinking: part("toggle-thinking"),
  tool: part("toggle-tools"),
};
function toggle(kind: "thinking" | "tool"): void {
  closed[kind] = closed[kind] === null ? true : !closed[kind];
  toggles[kind].setAttribute("aria-pressed", String(!closed[kind]));
  for (const article of thread.made()) {
    for (const details of article.querySelectorAll<HTMLDetailsElement>(`details[data-kind=${kind}]`)) settle(details);
  }
}
toggles.thinking.addEventListener("click", () => toggle("thinking"));
toggles.tool.addEventListener("click", () => toggle("tool"));

const box = part("search") as HTMLInputElement;
const status = part("search-status");
let hits: Node[] = [];
let hit = -1;
let typing: ReturnType<typeof setTimeout> | undefined;

function search(): void {
  clearTimeout(typing);
  typing = undefined;
  const found = find(session.nodes, box.value);
  hits = found ? session.nodes.filter((node) => found.has(node)) : [];
  hit = -1;
  sidebar.search(found);
  marks.set(box.value, thread.made());
  showStatus();
}

function showStatus(): void {
  if (box.value.trim() === "") status.textContent = count(session.nodes.length, "entry", "entries");
  else status.textContent = hit < 0 ? count(hits.length, "match", "matches") : `${hit + 1} of ${hits.length}`;
}

function next(by: number): void {
  if (hits.length === 0) return;
  if (hit < 0 && by < 0) hit = 0;
  hit = (hit + by + hits.length) % hits.length;
  showStatus();
  const node = hits[hit];
  if (node) go(node);
}

box.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(search, 150);
});
box.addEventListener("keydown", (event) => {
  if (event.key === "Enter") {
    // The search starts at once if Enter comes before its delay is over.
    if (typing !== undefined) search();
    next(event.shiftKey ? -1 : 1);
  }
  if (event.key === "Escape") {
    box.value = "";
    search();
    box.blur();
  }
});
part("search-steps").append(
  button("\u2191", "The match before (Shift-Enter)", () => next(-1)),
  button("\u2193", "The next match (Enter)", () => next(1)),
);

const filter = part("filter") as HTMLSelectElement;
filter.addEventListener("change", () => sidebar.set(filter.value));
part("open-sidebar").addEventListener("click", () => document.body.classList.add("sidebar-open"));
part("close-sidebar").addEventListener("click", () => document.body.classList.remove("sidebar-open"));
part("shade").addEventListener("click", () => document.body.classList.remove("sidebar-open"));

document.addEventListener("keydown", (event) => {
  const { target } = event;
  const writes = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
  if (writes || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    document.body.classList.add("sidebar-open");
    box.focus();
  } else if (event.key === "t") toggle("thinking");
  else if (event.key === "o") toggle("tool");
});

showStatus();
const start = addressed();
show(start ? start.newest : session.leaf);
if (start) arrive(start);
document.body.classList.add("ready");
