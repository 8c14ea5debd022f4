// Checks arguments of extensions; an error names the call and the argument. Numbers, errors and
// other values with a text of their own are converted as JavaScript does; a plain object in place
// of a text is a mistake, because the user would see "[object Object]".
import { isArray, JSON, Promise, text } from "ext:js_runtime/primordials.ts";

const MAX_SHOWN_LENGTH = 40;

/** Describes the kind of a value in words. */
export function kind(value: unknown): string {
  if (value === null || value === undefined) return `${value}`;
  if (isArray(value)) return "an array";
  if (value instanceof Promise) return "a promise, as if an `await` were missing";
  switch (typeof value) {
    case "object":
      return "an object";
    case "string":
      return value.length > MAX_SHOWN_LENGTH ? "a long text" : JSON.stringify(value);
    case "number":
    case "boolean":
    case "bigint":
      return `${value}`;
    default:
      return `a ${typeof value}`;
  }
}

/** `where` names the call and the argument: "pi.exec: options.cwd". */
export function argumentError(where: string, expected: string, value: unknown, hint = ""): TypeError {
  return new TypeError(`${where} must be ${expected}, not ${kind(value)}${hint && ` (${hint})`}`);
}

/** Converts a value to text if it has a text of its own. */
export function asText(where: string, value: unknown, hint?: string): string {
  if (typeof value === "string") return value;
  if (isArray(value) || typeof value === "function" || typeof value === "symbol") {
    throw argumentError(where, "a string", value, hint);
  }
  const words = text(value);
  if (typeof value === "object" && words.startsWith("[object ")) throw argumentError(where, "a string", value, hint);
  return words;
}

export function asTextOrNone(where: string, value: unknown, hint?: string): string | undefined {
  return value === undefined || value === null ? undefined : asText(where, value, hint);
}

export function asTexts(where: string, values: unknown, hint?: string): string[] {
  if (!isArray(values)) throw argumentError(where, "an array of strings", values, hint);
  const all: string[] = [];
  for (let index = 0; index < values.length; index += 1) all[index] = asText(`${where}[${index}]`, values[index]);
  return all;
}

/** Checks that a name is a string. */
export function asName(where: string, value: unknown): string {
  if (typeof value !== "string") throw argumentError(where, "a string", value);
  return value;
}

export function aFunction(where: string, value: unknown, hint?: string): void {
  if (typeof value !== "function") throw argumentError(where, "a function", value, hint);
}

/** Accepts `null` like `undefined`. */
export function someOptions<T extends object>(where: string, value: T | null | undefined, like: string): Partial<T> {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || isArray(value)) throw argumentError(where, `an object such as ${like}`, value);
  return value;
}

export function aSignal(where: string, value: unknown): AbortSignal | undefined {
  if (value === undefined || value === null) return undefined;
  // Not `instanceof`: signals of a polyfill or another realm are accepted.
  const signal = value as Partial<AbortSignal> & { signal?: unknown };
  if (typeof signal.addEventListener === "function") return value as AbortSignal;
  throw argumentError(where, "an AbortSignal", value, typeof signal.signal === "object" ? "pass the controller's .signal" : "");
}

/**
 * Checks a number of milliseconds. As with `setTimeout` it may be a string, for example from an
 * environment variable.
 */
export function someMilliseconds(where: string, value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  const number = typeof value === "string" ? Number(value) : value;
  if (typeof number !== "number" || (typeof value === "string" && Number.isNaN(number))) {
    throw argumentError(where, "a number of milliseconds", value);
  }
  return Number.isFinite(number) ? number : undefined;
}
