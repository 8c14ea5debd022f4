// The extensions that a resource loader tells of: those that it is given as functions. What
// they register is not known before the session begins that runs them.
import { createExtensionRuntime } from "pi:pi-coding-agent/extension-runtime.ts";

type Factory = (pi: unknown) => unknown;

export interface LoadedExtension {
  path: string;
  resolvedPath: string;
  sourceInfo: object;
  hidden?: boolean;
}

export interface Extensions {
  extensions: LoadedExtension[];
  errors: { path: string; error: string }[];
  runtime: object;
}

/** Which function one of them is. */
const factories = new WeakMap<object, Factory>();

const REGISTERED = [
  "handlers",
  "tools",
  "messageRenderers",
  "commands",
  "flags",
  "shortcuts",
  "entryRenderers",
  "markdownTransformer",
];

function described(given: unknown, index: number): LoadedExtension {
  const named = given as { factory?: unknown; name?: unknown; hidden?: boolean } | undefined;
  const factory = typeof given === "function" ? given : named?.factory;
  if (typeof factory !== "function") throw new TypeError("extensionFactories: each must be a function (pi) => { ... }");
  const path = `<inline:${typeof given === "function" ? index + 1 : named?.name}>`;
  const sourceInfo = { path, source: "inline", scope: "temporary", origin: "top-level" };
  const extension: LoadedExtension = { path, resolvedPath: path, sourceInfo };
  if (typeof given !== "function" && named?.hidden) extension.hidden = true;
  for (const member of REGISTERED) {
    Object.defineProperty(extension, member, {
      enumerable: false,
      get() {
        throw new Error(
          `${path}: ${member} of an extension of extensionFactories cannot be read in this version of pi: it is ` +
            "run when the session begins. Go by its path",
        );
      },
    });
  }
  factories.set(extension, factory as Factory);
  return extension;
}

export function extensionsOf(given: unknown[]): Extensions {
  return { extensions: given.map(described), errors: [], runtime: createExtensionRuntime() };
}

/** What an override may leave of them. */
export function overridden(result: Extensions): Extensions {
  const foreign = result.extensions.find((extension) => !factories.has(extension));
  if (!foreign) return result;
  throw new Error(
    `DefaultResourceLoader: extensionsOverride gave an extension (${foreign?.path}) that it was not given, which is ` +
      "not supported by this version of pi: no extensions are loaded from files into a session that an extension runs. " +
      "Give it extensionFactories",
  );
}

export const factoriesOf = ({ extensions }: Extensions): Factory[] =>
  extensions.map((extension) => factories.get(extension) as Factory);
