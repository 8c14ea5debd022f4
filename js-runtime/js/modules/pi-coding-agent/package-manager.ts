// `DefaultPackageManager`, read-only: the packages in the settings, their folders and the resources
// that pi finds. The program installs packages.
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

  private _query<T>(name: string, more: object = {}): T {
    const { cwd, agentDir, settingsManager } = this._options;
    const settings = SettingsManager.inEffect(settingsManager);
    const projectTrusted = SettingsManager.trusts(settingsManager);
    return hostSync<T>(`resources.${name}`, { cwd, agentDir, settings, projectTrusted, ...more });
  }

  /** The packages that the settings name. */
  listConfiguredPackages(): ConfiguredPackage[] {
    return this._query("packages");
  }

  /** `undefined` if the package is not installed. */
  getInstalledPath(source: string, scope: "user" | "project"): string | undefined {
    return this._query<string | null>("packagePath", { source, scope }) ?? undefined;
  }

  /** The resources that pi finds. Packages that are not installed are left out: `pi install` fetches them. */
  async resolve(): Promise<Resolved> {
    return this._query("found");
  }

  /** The resources of these sources only: folders, files, and installed packages. */
  async resolveExtensionSources(sources: string[]): Promise<Resolved> {
    return this._query("found", { paths: sources, includeDefaults: false });
  }
}

/** Members that change packages or report progress. */
const UNSUPPORTED_MEMBERS = [
  "addSourceToSettings",
  "install",
  "installAndPersist",
  "remove",
  "removeAndPersist",
  "removeSourceFromSettings",
  "setProgressCallback",
  "update",
];
for (const name of UNSUPPORTED_MEMBERS) {
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
