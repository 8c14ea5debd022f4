// The worker thread. It has Node's API but no `pi`: it sends messages.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parentPort, workerData } from "node:worker_threads";

export interface Duplicate {
  lines: number;
  /** `file:line` */
  places: string[];
}
export type Message = { type: "progress"; files: number } | { type: "done"; duplicates: Duplicate[] };

interface Line {
  file: string;
  /** The line number, from 1. */
  number: number;
  text: string;
}

const CODE = /\.(ts|tsx|js|jsx|mjs|cjs|rs|py|go|java|rb|c|h|cc|cpp|cs|kt|swift)$/;
const { root, lines: length } = workerData as { root: string; lines: number };
const send = (message: Message) => parentPort!.postMessage(message);

function* sources(folder: string): Generator<string> {
  const entries = readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    if (entry.name.startsWith(".") || entry.name === "node_modules" || entry.name === "target") continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* sources(path);
    else if (entry.isFile() && CODE.test(entry.name)) yield path;
  }
}

/** The lines with content, without their indentation. */
function read(path: string): Line[] {
  const file = relative(root, path);
  const lines = readFileSync(path, "utf8").split("\n");
  return lines
    .map((text, index) => ({ file, number: index + 1, text: text.trim() }))
    .filter(({ text }) => /\w/.test(text));
}

function find(files: Line[][]): Duplicate[] {
  const same = (a: Line[], at: number, b: Line[], bt: number) => a[at]?.text === b[bt]?.text && a[at] !== undefined;
  const windows = new Map<string, [file: number, at: number][]>();
  const found: Duplicate[] = [];
  /** The end of the passage that began at an earlier window. */
  const covered = new Set<Line>();
  files.forEach((lines, file) => {
    for (let at = 0; at + length <= lines.length; at += 1) {
      const key = lines.slice(at, at + length).map(({ text }) => text).join("\n");
      const earlier = windows.get(key);
      if (!earlier) windows.set(key, [[file, at]]);
      else earlier.push([file, at]);
    }
  });
  for (const places of windows.values()) {
    if (places.length < 2 || places.every(([file, at]) => covered.has(files[file][at]))) continue;
    let end = length;
    const [[first, from], ...others] = places;
    while (others.every(([file, at]) => same(files[first], from + end, files[file], at + end))) end += 1;
    for (const [file, at] of places) files[file].slice(at, at + end).forEach((line) => covered.add(line));
    found.push({
      lines: end,
      places: places.map(([file, at]) => `${files[file][at].file}:${files[file][at].number}`),
    });
  }
  return found.sort((a, b) => b.lines * b.places.length - a.lines * a.places.length);
}

const files: Line[][] = [];
for (const path of sources(root)) {
  files.push(read(path));
  if (files.length % 500 === 0) send({ type: "progress", files: files.length });
}
send({ type: "progress", files: files.length });
send({ type: "done", duplicates: find(files) });
