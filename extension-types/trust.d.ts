// Trust in projects: newer versions of pi ask the user for it and keep it in trust.json; this one
// does not ask.

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
  /** Throws, like `setMany`, because this pi does not write the file. */
  set(cwd: string, decision: ProjectTrustDecision): void;
  setMany(decisions: ProjectTrustUpdate[]): void;
}
/** Whether a folder has resources for which those versions would ask the user. */
export function hasTrustRequiringProjectResources(cwd: string): boolean;
