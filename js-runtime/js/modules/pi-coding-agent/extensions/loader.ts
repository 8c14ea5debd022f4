// The extensions of a resource loader for a new session: functions that it was given, and files
// that it has loaded.
import { host, hostSync } from "pi:host.ts";
import { getAgentDir } from "pi:pi-coding-agent/config.ts";
import { createExtensionRuntime } from "pi:pi-coding-agent/extensions/runtime.ts";
import type { InlineExtension, MadeExtension } from "pi:pi-coding-agent/agent-session/inline-extensions.ts";

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

/** The folders and paths in which the program looks for extensions. */
export interface SearchPaths {
  cwd: string;
  agentDir: string;
  settings?: unknown;
  projectTrusted: boolean;
  paths: string[];
  includeDefaults: boolean;
}

/** An extension as the program describes it. */
interface Described {
  path: string;
  source: object;
  tools: { name: string; description: string; parameters: unknown }[];
  commands: { name: string; description?: string }[];
  flags: { name: string; type: string; description?: string }[];
  shortcuts: { key: string; description?: string }[];
  renderers: { kind: string; customType?: string }[];
  events: string[];
}

/** Extensions that were loaded together: an isolate of their own, until a session takes it. */
interface FileSet {
  number: number;
  places: SearchPaths;
  taken: boolean;
}

/** The factory function of an extension, or the set with which it was loaded. */
const factories = new WeakMap<object, Factory>();
const loaded = new WeakMap<object, FileSet>();

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

