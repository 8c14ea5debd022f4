// Finds misspelt members of definitions: unknown ones that resemble a missing known one, such as
// `descripton` or `baseURL`. Other unknown members are the author's own, so this is stricter than the
// suggestions of the program, which are made only after an error.
import { Object } from "ext:js_runtime/primordials.ts";

/** Minimum lengths of names in which one and two letters may be wrong. */
const ONE_TYPO_LENGTH = 4;
const TWO_TYPOS_LENGTH = 8;

const plain = (name: string): string => name.toLowerCase().replace(/[_-]/g, "");

/** Whether at most `most` letters have to be inserted, deleted, changed or swapped. */
function isWithin(a: string, b: string, most: number): boolean {
  if (Math.abs(a.length - b.length) > most) return false;
  const first = Array.from({ length: b.length + 1 }, (_, index) => index);
  const rows = [first];
  for (let row = 1; row <= a.length; row += 1) {
    const [above, now] = [rows[row - 1], [row]];
    for (let column = 1; column <= b.length; column += 1) {
      const [left, right] = [a[row - 1], b[column - 1]];
      const changed = above[column - 1] + (left === right ? 0 : 1);
      const swapped = row > 1 && column > 1 && left === b[column - 2] && right === a[row - 2];
      now[column] = Math.min(
        changed,
        above[column] + 1,
        now[column - 1] + 1,
        swapped ? rows[row - 2][column - 2] + 1 : most + 1,
      );
    }
    rows.push(now);
  }
  return rows[a.length][b.length] <= most;
}

function isNear(name: string, known: string): boolean {
  const [a, b] = [plain(name), plain(known)];
  if (a === b) return true;
  if (b.length < ONE_TYPO_LENGTH) return false;
  return isWithin(a, b, b.length >= TWO_TYPOS_LENGTH ? 2 : 1);
}

/** Returns one sentence for each misspelt member. `what` names the call and its argument. */
export function misspeltMembers(what: string, definition: object, known: readonly string[]): string[] {
  try {
    const names = Object.keys(definition);
    const foreign = names.filter((name) => !known.includes(name));
    if (foreign.length === 0) return [];
    const absent = known.filter((name) => (definition as Record<string, unknown>)[name] === undefined);
    const sentences = foreign.map((name) => {
      const suggestion = absent.find((one) => isNear(name, one));
      return suggestion && `${what} has "${name}", which pi does not know. Is "${suggestion}" meant?`;
    });
    return sentences.filter((one) => one !== undefined) as string[];
  } catch {
    return []; // It may be anything.
  }
}

export const TOOL = [
  "name",
  "label",
  "description",
  "parameters",
  "execute",
  "prepareArguments",
  "executionMode",
  "constrainedSampling",
  "defaultActive",
  "promptSnippet",
  "promptGuidelines",
  "renderCall",
  "renderResult",
  "renderShell",
] as const;
export const COMMAND = ["description", "handler", "getArgumentCompletions"] as const;
export const SHORTCUT = ["description", "handler"] as const;
export const FLAG = ["description", "type", "default"] as const;
export const PROVIDER = [
  "name",
  "baseUrl",
  "apiKey",
  "headers",
  "authHeader",
  "api",
  "models",
  "refreshModels",
  "streamSimple",
  "oauth",
] as const;
export const MODEL = [
  "id",
  "name",
  "api",
  "baseUrl",
  "reasoning",
  "input",
  "cost",
  "contextWindow",
  "maxTokens",
  "headers",
  "thinkingLevelMap",
  "samplingParams",
  "samplingParamsByThinkingLevel",
  "compat",
] as const;
