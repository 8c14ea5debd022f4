// The key of a provider in the environment. Changes of `process.env` by an extension in a process
// of its own are invisible to the program, so they are passed along.
import { hostSync } from "pi:host.ts";
import { env } from "pi:node.ts";

export type Variables = Record<string, string | undefined>;

/** The provider's variables that have a value; `overrides` come before the environment. */
function variables(provider: string, overrides: Variables): Record<string, string> {
  const set: Record<string, string> = {};
  for (const name of hostSync<string[]>("ai.key_variables", { provider })) {
    const value = overrides[name] ?? env(name);
    if (value) set[name] = value;
  }
  return set;
}

/** `overrides`, from newer versions, come before the environment. */
export function getEnvApiKey(provider: string, overrides: Variables = {}): string | undefined {
  return hostSync<string | null>("ai.env_api_key", { provider, env: variables(provider, overrides) }) ?? undefined;
}

/** The names of variables that contain a key, in order of precedence; from newer versions. */
export function findEnvKeys(provider: string, overrides: Variables = {}): string[] | undefined {
  // AWS's variables identify an account and are no keys.
  if (provider === "amazon-bedrock") return undefined;
  const names = Object.keys(variables(provider, overrides));
  return names.length > 0 ? names : undefined;
}
