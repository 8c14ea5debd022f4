// Trust in projects: newer versions of pi ask for it and keep it in trust.json; this one does not ask.

/** `null`: nobody has said. */
export type ProjectTrustDecision = boolean | null;
export interface ProjectTrustStoreEntry {
  path: string;
  decision: boolean;
}
export interface ProjectTrustUpdate {
  path: string;
  decision: ProjectTrustDecision;
}
/** What trust.json says of a folder, or of the nearest one around it. */
export class ProjectTrustStore {
  constructor(agentDir: string);
  get(cwd: string): ProjectTrustDecision;
  getEntry(cwd: string): ProjectTrustStoreEntry | null;
  /** Throws, and so does `setMany`: this pi does not write the file. */
  set(cwd: string, decision: ProjectTrustDecision): void;
  setMany(decisions: ProjectTrustUpdate[]): void;
}
/** Whether a folder has something that those versions would ask about. */
export function hasTrustRequiringProjectResources(cwd: string): boolean;
