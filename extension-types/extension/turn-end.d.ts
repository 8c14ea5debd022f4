// Proposals of handlers at the end of a turn: entries for the session, and one more request.
import type { Message, TextContent, ImageContent } from "../pi-ai.js";
import type { AgentMessage, ContextEditEntry, SessionEntry } from "../sdk/session.js";

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
/** Replaces another entry for the model from here on; `null` removes it. */
export interface ContextEditEntryDraft {
  type: "context_edit";
  targetId: string;
  replacement: ContextEditEntry["replacement"];
}
export interface CompactionEntryDraft {
  type: "compaction";
  summary: string;
  /** `null`: no earlier entry is kept. */
  firstKeptEntryId: string | null;
  details?: unknown;
}
/** A proposed entry. */
export type SessionBoundaryDraft =
  | CustomEntryDraft
  | CustomMessageEntryDraft
  | ContextEditEntryDraft
  | CompactionEntryDraft;

/** An entry and the messages that the model gets for it. */
export interface ProjectedSessionEntry {
  sourceEntry: SessionEntry;
  messages: AgentMessage[];
}
/** The context that the model would get with `entries` appended; computed when it is read. */
export interface BoundaryContextPreview {
  contextEntries: ProjectedSessionEntry[];
  contextMessages: AgentMessage[];
  llmMessages: Message[];
  pendingMessages: AgentMessage[];
  /** Whether the last message is not one of the model. */
  canContinue: boolean;
}
export type AgentActivityOutcome = "completed" | "aborted" | "error";
export interface BoundaryState {
  outcome: AgentActivityOutcome;
  /** Proposals of the handlers before. */
  entries: SessionBoundaryDraft[];
  continue: boolean;
  context: BoundaryContextPreview;
}
/** Members that are left out keep the previous proposals. */
export interface BoundaryResult {
  entries?: SessionBoundaryDraft[];
  /** Sends one more request to the model, even if nothing else requires it. */
  continue?: boolean;
}

// Without this line every declaration would be exported.
export {};
