// The parts of compaction, for extensions that summarize in their own way, or with a model of their
// own. The program does the work; this module has the names and shapes of pi's package.
import { hostSync } from "pi:host.ts";
import type { Variables } from "pi:pi-ai/env-key.ts";
import type { Model } from "pi:pi-ai/models.ts";
import { requestSummary } from "pi:pi-coding-agent/compaction/summary-request.ts";
import type { RetryCallbacks, RetryPolicy, StreamFn } from "pi:pi-coding-agent/compaction/summary-request.ts";

interface Usage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  totalTokens: number;
}

interface Message {
  role: string;
  stopReason?: string;
  usage?: Usage;
}

interface Entry {
  type: string;
  id: string;
  parentId: string | null;
  message?: Message;
}

interface Settings {
  enabled: boolean;
  reserveTokens: number;
  keepRecentTokens: number;
}

interface FileOperations {
  read: Set<string>;
  written: Set<string>;
  edited: Set<string>;
}

interface Preparation {
  firstKeptEntryId: string;
  messagesToSummarize: Message[];
  turnPrefixMessages: Message[];
  isSplitTurn: boolean;
  tokensBefore: number;
  previousSummary?: string;
  fileOps: FileOperations;
  settings: Settings;
}

export const DEFAULT_COMPACTION_SETTINGS: Settings = {
  enabled: true,
  reserveTokens: 16384,
  keepRecentTokens: 20000,
};

export function estimateTokens(message: unknown): number {
  return hostSync("compaction.estimate", { message });
}

export function calculateContextTokens(usage: Usage): number {
  return usage.totalTokens || usage.input + usage.output + usage.cacheRead + usage.cacheWrite;
}

/** The usage of the last response that was neither aborted nor failed. */
export function getLastAssistantUsage(entries: Entry[]): Usage | undefined {
  const counts = ({ type, message }: Entry) =>
    type === "message" && message?.role === "assistant" && message.usage &&
    message.stopReason !== "aborted" && message.stopReason !== "error";
  return entries.findLast(counts)?.message?.usage;
}

export function shouldCompact(tokens: number, contextWindow: number, settings: Settings): boolean {
  return settings.enabled && tokens > contextWindow - settings.reserveTokens;
}

/** Finds the cut point in `entries[startIndex...endIndex]`. */
export function findCutPoint(
  entries: Entry[],
  startIndex: number,
  endIndex: number,
  keepRecentTokens: number,
): { firstKeptEntryIndex: number; turnStartIndex: number; isSplitTurn: boolean } {
  return hostSync("compaction.cut", {
    entries: entries.slice(0, endIndex),
    start: startIndex,
    keep: keepRecentTokens,
  });
}

/** The index at which the turn of an entry begins; -1 if it is before `startIndex`. */
export function findTurnStartIndex(
  entries: Entry[],
  entryIndex: number,
  startIndex: number,
): number {
  const begins = ({ type, message }: Entry) =>
    type === "branch_summary" || type === "custom_message" ||
    (type === "message" && (message?.role === "user" || message?.role === "bashExecution"));
  const found = entries.slice(startIndex, entryIndex + 1).findLastIndex(begins);
  return found < 0 ? -1 : found + startIndex;
}

/** Additional arguments of newer versions. */
type Newer = [
  thinkingLevel?: string,
  streamFn?: StreamFn,
  env?: Variables,
  retry?: RetryPolicy,
  callbacks?: RetryCallbacks,
  sessionId?: string,
];

