// `ProjectTrustStore`: the user's decisions about trust in projects, which the program keeps.
import { hostSync } from "pi:host.ts";
import { path } from "pi:node.ts";
import { fromHome } from "pi:pi-coding-agent/config.ts";

/** `null`: the user has not decided. */
type Decision = boolean | null;

interface Entry {
  path: string;
  decision: boolean;
}

interface Update {
  path: string;
  decision: Decision;
}

/** Whether a folder has resources for which pi asks the user. */
export function hasTrustRequiringProjectResources(cwd: string): boolean {
  return hostSync("resources.hasSomethingToTrust", { cwd: path().resolve(fromHome(cwd)) });
}

export class ProjectTrustStore {
  private trustPath: string;

  constructor(agentDir: string) {
    this.trustPath = path().resolve(fromHome(agentDir), "trust.json");
  }

  get(cwd: string): Decision {
    return this.getEntry(cwd)?.decision ?? null;
  }

  /** The decision for the folder, or for the nearest one around it. Throws if the file is damaged. */
  getEntry(cwd: string): Entry | null {
    return hostSync("resources.trust", { file: this.trustPath, cwd: path().resolve(fromHome(cwd)) });
  }

  set(cwd: string, decision: Decision): void {
    this.setMany([{ path: cwd, decision }]);
  }

  /** Counts for sessions that start later. */
  setMany(updates: Update[]): void {
    const changes = updates.map((update) => ({
      path: path().resolve(fromHome(update.path)),
      decision: update.decision,
    }));
    hostSync("resources.recordTrust", { file: this.trustPath, changes });
  }
}
