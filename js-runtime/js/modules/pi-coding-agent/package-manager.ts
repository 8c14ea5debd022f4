// `DefaultPackageManager`, to look at: which packages the settings name, where they are and
// what pi finds. Installing and the like is the program's.
import { hostSync } from "pi:host.ts";
import { SettingsManager } from "pi:pi-coding-agent/settings-manager.ts";

interface Options {
  cwd: string;
  agentDir: string;
  settingsManager?: unknown;
}

export interface ConfiguredPackage {
  source: string;
  scope: "user" | "project";
  filtered: boolean;
  installedPath?: string;
}

interface Resource {
  path: string;
  enabled: boolean;
  metadata: object;
}

type Resolved = Record<"extensions" | "skills" | "prompts" | "themes", Resource[]> & { installFailures: object[] };

export class DefaultPackageManager {
  private _options: Options;

  constructor(options: Options) {
    if (typeof options?.cwd !== "string" || typeof options.agentDir !== "string") {
      throw new TypeError("new DefaultPackageManager({ cwd, agentDir, settingsManager }): cwd and agentDir are needed");
    }
    this._options = options;
  }

  private _ask<T>(question: string, more: object = {}): T {
    const { cwd, agentDir, settingsManager } = this._options;
    const settings = SettingsManager.inEffect(settingsManager);
    const projectTrusted = SettingsManager.trusts(settingsManager);
    return hostSync<T>(`resources.${question}`, { cwd, agentDir, settings, projectTrusted, ...more });
  }

  /** Those of the settings. */
  listConfiguredPackages(): ConfiguredPackage[] {
    return this._ask("packages");
  }

  /** Nothing if it is not there. */
  getInstalledPath(source: string, scope: "user" | "project"): string | undefined {
    return this._ask<string | null>("packagePath", { source, scope }) ?? undefined;
  }

  /** What pi finds. What is not installed is left out: `pi install` fetches it. */
  async resolve(): Promise<Resolved> {
    return this._ask("found");
  }

  /** The same of these alone: folders, files, and packages that are installed. */
  async resolveExtensionSources(sources: string[]): Promise<Resolved> {
    return this._ask("found", { paths: sources, includeDefaults: false });
  }
}

/** Members that change something, or hear of it. */
const REFUSED = [
  "addSourceToSettings",
  "install",
  "installAndPersist",
  "remove",
  "removeAndPersist",
  "removeSourceFromSettings",
  "setProgressCallback",
  "update",
];
for (const name of REFUSED) {
  Object.defineProperty(DefaultPackageManager.prototype, name, {
    configurable: true,
    writable: true,
    value() {
      throw new Error(
        `DefaultPackageManager.${name}() is not available in this version of pi: packages are managed by the program; ` +
          "call `pi install`, `pi remove` and `pi update` with pi.exec",
      );
    },
  });
}
