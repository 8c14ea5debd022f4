// `ProjectTrustStore`: the user's decisions about trust in projects. This pi shows no dialog about
// it; the file is that of newer versions, which do, and the program reads it.
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

/** Whether a folder has resources for which a newer pi would ask the user. */
export function hasTrustRequiringProjectResources(cwd: string): boolean {
  return hostSync("resources.hasSomethingToTrust", { cwd: path().resolve(fromHome(cwd)) });
}

/** Newer versions lock the file while they change it, which is not implemented here. */
const notHere = (folder: string) =>
  new Error(`ProjectTrustStore: this pi reads trust.json and does not write it. Decide about ${folder} in a pi that asks`);

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

  set(cwd: string, _decision: Decision): void {
    throw notHere(cwd);
  }

  setMany(updates: Update[]): void {
    throw notHere(updates.map(({ path }) => path).join(", "));
  }
}
