// Suggestions for prompts: slash commands and their arguments, paths, and files
// that are searched for by parts of their name (`@`).
import { type ChildProcess, currentFolder, fs, os, path, processes } from "pi:node.ts";
import type {
  AutocompleteItem,
  AutocompleteProvider,
  AutocompleteSuggestions,
} from "pi:pi-tui/editor/completion.ts";
import { fuzzyFilter } from "pi:pi-tui/fuzzy.ts";

export interface SlashCommand {
  name: string;
  description?: string;
  argumentHint?: string;
  getArgumentCompletions?(
    argumentPrefix: string,
  ): AutocompleteItem[] | null | Promise<AutocompleteItem[] | null>;
}

const MAX_FOUND = 100;
const MAX_SHOWN = 20;

/** The word before the cursor where a path may stand: `@"my fi`, `src/ma`. */
interface PathWord {
  /** The word as typed, with `@` and quote. */
  text: string;
  at: boolean;
  quoted: boolean;
  path: string;
}

/** The word before the cursor, including spaces after an open quote. */
function pathWord(before: string): PathWord {
  const open = /^(?:[^"]*"[^"]*")*[^"]*(")[^"]*$/d.exec(before)?.indices?.[1][0];
  const startsWord = (index: number) => index === 0 || /[ \t"'=]/.test(before[index - 1]);
  let start = before.search(/[^ \t"'=]*$/);
  if (open !== undefined) {
    const quoteStart = before[open - 1] === "@" ? open - 1 : open;
    if (startsWord(quoteStart)) start = quoteStart;
  }
  const text = before.slice(start);
  const [, at, quote, path] = /^(@?)("?)([^]*)$/.exec(text) as RegExpExecArray;
  return { text, at: at !== "", quoted: quote !== "", path };
}

const forwardSlashes = (path: string): string => path.replaceAll("\\", "/");

function completedPath(path: string, word: { at: boolean; quoted: boolean }): string {
  const quote = word.quoted || path.includes(" ") ? '"' : "";
  return (word.at ? "@" : "") + quote + path + quote;
}

function expandHome(path: string): string {
  if (path !== "~" && !path.startsWith("~/")) return path;
  return os().homedir() + path.slice(1);
}

/** Splits a path after the last slash. */
function splitPath(path: string): [folder: string, name: string] {
  const end = path.lastIndexOf("/") + 1;
  return [path.slice(0, end), path.slice(end)];
}

/** The regular expression for fd that matches parts of a path. */
function fdPattern(query: string): string {
  const parts = query.split("/").filter(Boolean).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!query.includes("/") || parts.length === 0) return query;
  return parts.join("[\\\\/]") + (query.endsWith("/") ? "[\\\\/]" : "");
}

/** Scores a path: by its name, then by its folders. Folders come first. */
function score(path: string, query: string, isFolder: boolean): number {
  if (!query) return 1;
  const wanted = query.toLowerCase();
  const name = path.replace(/\/$/, "").split("/").at(-1)?.toLowerCase() ?? "";
  let points = 0;
  if (name === wanted) points = 100;
  else if (name.startsWith(wanted)) points = 80;
  else if (name.includes(wanted)) points = 50;
  else if (path.toLowerCase().includes(wanted)) points = 30;
  return points > 0 && isFolder ? points + 10 : points;
}

export class CombinedAutocompleteProvider implements AutocompleteProvider {
  private commands: (SlashCommand | AutocompleteItem)[];
  private basePath: string;
  private fdPath: string | null;

  constructor(
    commands: (SlashCommand | AutocompleteItem)[] = [],
    basePath: string = currentFolder(),
    fdPath: string | null = null,
  ) {
    this.commands = commands;
    this.basePath = basePath;
    this.fdPath = fdPath;
  }

  async getSuggestions(
    lines: string[],
    cursorLine: number,
    cursorCol: number,
    options: { signal: AbortSignal; force?: boolean },
  ): Promise<AutocompleteSuggestions | null> {
    const before = (lines[cursorLine] ?? "").slice(0, cursorCol);
    const word = pathWord(before);
    if (word.at) return suggestions(await this._search(word, options.signal), word.text);
    if (!options.force && before.startsWith("/")) return await this._forCommand(before);
    const looksLikePath = word.quoted || /[/]|^\./.test(word.text) ||
      (word.text === "" && before.endsWith(" "));
    if (!options.force && !looksLikePath) return null;
    return suggestions(this._list(word), word.text);
  }

  private async _forCommand(before: string): Promise<AutocompleteSuggestions | null> {
    const nameOf = (command: SlashCommand | AutocompleteItem) =>
      "name" in command ? command.name : command.value;
    const [name, ...rest] = before.slice(1).split(" ");
    if (rest.length > 0) {
      const prefix = rest.join(" ");
      const command = this.commands.find((command) => nameOf(command) === name);
      if (!command || !("getArgumentCompletions" in command)) return null;
      const items = await command.getArgumentCompletions?.(prefix);
      return Array.isArray(items) ? suggestions(items, prefix) : null;
    }
    const items = this.commands.map((command): AutocompleteItem => {
      const hint = "argumentHint" in command ? command.argumentHint : undefined;
      const description = [hint, command.description].filter(Boolean).join(" \u2014 ");
      const item = { value: nameOf(command), label: nameOf(command) };
      return description ? { ...item, description } : item;
    });
    return suggestions(fuzzyFilter(items, name, ({ value }) => value), before);
  }

  applyCompletion(
    lines: string[],
    cursorLine: number,
    cursorCol: number,
    item: AutocompleteItem,
    prefix: string,
  ): { lines: string[]; cursorLine: number; cursorCol: number } {
    const line = lines[cursorLine] ?? "";
    const before = line.slice(0, cursorCol - prefix.length);
    let after = line.slice(cursorCol);
    const closed = item.value.endsWith('"');
    if (/^@?"/.test(prefix) && closed && after.startsWith('"')) after = after.slice(1);
    const isCommand = /^\/[^/]*$/.test(prefix) && before.trim() === "";
    const isFolder = item.label.endsWith("/");
    let text = item.value;
    if (isCommand) text = `/${item.value} `;
    // A folder is only a step towards a file.
    else if (prefix.startsWith("@") && !isFolder) text += " ";
    const cursor = before.length + text.length - (!isCommand && isFolder && closed ? 1 : 0);
    const result = [...lines];
    result[cursorLine] = before + text + after;
    return { lines: result, cursorLine, cursorCol: cursor };
  }

  /** Lists the folder that the word names. */
  private _list(word: PathWord): AutocompleteItem[] {
    const [folder, start] = word.path === "~" ? ["~/", ""] : splitPath(word.path);
    const searched = this._absolute(folder);
    let entries;
    try {
      entries = fs().readdirSync(searched, { withFileTypes: true });
    } catch {
      // The folder does not exist, so there are no suggestions.
      return [];
    }
    const found = entries.filter(({ name }) => name.toLowerCase().startsWith(start.toLowerCase()));
    return found
      .map((entry) => {
        const isFolder = entry.isDirectory() ||
          (entry.isSymbolicLink() && isDirectory(path().join(searched, entry.name)));
        const label = entry.name + (isFolder ? "/" : "");
        return { isFolder, item: { value: completedPath(forwardSlashes(folder + label), word), label } };
      })
      .sort((a, b) =>
        Number(b.isFolder) - Number(a.isFolder) || a.item.label.localeCompare(b.item.label)
      )
      .map(({ item }) => item);
  }

  private _absolute(folder: string): string {
    const expanded = expandHome(folder);
    return expanded.startsWith("/") ? expanded : path().join(this.basePath, expanded);
  }

  /** Searches files below the folder that the word names, by parts of their path. */
  private async _search(word: PathWord, signal: AbortSignal): Promise<AutocompleteItem[]> {
    if (!this.fdPath || signal.aborted) return [];
    let [folder, query] = splitPath(forwardSlashes(word.path));
    // The last part is no folder, so it is a part of the query.
    if (folder && !isDirectory(this._absolute(folder))) [folder, query] = ["", folder + query];
    const base = folder ? this._absolute(folder) : this.basePath;
    const found = await runFd(this.fdPath, base, query, signal);
    return found
      .map((path) => ({ path, points: score(path, query, path.endsWith("/")) }))
      .filter(({ points }) => points > 0)
      .sort((a, b) => b.points - a.points)
      .slice(0, MAX_SHOWN)
      .map(({ path }) => {
        const shown = folder + path;
        const label = path.replace(/\/$/, "").split("/").at(-1) + (path.endsWith("/") ? "/" : "");
        return { value: completedPath(shown, word), label, description: shown.replace(/\/$/, "") };
      });
  }

  shouldTriggerFileCompletion(lines: string[], cursorLine: number, cursorCol: number): boolean {
    const before = (lines[cursorLine] ?? "").slice(0, cursorCol).trim();
    // The name of a command is being typed.
    return !/^\/[^ ]*$/.test(before);
  }
}

function suggestions(items: AutocompleteItem[], prefix: string): AutocompleteSuggestions | null {
  return items.length > 0 ? { items, prefix } : null;
}

function isDirectory(path: string): boolean {
  try {
    return fs().statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** Returns paths below `folder`, those of folders with a slash at the end. */
function runFd(fd: string, folder: string, query: string, signal: AbortSignal): Promise<string[]> {
  const args = ["--base-directory", folder, "--max-results", String(MAX_FOUND)];
  args.push("--type", "f", "--type", "d", "--full-path", "--hidden");
  for (const pattern of [".git", ".git/*", ".git/**"]) args.push("--exclude", pattern);
  // After `--`, a query that begins with a dash is no option.
  if (query) args.push("--", fdPattern(query));
  return new Promise((resolve) => {
    let child: ChildProcess;
    try {
      child = processes().spawn(fd, args, { stdio: ["ignore", "pipe", "ignore"] });
    } catch {
      resolve([]);
      return;
    }
    const kill = () => child.kill("SIGKILL");
    const finish = (lines: string[]) => {
      signal.removeEventListener("abort", kill);
      resolve(signal.aborted ? [] : lines);
    };
    signal.addEventListener("abort", kill, { once: true });
    let output = "";
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (text) => {
      output += text;
    });
    child.on("error", () => finish([]));
    child.on("close", (code) => {
      const lines = code === 0 ? forwardSlashes(output).split("\n").filter(Boolean) : [];
      finish(lines.filter((line) => !/(^|\/)\.git(\/|$)/.test(line)));
    });
  });
}
