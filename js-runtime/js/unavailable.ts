// What extensions get for a name that pi's packages have and we do not offer (yet).
// Importing it is no error, because many extensions import more than they use;
// using it is one that says what is missing.

/** Read by `await`, loggers and inspectors of any value; reading them is no use. */
const HARMLESS: ReadonlySet<unknown> = new Set([
  "then",
  Symbol.toStringTag,
  Symbol.for("nodejs.util.inspect.custom"),
  Symbol.for("Deno.customInspect"),
  Symbol.for("Deno.privateCustomInspect"),
]);

/**
 * Stands for the export `name` of `module`: throws when called, constructed, extended or read.
 * `reason` says why it is not there, and what there is instead.
 */
// deno-lint-ignore no-explicit-any
export function missing(name: string, module: string, reason?: string): any {
  const refuse = (): never => {
    throw new Error(
      `"${name}" of ${module} is not available in this version of pi${reason ? `: ${reason}` : ""}. ` +
        "The import alone is harmless; this extension has just used it.",
    );
  };
  return new Proxy(function () {}, {
    apply: refuse,
    construct: refuse,
    get: (_target, key) => (HARMLESS.has(key) ? undefined : refuse()),
    set: refuse,
    has: refuse,
    deleteProperty: refuse,
    defineProperty: refuse,
  });
}

// The module loader gives names that no module lists at all the same treatment.
Object.defineProperty(globalThis, Symbol.for("pi.missing"), {
  configurable: true,
  enumerable: false,
  value: missing,
});
