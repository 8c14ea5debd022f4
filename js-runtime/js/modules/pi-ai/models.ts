// The model catalogue and arithmetic on models.
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

const all = (): Model[] => hostSync<Model[]>("models.all");

export function getModel(provider: string, modelId: string): Model | undefined {
  return hostSync<Model | null | undefined>("models.find", { provider, id: modelId }) ?? undefined;
}

export function getModels(provider: string): Model[] {
  return all().filter((model) => model.provider === provider);
}

export function getProviders(): string[] {
  return [...new Set(all().map((model) => model.provider))];
}

/** Writes what the tokens in `usage` cost into `usage.cost`. Prices are per million tokens. */
export function calculateCost(model: Model, usage: Usage): Usage["cost"] {
  const { cost } = usage;
  for (const kind of ["input", "output", "cacheRead", "cacheWrite"] as const) {
    cost[kind] = (model.cost[kind] / 1_000_000) * usage[kind];
  }
  cost.total = cost.input + cost.output + cost.cacheRead + cost.cacheWrite;
  return cost;
}

const XHIGH = /gpt-5\.[234]|opus-4[-.][67]/;

/** Whether the model takes the thinking level `xhigh`. */
export function supportsXhigh(model: { id: string }): boolean {
  return XHIGH.test(model.id);
}

export function modelsAreEqual(
  a: { id: string; provider: string } | null | undefined,
  b: { id: string; provider: string } | null | undefined,
): boolean {
  return Boolean(a && b) && a?.id === b?.id && a?.provider === b?.provider;
}
