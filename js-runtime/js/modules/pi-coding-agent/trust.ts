// `ProjectTrustStore`: the projects that people said they trust. This pi does not ask
// about projects; the file is that of newer versions, which do.
import { env, fs, os, path } from "pi:node.ts";
import { CONFIG_DIR_NAME } from "pi:pi-coding-agent/config.ts";

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
  const absolute = path().resolve(folder);
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

export class ProjectTrustStore {
  private trustPath: string;

  constructor(agentDir: string) {
    this.trustPath = path().resolve(agentDir, "trust.json");
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

  set(cwd: string, decision: Decision): void {
    this.setMany([{ path: cwd, decision }]);
  }

  setMany(updates: Update[]): void {
    const said = this._read();
    for (const { path: folder, decision } of updates) {
      if (decision === null) delete said[real(folder)];
      else said[real(folder)] = decision;
    }
    const sorted = Object.fromEntries(Object.entries(said).sort(([a], [b]) => (a < b ? -1 : 1)));
    const { mkdirSync, renameSync, writeFileSync } = fs();
    mkdirSync(path().dirname(this.trustPath), { recursive: true });
    // Readers never see half of it.
    const written = `${this.trustPath}.${crypto.randomUUID()}`;
    writeFileSync(written, `${JSON.stringify(sorted, null, 2)}\n`);
    renameSync(written, this.trustPath);
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
