// The model catalogue and computations on models.
import { hostSync } from "pi:host.ts";

export interface Cost {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
}

export interface Model {
  id: string;
  name: string;
  api: string;
  provider: string;
  cost: Cost;
  [member: string]: unknown;
}

export interface Usage extends Cost {
  cost: Cost & { total: number };
}

// The built-in models. Those of the user and of extensions are in `ctx.modelRegistry`, which this
// searches as well for a single one.

export function getModel(provider: string, modelId: string): Model | undefined {
  const known = getModels(provider).find(({ id }) => id === modelId);
  return known ?? hostSync<Model | undefined>("ai.find", { provider, id: modelId });
}

export function getModels(provider: string): Model[] {
  return hostSync<Model[]>("ai.models", { provider });
}

export function getProviders(): string[] {
  return hostSync<string[]>("ai.providers");
}

/** Writes the cost of the tokens in `usage` to `usage.cost`. Prices are per million tokens. */
export function calculateCost(model: Model, usage: Usage): Usage["cost"] {
  const { cost } = usage;
  for (const kind of ["input", "output", "cacheRead", "cacheWrite"] as const) {
    cost[kind] = (model.cost[kind] / 1_000_000) * usage[kind];
  }
  cost.total = cost.input + cost.output + cost.cacheRead + cost.cacheWrite;
  return cost;
}

const XHIGH = /gpt-5\.[234]|opus-4[-.][67]/;

type LevelNames = Record<string, string | null>;

/** Whether the model accepts the thinking level `xhigh`. */
export function supportsXhigh(model: { id: string; thinkingLevelMap?: unknown }): boolean {
  const names = model.thinkingLevelMap as LevelNames | undefined;
  return names ? Boolean(names.xhigh) : XHIGH.test(model.id);
}

export function modelsAreEqual(
  a: { id: string; provider: string } | null | undefined,
  b: { id: string; provider: string } | null | undefined,
): boolean {
  return Boolean(a && b) && a?.id === b?.id && a?.provider === b?.provider;
}

export function hasApi(model: { api: string }, api: string): boolean {
  return model.api === api;
}

const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

/** The thinking levels of the model, lowest first. */
export function getSupportedThinkingLevels(model: Model): string[] {
  if (!model.reasoning) return ["off"];
  const names = model.thinkingLevelMap as LevelNames | undefined;
  return LEVELS.filter((level) => {
    if (level === "xhigh") return supportsXhigh(model);
    return level === "max" ? Boolean(names?.max) : names?.[level] !== null;
  });
}

/** The nearest level that the model has, preferring a higher one. */
export function clampThinkingLevel(model: Model, level: string): string {
  const levels = getSupportedThinkingLevels(model);
  const requested = LEVELS.indexOf(level);
  return levels.find((offered) => LEVELS.indexOf(offered) >= requested) ?? levels.at(-1) ?? "off";
}
