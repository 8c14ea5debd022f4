// `SessionManager`: opens sessions besides the current one, in the program's own store. A file is
// locked only while it is written.
import { host, hostSync } from "pi:host.ts";
import { getAgentDir } from "pi:pi-coding-agent/config.ts";
import { createView } from "pi:pi-coding-agent/session-manager/view.ts";
import type { NewEntries, View } from "pi:pi-coding-agent/session-manager/view.ts";

interface OpenSession {
  token: number;
}

export interface SessionInfo {
  path: string;
  id: string;
  cwd: string;
  name?: string;
  parentSessionPath?: string;
  created: Date;
  modified: Date;
  messageCount: number;
  firstMessage: string;
  allMessagesText: string;
}

type Progress = (loaded: number, total: number) => void;

/** Options of a new session. */
interface NewSession {
  id?: string;
  /** The file of the session that it continues. */
  parentSession?: string;
}

const named = (options: NewSession | undefined) => ({
  id: options?.id,
  parentSession: options?.parentSession,
});

/** Created when the first session is opened: the snapshot cannot contain it. */
let registry: FinalizationRegistry<number> | undefined;

function close(token: number): void {
  hostSync("sessions.close", { token });
}

function make(method: string, args: object): SessionManager {
  const { token } = hostSync<OpenSession>(`sessions.${method}`, { ...args, agentDir: getAgentDir() });
  return adopt(token);
}

async function sessionList(method: string, args: object, onProgress?: Progress): Promise<SessionInfo[]> {
  type Row = Omit<SessionInfo, "created" | "modified"> & { created: number; modified: number };
  const listArgs = { ...args, agentDir: getAgentDir() };
  const rows = (await host(`sessions.${method}`, listArgs)) as Row[];
  // The original's documentation has other arguments in its place.
  if (typeof onProgress === "function") onProgress(rows.length, rows.length);
  return rows.map((row) => ({
    ...row,
    created: new Date(row.created),
    modified: new Date(row.modified),
  }));
}

const INTERNAL = Symbol();

// Not private members: extensions wrap such objects, in a Proxy or with Object.create().
const TOKEN = Symbol("token");
const VIEW = Symbol("view");
const WRITE = Symbol("write");

type Write = (entry: { type: string; [member: string]: unknown }) => string;

function viewOf(token: number): View {
  return createView(
    (id, since) => hostSync<NewEntries>("sessions.since", { token, id, since }),
    () => hostSync("sessions.context", { token }),
  );
}

function call<T>(manager: SessionManager, method: string, args: object = {}): T {
  return hostSync<T>(`sessions.${method}`, { token: manager[TOKEN], ...args });
}

function append(manager: SessionManager, entry: { type: string; [member: string]: unknown }): string {
  return manager[WRITE]?.(entry) ?? call(manager, "append", { entry });
}

/** Called when another session replaces this one: the mirrored entries are dropped. */
function dropMirror(manager: SessionManager): void {
  manager[VIEW] = viewOf(manager[TOKEN]);
}

export class SessionManager {
  [TOKEN]: number;
  [VIEW]: View;
  /** Writes to a session that is running. */
  [WRITE]: Write | undefined;

  constructor(key: unknown, token: number) {
    if (key !== INTERNAL) {
      throw new TypeError(
        "new SessionManager() is not supported: use SessionManager.create(), open(), " +
          "continueRecent(), inMemory() or forkFrom()",
      );
    }
    this[TOKEN] = token;
    this[VIEW] = viewOf(token);
    registry ??= new FinalizationRegistry(close);
    registry.register(this, token, this);
  }

  static create(cwd: string, sessionDir?: string, options?: NewSession): SessionManager {
    return make("create", { cwd, dir: sessionDir, ...named(options) });
  }

  static open(path: string, sessionDir?: string, cwdOverride?: string): SessionManager {
    return make("open", { path, dir: sessionDir, cwd: cwdOverride });
  }

  static continueRecent(cwd: string, sessionDir?: string): SessionManager {
    return make("recent", { cwd, dir: sessionDir });
  }

  static inMemory(cwd?: string, options?: NewSession, entries?: unknown[]): SessionManager {
    if (entries?.length) {
      throw new Error(
        "SessionManager.inMemory: entries are not supported by this version of pi: append them, or write " +
          "them to a file and open() it",
      );
    }
    return make("memory", { cwd, ...named(options) });
  }

