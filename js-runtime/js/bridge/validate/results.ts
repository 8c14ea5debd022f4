// Checks results of functions of extensions: of tools, and of the completions of a command's
// arguments.
import { isArray, Promise } from "ext:js_runtime/primordials.ts";
import { frameOf } from "ext:js_runtime/bridge/registry.ts";
import { kind } from "ext:js_runtime/bridge/validate/arguments.ts";

/** Describes mistakes in a tool result that JSON would hide; the program checks the rest. */
export function resultProblem(tool: string, result: unknown): string | undefined {
  const content: unknown = (result as { content?: unknown } | null | undefined)?.content;
  if (!isArray(content)) {
    const is = typeof result === "object" && result !== null && !isArray(result);
    const what = is ? `and its content is ${kind(content)}` : `not ${kind(result)}`;
    return `The tool "${tool}" must return { content: [...] }, an array of text and image blocks, ${what}`;
  }
  for (let index = 0; index < content.length; index += 1) {
    const text: unknown = (content[index] as { text?: unknown } | null | undefined)?.text;
    if (text instanceof Promise) return `The tool "${tool}" must return texts: content[${index}].text is ${kind(text)}`;
  }
  return undefined;
}

/** The usable completions, and the problem of the first one that is not. */
export function completionsIn(items: unknown): { good: unknown[]; problem?: string } {
  const expected = 'must give an array of { value: "...", label: "..." }';
  if (!isArray(items)) return { good: [], problem: `${expected}, not ${kind(items)}` };
  const isGood = (item: unknown) =>
    typeof item === "string" || typeof (item as { value?: unknown } | null | undefined)?.value === "string";
  const good = items.filter(isGood);
  if (good.length === items.length) return { good };
  const wrong = items.find((item) => !isGood(item));
  return { good, problem: `${expected}, not of ${kind(wrong)}` };
}

/** Gives the error the position of that function, which has not thrown it. */
export function placedIn<T extends Error>(fn: unknown, error: T): T {
  const frame = frameOf(fn);
  if (frame) error.stack = `${error.name}: ${error.message}\n${frame}`;
  return error;
}
