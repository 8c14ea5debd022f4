// The folders of pi, and the version of the extension API.
import { env, executable, os, path } from "pi:node.ts";

export { VERSION } from "pi:version.ts";

/** The folder of pi's files in a project, and in the home folder. */
export const CONFIG_DIR_NAME = ".pi";

/** `PI_PACKAGE_DIR`, or the folder of this program, which may contain the documentation. */
export function getPackageDir(): string {
  const chosen = env("PI_PACKAGE_DIR");
  return chosen ? path().resolve(fromHome(chosen)) : path().dirname(executable());
}

export const getReadmePath = (): string => path().join(getPackageDir(), "README.md");
export const getDocsPath = (): string => path().join(getPackageDir(), "docs");
export const getExamplesPath = (): string => path().join(getPackageDir(), "examples");

/** `~/.pi/agent`, or the folder in `PI_CODING_AGENT_DIR`. */
export function getAgentDir(): string {
  const chosen = env("PI_CODING_AGENT_DIR");
  if (!chosen) return path().join(os().homedir(), ".pi", "agent");
  return fromHome(chosen);
}

/** Expands `~` to the user's home folder. */
export function fromHome(folder: string): string {
  return folder === "~" || folder.startsWith("~/") ? os().homedir() + folder.slice(1) : folder;
}
