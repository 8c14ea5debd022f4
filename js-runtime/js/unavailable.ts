// Stand-ins for names that pi's packages export and this program does not offer (yet). Importing
// one is no error, because many extensions import more than they use; using one throws an error
// that names it.

/** Members that `await`, loggers and inspectors read of any value; reading them does not count as use. */
const HARMLESS_MEMBERS: ReadonlySet<unknown> = new Set([
  "then",
  Symbol.toStringTag,
  Symbol.for("nodejs.util.inspect.custom"),
  Symbol.for("Deno.customInspect"),
  Symbol.for("Deno.privateCustomInspect"),
]);

/**
 * Stands for the export `name` of `module`: throws when called, constructed, extended or read.
 * `reason` tells why it is not available, and what to use instead.
 */
// deno-lint-ignore no-explicit-any
export function unavailable(name: string, module: string, reason?: string): any {
  const refuse = (): never => {
    throw new Error(
      `"${name}" of ${module} is not available in this version of pi${reason ? `: ${reason}` : ""}. ` +
        "The import alone is harmless; this extension has just used it.",
    );
  };
  return new Proxy(function () {}, {
    apply: refuse,
    construct: refuse,
    get: (_target, key) => (HARMLESS_MEMBERS.has(key) ? undefined : refuse()),
    set: refuse,
    has: refuse,
    deleteProperty: refuse,
    defineProperty: refuse,
  });
}

// The module loader uses the same stand-ins for names that no module lists at all.
Object.defineProperty(globalThis, Symbol.for("pi.missing"), {
  configurable: true,
  enumerable: false,
  value: unavailable,
});
