// What handlers may want at the end of a turn: entries for the session, and one more request.
import type { Message, TextContent, ImageContent } from "./pi-ai.js";
import type { AgentMessage, ContextEditEntry, SessionEntry } from "./session.js";

export interface CustomEntryDraft {
  type: "custom";
  customType: string;
  data?: unknown;
}
export interface CustomMessageEntryDraft {
  type: "custom_message";
  customType: string;
  content: string | (TextContent | ImageContent)[];
  display: boolean;
  details?: unknown;
}
/** What the model hears of another entry from here on; nothing, if that is `null`. */
export interface ContextEditEntryDraft {
  type: "context_edit";
  targetId: string;
  replacement: ContextEditEntry["replacement"];
}
export interface CompactionEntryDraft {
  type: "compaction";
  summary: string;
  /** `null`: nothing that was said before is kept. */
  firstKeptEntryId: string | null;
  details?: unknown;
}
/** An entry that is to be appended to the session. */
export type SessionBoundaryDraft =
  | CustomEntryDraft
  | CustomMessageEntryDraft
  | ContextEditEntryDraft
  | CompactionEntryDraft;

/** An entry, and what the model is told of it. */
export interface ProjectedSessionEntry {
  sourceEntry: SessionEntry;
  messages: AgentMessage[];
}
/** What the model would be told if `entries` were appended; asked for when it is read. */
export interface BoundaryContextPreview {
  contextEntries: ProjectedSessionEntry[];
  contextMessages: AgentMessage[];
  llmMessages: Message[];
  pendingMessages: AgentMessage[];
  /** The model has not had the last word. */
  canContinue: boolean;
}
export type AgentActivityOutcome = "completed" | "aborted" | "error";
export interface BoundaryState {
  outcome: AgentActivityOutcome;
  /** What handlers before want. */
  entries: SessionBoundaryDraft[];
  continue: boolean;
  context: BoundaryContextPreview;
}
/** What is left out stays as it was wanted before. */
export interface BoundaryResult {
  entries?: SessionBoundaryDraft[];
  /** The model is asked once more, if nothing else makes it so. */
  continue?: boolean;
}

// Only what says so is exported.
export {};
