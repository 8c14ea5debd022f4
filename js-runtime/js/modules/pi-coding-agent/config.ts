// Where pi keeps its files, and which version of the extension API this is.
import { env, executable, os, path } from "pi:node.ts";

/** The version of pi whose extension API is offered; extensions compare it. */
export const VERSION = "0.67.68";

/** The folder of pi's files in a project, and in the home folder. */
export const CONFIG_DIR_NAME = ".pi";

/** Where this program is: newer versions of the API ask for the folder of the package. */
export function getPackageDir(): string {
  return path().dirname(executable());
}

/** `~/.pi/agent`, or where `PI_CODING_AGENT_DIR` says. */
export function getAgentDir(): string {
  const chosen = env("PI_CODING_AGENT_DIR");
  if (!chosen) return path().join(os().homedir(), ".pi", "agent");
  return chosen === "~" || chosen.startsWith("~/") ? os().homedir() + chosen.slice(1) : chosen;
}