  /** The original becomes the parent of the copy. */
  static forkFrom(
    sourcePath: string,
    targetCwd: string,
    sessionDir?: string,
    options?: NewSession,
  ): SessionManager {
    return make("fork", { path: sourcePath, cwd: targetCwd, dir: sessionDir, id: options?.id });
  }

  /** The sessions of a working directory, the most recently used first. */
  static list(cwd: string, sessionDir?: string, onProgress?: Progress): Promise<SessionInfo[]> {
    return sessionList("list", { cwd, dir: sessionDir }, onProgress);
  }

  /** The sessions of all working directories, or those of one folder in the form of newer versions. */
  static listAll(folder?: string | Progress, onProgress?: Progress): Promise<SessionInfo[]> {
    if (typeof folder === "string") return sessionList("list", { cwd: folder, dir: folder }, onProgress);
    return sessionList("listAll", {}, folder);
  }

  /** Hands the session over: returns its number. From then on reads use `view` and writes use `write`. */
  static handOver(manager: SessionManager): { token: number; show(view: View, write: Write): void } {
    return {
      token: manager[TOKEN],
      show(view, write) {
        manager[VIEW] = view;
        manager[WRITE] = write;
      },
    };
  }

  appendMessage(message: object): string {
    return append(this, { type: "message", message });
  }

  appendThinkingLevelChange(thinkingLevel: string): string {
    return append(this, { type: "thinking_level_change", thinkingLevel });
  }

  appendModelChange(provider: string, modelId: string): string {
    return append(this, { type: "model_change", provider, modelId });
  }

  appendCompaction(
    summary: string,
    firstKeptEntryId: string,
    tokensBefore: number,
    details?: unknown,
    fromHook?: boolean,
  ): string {
    const entry = { summary, firstKeptEntryId, tokensBefore, details, fromHook };
    return append(this, { type: "compaction", ...entry });
  }

  appendCustomEntry(customType: string, data?: unknown): string {
    return append(this, { type: "custom", customType, data });
  }

  appendCustomMessageEntry(
    customType: string,
    content: unknown,
    display: boolean,
    details?: unknown,
  ): string {
    return append(this, { type: "custom_message", customType, content, display, details });
  }

  appendSessionInfo(name: string): string {
    return append(this, { type: "session_info", name: name.trim() });
  }

  appendLabelChange(targetId: string, label?: string): string {
    return append(this, { type: "label", targetId, label });
  }

  /** Replaces the target for the model from here on; `null` removes it. */
  appendContextEdit(targetId: string, replacement: { content: unknown } | null): string {
    return append(this, { type: "context_edit", targetId, replacement });
  }

  /** The next entry that is appended becomes a child of this one. */
  branch(branchFromId: string): void {
    call(this, "leaf", { id: branchFromId });
  }

  resetLeaf(): void {
    call(this, "leaf", { id: null });
  }

  branchWithSummary(
    branchFromId: string | null,
    summary: string,
    details?: unknown,
    fromHook?: boolean,
  ): string {
    const fromId = branchFromId ?? "root";
    const entry = { type: "branch_summary", fromId, summary, details, fromHook };
    return call(this, "summarize", { id: branchFromId, entry });
  }

  /** Replaces this session by a copy with the entries up to `leafId`. */
  createBranchedSession(leafId: string): string | undefined {
    call(this, "branchOff", { id: leafId });
    dropMirror(this);
    return this.getSessionFile();
  }

  newSession(options?: NewSession): string | undefined {
    call(this, "begin", named(options));
    dropMirror(this);
    return this.getSessionFile();
  }

  /** Extensions read this private field of the original. */
  get sessionId(): string {
    return this.getSessionId();
  }

  setSessionFile(sessionFile: string): void {
    call(this, "reopen", { path: sessionFile });
    dropMirror(this);
  }
}

// deno-lint-ignore no-empty-interface
export interface SessionManager extends View {}

const nothing = (): never => {
  throw new Error("There is no session");
};

for (const name of Object.keys(createView(nothing, nothing)) as (keyof View)[]) {
  const { [name]: value } = {
    [name](this: SessionManager, ...args: unknown[]): unknown {
      return (this[VIEW][name] as (...args: unknown[]) => unknown)(...args);
    },
  };
  Object.defineProperty(SessionManager.prototype, name, { value, configurable: true, writable: true });
}

/** Wraps a session that the program has open under this number. */
export function adopt(token: number): SessionManager {
  return new SessionManager(INTERNAL, token);
}
