// `ProjectTrustStore`: the projects that people said they trust. This pi does not ask
// about projects; the file is that of newer versions, which do.
import { env, fs, os, path } from "pi:node.ts";
import { CONFIG_DIR_NAME, fromHome } from "pi:pi-coding-agent/config.ts";

/** `null`: nobody has said. */
type Decision = boolean | null;

interface Entry {
  path: string;
  decision: boolean;
}

interface Update {
  path: string;
  decision: Decision;
}

/** In a project's folder of pi, what can change what pi does. */
const RESOURCES = [
  "settings.json",
  "extensions",
  "skills",
  "prompts",
  "themes",
  "SYSTEM.md",
  "APPEND_SYSTEM.md",
];

/** As the file system has it, if it is there. */
function real(folder: string): string {
  const absolute = path().resolve(fromHome(folder));
  try {
    return fs().realpathSync(absolute);
  } catch {
    return absolute;
  }
}

/** `folder` and all that it is in. */
function* upwards(folder: string): Generator<string> {
  for (let at = real(folder); ; at = path().dirname(at)) {
    yield at;
    if (path().dirname(at) === at) return;
  }
}

/** Whether a folder has something that a newer pi would ask about. */
export function hasTrustRequiringProjectResources(cwd: string): boolean {
  const { join } = path();
  const { existsSync } = fs();
  const own = join(real(env("HOME") || os().homedir()), ".agents", "skills");
  if (RESOURCES.some((name) => existsSync(join(real(cwd), CONFIG_DIR_NAME, name)))) return true;
  const skills = [...upwards(cwd)].map((folder) => join(folder, ".agents", "skills"));
  return skills.some((folder) => folder !== own && existsSync(folder));
}

/** Newer versions lock the file while they change it, in a way that is not done here. */
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

  /** What was said of the folder, or of the nearest one around it. */
  getEntry(cwd: string): Entry | null {
    const said = this._read();
    for (const folder of upwards(cwd)) {
      const decision = said[folder];
      if (typeof decision === "boolean") return { path: folder, decision };
    }
    return null;
  }

  set(cwd: string, _decision: Decision): void {
    throw notHere(cwd);
  }

  setMany(updates: Update[]): void {
    throw notHere(updates.map(({ path }) => path).join(", "));
  }

  private _read(): Record<string, Decision> {
    if (!fs().existsSync(this.trustPath)) return {};
    const damaged = (why: string) => new Error(`${this.trustPath} cannot be read: ${why}. Correct or remove it`);
    let said: unknown;
    try {
      said = JSON.parse(fs().readFileSync(this.trustPath, "utf8").replace(/^\ufeff/, ""));
    } catch (error) {
      throw damaged(error instanceof Error ? error.message : String(error));
    }
    if (typeof said !== "object" || said === null || Array.isArray(said)) throw damaged("it is no object");
    const wrong = Object.entries(said).find(([, value]) => value !== null && typeof value !== "boolean");
    if (wrong) throw damaged(`${JSON.stringify(wrong[0])} is neither true nor false nor null`);
    return said as Record<string, Decision>;
  }
}
