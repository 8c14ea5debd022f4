// The environment's key for a provider. In a process of its own what an extension sets in
// `process.env` is not seen by the program, so that it is told.
import { hostSync } from "pi:host.ts";
import { env } from "pi:node.ts";

export type Variables = Record<string, string | undefined>;

/** `given`, of newer versions, comes before the environment. */
export function getEnvApiKey(provider: string, given: Variables = {}): string | undefined {
  const names = hostSync<string[]>("ai.key_variables", { provider });
  const set: Record<string, string> = {};
  for (const name of names) {
    const value = given[name] ?? env(name);
    if (value) set[name] = value;
  }
  return hostSync<string | null>("ai.env_api_key", { provider, env: set }) ?? undefined;
}