function inline(factoryOrNamed: unknown, index: number): LoadedExtension {
  const named = factoryOrNamed as { factory?: unknown; name?: unknown; hidden?: boolean } | undefined;
  const factory = typeof factoryOrNamed === "function" ? factoryOrNamed : named?.factory;
  if (typeof factory !== "function") throw new TypeError("extensionFactories: each must be a function (pi) => { ... }");
  const path = `<inline:${typeof factoryOrNamed === "function" ? index + 1 : named?.name}>`;
  const sourceInfo = { path, source: "inline", scope: "temporary", origin: "top-level" };
  const extension: LoadedExtension = { path, resolvedPath: path, sourceInfo };
  if (typeof factoryOrNamed !== "function" && named?.hidden) extension.hidden = true;
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

/** Registrations of an extension, read-only because it runs in another isolate. */
class Registered<V> extends Map<string, V> {
  constructor(path: string, what: string, entries: [string, V][]) {
    super();
    for (const [name, value] of entries) super.set(name, value);
    const refuse = () => {
      throw new Error(
        `${path}: its ${what} cannot be changed here in this version of pi, it runs in an isolate of its own. Leave the ` +
          "extension out in extensionsOverride, or a tool with excludeTools",
      );
    };
    Object.defineProperties(this, { set: { value: refuse }, delete: { value: refuse }, clear: { value: refuse } });
  }
}

function fromFile(described: Described, set: FileSet): LoadedExtension {
  const { path, source: sourceInfo } = described;
  const elsewhere = () => {
    throw new Error(`${path}: its functions cannot be called from here in this version of pi: it runs in an isolate of its own`);
  };
  const registered = <V>(what: string, entries: [string, V][]) => new Registered(path, what, entries);
  const renderers = (kind: string) =>
    described.renderers.filter((renderer) => renderer.kind === kind && renderer.customType !== undefined)
      .map(({ customType }): [string, unknown] => [customType as string, elsewhere]);
  const extension = {
    path,
    resolvedPath: path,
    sourceInfo,
    handlers: registered("handlers", described.events.map((event) => [event, [elsewhere]])),
    tools: registered(
      "tools",
      described.tools.map((tool) => [tool.name, { definition: { label: tool.name, ...tool, execute: elsewhere }, sourceInfo }]),
    ),
    commands: registered("commands", described.commands.map((command) => [command.name, { ...command, sourceInfo, handler: elsewhere }])),
    flags: registered("flags", described.flags.map((flag) => [flag.name, { ...flag, extensionPath: path }])),
    shortcuts: registered(
      "shortcuts",
      described.shortcuts.map(({ key, description }) => [key, { shortcut: key, description, extensionPath: path, handler: elsewhere }]),
    ),
    messageRenderers: registered("messageRenderers", renderers("message")),
    entryRenderers: registered("entryRenderers", renderers("entry")),
  };
  loaded.set(extension, set);
  return extension;
}

/** Wraps extensions that are functions. */
export const extensionsOf = (inlineExtensions: unknown[]): Extensions => ({
  extensions: inlineExtensions.map(inline),
  errors: [],
  runtime: createExtensionRuntime(),
});

const load = (places: SearchPaths, only?: string[]) =>
  host<{ set?: number; extensions: Described[]; errors: Extensions["errors"] }>("child.loadExtensions", { ...places, only });

/** Unloads sets that no session can take any more because they are unreachable. */
const unreachable = new FinalizationRegistry((number: number) => hostSync("child.unloadExtensions", { set: number }));

async function loadSet(places: SearchPaths, only?: string[]): Promise<Pick<Extensions, "extensions" | "errors">> {
  const { set: number, extensions, errors } = await load(places, only);
  if (number === undefined) return { extensions: [], errors };
  const set: FileSet = { number, places, taken: false };
  unreachable.register(set, number, set);
  return { extensions: extensions.map((described) => fromFile(described, set)), errors };
}

function release(set: FileSet): void {
  if (set.taken) return;
  set.taken = true;
  unreachable.unregister(set);
  hostSync("child.unloadExtensions", { set: set.number });
}

/**
 * Loads the extensions of the two folders and of `paths`, whatever the settings are, so that a
 * custom loader can pass them to a session.
 */
export async function discoverAndLoadExtensions(
  paths: string[],
  cwd: string,
  agentDir = getAgentDir(),
): Promise<Extensions> {
  const places = { cwd, agentDir, settings: {}, projectTrusted: true, paths, includeDefaults: true };
  return await loadExtensions(places, [], undefined);
}

/** Loads the extensions of `places` and `inlineExtensions`, as far as `override` keeps them. */
export async function loadExtensions(
  places: SearchPaths,
  inlineExtensions: unknown[],
  override: ((base: Extensions) => Extensions) | undefined,
): Promise<Extensions> {
  const files = places.includeDefaults || places.paths.length > 0
    ? await loadSet(places)
    : { extensions: [], errors: [] };
  const base = extensionsOf(inlineExtensions);
  base.extensions.unshift(...files.extensions);
  base.errors.push(...files.errors);
  const wanted = override?.(base) ?? base;
  for (const extension of wanted.extensions) check(extension, "DefaultResourceLoader: extensionsOverride");
  const [first] = files.extensions;
  const set = first && loaded.get(first);
  const remaining = wanted.extensions.filter((extension) => loaded.get(extension) === set);
  if (!set || remaining.length === files.extensions.length) return wanted;
  // Extensions that are left out must not get events, so the rest is loaded again.
  release(set);
  if (remaining.length === 0) return wanted;
  const again = await loadSet(places, remaining.map(({ path }) => path));
  const now = new Map(again.extensions.map((extension) => [extension.path, extension]));
  const extensions = wanted.extensions.flatMap((extension) => loaded.has(extension) ? now.get(extension.path) ?? [] : extension);
  return { ...wanted, extensions, errors: [...wanted.errors, ...again.errors] };
}

/** Whether other code has assembled the extension here, with functions that can be called. */
const isMade = (extension: Partial<MadeExtension>) => extension?.handlers instanceof Map;

function check(extension: LoadedExtension, caller: string): void {
  if (factories.has(extension) || loaded.has(extension) || isMade(extension as Partial<MadeExtension>)) return;
  throw new Error(
    `${caller} gave an extension (${extension?.path}) that no DefaultResourceLoader of this version of pi has loaded. Give ` +
      "the loader its path in additionalExtensionPaths, or a function in extensionFactories",
  );
}

/** Unloads extensions of an earlier load that no session has taken. */
export function forget({ extensions }: Extensions): void {
  for (const extension of extensions) {
    const set = loaded.get(extension);
    if (set) release(set);
  }
}

/**
 * The extensions of a new session: those that run here, and the number of a set that the program
 * has loaded.
 */
export async function takeExtensions(
  result: Pick<Extensions, "extensions"> | undefined,
): Promise<{ here: InlineExtension[]; set: number | undefined }> {
  const extensions = result?.extensions ?? [];
  for (const extension of extensions) check(extension, "createAgentSession: getExtensions() of resourceLoader");
  const files = extensions.filter((extension) => loaded.has(extension));
  const others = extensions.filter((extension) => !loaded.has(extension));
  const here = others.map((extension) => factories.get(extension) ?? (extension as MadeExtension));
  const [first] = files;
  const set = first && loaded.get(first);
  if (!set) return { here, set: undefined };
  if (!set.taken) {
    set.taken = true;
    unreachable.unregister(set);
    return { here, set: set.number };
  }
  // Another session of the same loader has taken the set.
  const again = await load(set.places, files.map(({ path }) => path));
  return { here, set: again.set };
}