/** Compacts as pi itself does, with the given model. */
export function compact(
  preparation: Preparation,
  model: Model,
  apiKey: string | undefined,
  headers?: Record<string, string>,
  customInstructions?: string,
  signal?: AbortSignal,
  thinkingLevel?: string,
  streamFn?: StreamFn,
  env?: Variables,
  retry?: RetryPolicy,
  callbacks?: RetryCallbacks,
  sessionId?: string,
): Promise<unknown> {
  if (typeof (customInstructions as Partial<AbortSignal> | undefined)?.addEventListener === "function") {
    // Versions before 0.5x take these arguments without headers.
    const [focus, until] = [headers, customInstructions] as unknown as [string | undefined, AbortSignal];
    return compact(preparation, model, apiKey, undefined, focus, until, thinkingLevel, streamFn, env, retry, callbacks, sessionId);
  }
  const { read, written, edited } = preparation.fileOps;
  const fileOps = { read: [...read], written: [...written], edited: [...edited] };
  const request = { preparation: { ...preparation, fileOps }, focus: customInstructions };
  const by = { model, apiKey, headers, signal, thinkingLevel, streamFn, env, retry, callbacks, sessionId };
  return requestSummary("compact", request, by);
}

/** Returns the summary of these messages only. */
export async function generateSummary(
  currentMessages: Message[],
  model: Model,
  reserveTokens: number,
  apiKey: string | undefined,
  headers?: Record<string, string>,
  signal?: AbortSignal,
  customInstructions?: string,
  previousSummary?: string,
  ...newer: Newer
): Promise<string> {
  const preparation = {
    firstKeptEntryId: "",
    messagesToSummarize: currentMessages,
    turnPrefixMessages: [],
    isSplitTurn: false,
    tokensBefore: 0,
    previousSummary,
    fileOps: { read: new Set<string>(), written: new Set<string>(), edited: new Set<string>() },
    settings: { ...DEFAULT_COMPACTION_SETTINGS, reserveTokens },
  };
  const compacted = await compact(preparation, model, apiKey, headers, customInstructions, signal, ...newer);
  return (compacted as { summary: string }).summary;
}

interface Session {
  getBranch(fromId?: string): Entry[];
}

/** The entries between the leaf and the point at which the path to the target leaves its branch. */
export function collectEntriesForBranchSummary(
  session: Session,
  oldLeafId: string | null,
  targetId: string,
): { entries: Entry[]; commonAncestorId: string | null } {
  if (!oldLeafId) return { entries: [], commonAncestorId: null };
  const old = session.getBranch(oldLeafId);
  const known = new Set(old.map(({ id }) => id));
  const common = session.getBranch(targetId).findLast(({ id }) => known.has(id));
  const after = common ? old.findIndex(({ id }) => id === common.id) + 1 : 0;
  return { entries: old.slice(after), commonAncestorId: common?.id ?? null };
}

/** The end of a branch, as much as fits into a budget (0: all of it). */
export function prepareBranchEntries(
  entries: Entry[],
  tokenBudget = 0,
): { messages: Message[]; fileOps: FileOperations; totalTokens: number } {
  const { fileOps, ...prepared } = hostSync<{
    messages: Message[];
    fileOps: { read: string[]; written: string[]; edited: string[] };
    totalTokens: number;
  }>("compaction.branchPart", { entries, budget: Math.max(0, Math.floor(tokenBudget)) });
  const { read, written, edited } = fileOps;
  return {
    ...prepared,
    fileOps: { read: new Set(read), written: new Set(written), edited: new Set(edited) },
  };
}

interface BranchSummary {
  summary?: string;
  readFiles?: string[];
  modifiedFiles?: string[];
  aborted?: boolean;
  error?: string;
}

export async function generateBranchSummary(
  entries: Entry[],
  options: {
    model: Model;
    apiKey?: string;
    headers?: Record<string, string>;
    signal?: AbortSignal;
    customInstructions?: string;
    replaceInstructions?: boolean;
    reserveTokens?: number;
    env?: Variables;
    streamFn?: StreamFn;
    retry?: RetryPolicy;
    callbacks?: RetryCallbacks;
  },
): Promise<BranchSummary> {
  const { signal, customInstructions, replaceInstructions } = options;
  try {
    return await requestSummary("branch", {
      entries,
      instructions: customInstructions,
      replace: replaceInstructions ?? false,
      reserve: options.reserveTokens ?? DEFAULT_COMPACTION_SETTINGS.reserveTokens,
    }, options);
  } catch (error) {
    if (signal?.aborted) return { aborted: true };
    return { error: error instanceof Error ? error.message : String(error) };
  }
}
