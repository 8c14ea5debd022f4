// Trust in projects: pi asks the user for it and keeps the answers in trust.json.
import type { ExtensionMode, ExtensionUIContext } from "./context.js";

/** `null`: the user has not decided. */
export type ProjectTrustDecision = boolean | null;
export interface ProjectTrustStoreEntry {
  path: string;
  decision: boolean;
}
export interface ProjectTrustUpdate {
  path: string;
  decision: ProjectTrustDecision;
}
/** The decision in trust.json for a folder, or for the nearest one around it. */
export class ProjectTrustStore {
  constructor(agentDir: string);
  get(cwd: string): ProjectTrustDecision;
  getEntry(cwd: string): ProjectTrustStoreEntry | null;
  /** Counts for sessions that start later. */
  set(cwd: string, decision: ProjectTrustDecision): void;
  setMany(decisions: ProjectTrustUpdate[]): void;
}
/** Whether a folder has resources for which pi asks the user. */
export function hasTrustRequiringProjectResources(cwd: string): boolean;

/** Emitted to extensions of the user, before anything of a project is used. */
export interface ProjectTrustEvent {
  type: "project_trust";
  cwd: string;
}
export type ProjectTrustEventDecision = "yes" | "no" | "undecided";
export interface ProjectTrustEventResult {
  /** The first `yes` or `no` counts. */
  trusted: ProjectTrustEventDecision;
  /** Whether the answer is recorded in trust.json. */
  remember?: boolean;
}
export interface ProjectTrustContext {
  cwd: string;
  mode: ExtensionMode;
  hasUI: boolean;
  ui: Pick<ExtensionUIContext, "select" | "confirm" | "input" | "notify">;
}
export type ProjectTrustHandler = (
  event: ProjectTrustEvent,
  ctx: ProjectTrustContext,
) => ProjectTrustEventResult | Promise<ProjectTrustEventResult>;
