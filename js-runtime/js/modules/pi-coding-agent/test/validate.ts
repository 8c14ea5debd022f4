// Checks the arguments of test functions: a misspelt option would be ignored, and the test would
// pass or fail for another reason than it claims.
const { inspect } = process.getBuiltinModule("node:util");

const shown = (value: unknown): string => inspect(value, { depth: 1, breakLength: Infinity });

type Fits = (value: unknown) => boolean;
/** The requirement for an option, in words and as a check. */
export type Requirement = readonly [words: string, fits: Fits];

const isPlain: Fits = (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof RegExp);
const isText: Fits = (value) => typeof value === "string";
const isPattern: Fits = (value) => isText(value) || value instanceof RegExp;
const each = (fits: Fits): Fits => (value) => Array.isArray(value) && value.every(fits);

export const TEXT: Requirement = ["a string", isText];
export const TEXTS: Requirement = ["an array of strings", each(isText)];
export const PATTERNS: Requirement = ["an array of strings and regular expressions", each(isPattern)];
export const PATTERN: Requirement = ["a string or a regular expression", isPattern];
export const OBJECT: Requirement = ["an object", isPlain];
export const OBJECTS: Requirement = ["an array of objects", each(isPlain)];
export const NUMBER: Requirement = ["a number above 0", (value) => typeof value === "number" && value > 0];
export const COUNT: Requirement = ["a number", (value) => typeof value === "number" && value >= 0];
export const SCRIPT: Requirement = [
  "an array of answers, or a function",
  (value) => Array.isArray(value) || typeof value === "function",
];

export function oneOf(...values: string[]): Requirement {
  return [`one of ${values.map((value) => JSON.stringify(value)).join(", ")}`, (value) => values.includes(value as string)];
}

/** `where` names the call: "t.start". */
export function checkValue(where: string, value: unknown, [words, fits]: Requirement): void {
  if (!fits(value)) throw new TypeError(`${where} must be ${words}, not ${shown(value)}`);
}

/** Throws for an unknown option, and for one with an invalid value. */
export function checkOptions(where: string, options: unknown, known: Record<string, Requirement>): void {
  if (!isPlain(options)) throw new TypeError(`${where}: the options must be an object, not ${shown(options)}`);
  for (const [name, value] of Object.entries(options as object)) {
    if (!Object.hasOwn(known, name)) {
      throw new TypeError(`${where} has no option "${name}". The options are: ${Object.keys(known).join(", ")}`);
    }
    if (value !== undefined) checkValue(`${where}: ${name}`, value, known[name]);
  }
}
