// Implements `readdir` of `node:fs` (ext/src/node/readdir.rs). `snapshot/corrections` installs it.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { op_read_folder, op_read_folder_now, op_stat_now } from "ext:core/ops";
// @ts-ignore: provided by the runtime
import { Dirent, getOptions, getValidatedPathToString } from "ext:deno_node/internal/fs/utils.mjs";

const {
  ArrayPrototypePop,
  ArrayPrototypePush,
  Promise,
  PromisePrototypeThen,
  StringPrototypeCharCodeAt,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
  TypedArrayPrototypeIndexOf,
  TypedArrayPrototypeSubarray,
  Uint8Array,
} = primordials;
const { makeCallback } = core.loadExtScript("ext:deno_node/_fs/_fs_common.ts");
const { validateBoolean } = core.loadExtScript("ext:deno_node/internal/validators.mjs");
const { Buffer } = core.loadExtScript("ext:deno_node/internal/buffer.mjs");
const { join } = core.loadExtScript("ext:deno_node/path/mod.ts");

interface Options {
  encoding?: string | null;
  withFileTypes?: boolean;
  recursive?: boolean;
}

const [DIRECTORY, LINK] = [2, 3];
const ZERO = "0".charCodeAt(0);
/** The fields of a `stat` result; the second one is the mode. */
const fields = new BigInt64Array(18);
const bytesOfFields = new Uint8Array(fields.buffer);
const FORMAT = 0o170000n;
const FOLDER = 0o040000n;

function leadsToFolder(path: string): boolean {
  return op_stat_now(path, true, true, bytesOfFields) === 0 && (fields[1] & FORMAT) === FOLDER;
}

/** One `readdir` call: reads a folder and, if it is `recursive`, the folders below it. */
class FolderReader {
  result: unknown[] = [];
  /** Folders still to be read, each with the prefix of its names in the result. */
  waiting: [path: string, start: string][];
  #options: Options;
  #followsLinks: boolean;

  constructor(path: string, options: Options, followsLinks: boolean) {
    this.#options = options;
    this.#followsLinks = followsLinks;
    this.waiting = [[path, ""]];
  }

  addEntries(list: Uint8Array, path: string, start: string): void {
    const { encoding } = this.#options;
    if (encoding === "buffer") {
      for (let at = 0; at < list.length;) {
        const end = TypedArrayPrototypeIndexOf(list, 0, at);
        const name = Buffer.from(TypedArrayPrototypeSubarray(list, at + 1, end));
        this.#add(list[at] - ZERO, name, core.decode(name), path, start);
        at = end + 1;
      }
      return;
    }
    const isPlain = !encoding || encoding === "utf8" || encoding === "utf-8";
    const text: string = core.decode(list);
    for (let at = 0; at < text.length;) {
      const end = StringPrototypeIndexOf(text, "\0", at);
      const name = StringPrototypeSlice(text, at + 1, end);
      const kind = StringPrototypeCharCodeAt(text, at) - ZERO;
      this.#add(kind, isPlain ? name : Buffer.from(name).toString(encoding), name, path, start);
      at = end + 1;
    }
  }

  #add(kind: number, shown: unknown, name: string, path: string, start: string): void {
    const { recursive, withFileTypes } = this.#options;
    if (withFileTypes) ArrayPrototypePush(this.result, new Dirent(shown, kind, path));
    else ArrayPrototypePush(this.result, start === "" ? shown : `${start}/${shown}`);
    if (!recursive) return;
    const below = join(path, name);
    if (kind === DIRECTORY || (kind === LINK && this.#followsLinks && leadsToFolder(below))) {
      ArrayPrototypePush(this.waiting, [below, start === "" ? name : `${start}/${name}`]);
    }
  }
}

function optionsOf(value: unknown): Options {
  const options = getOptions(value) as Options;
  if (options.recursive != null) validateBoolean(options.recursive, "options.recursive");
  return options;
}

function readdirSync(pathArgument: unknown, optionsArgument?: unknown): unknown[] {
  const options = optionsOf(optionsArgument);
  const path = getValidatedPathToString(pathArgument);
  const reading = new FolderReader(path, options, true);
  for (let at = 0; at < reading.waiting.length; at += 1) {
    const [folder, start] = reading.waiting[at];
    const list = internals.namedSync(() => op_read_folder_now(folder), "scandir", folder);
    reading.addEntries(list, folder, start);
  }
  return reading.result;
}

async function all(reading: FolderReader, next: (waiting: FolderReader["waiting"], at: number) => [string, string] | undefined) {
  for (let at = 0, folder; (folder = next(reading.waiting, at)) !== undefined; at += 1) {
    const list: Uint8Array = await internals.named(op_read_folder(folder[0]), "scandir", folder[0]);
    reading.addEntries(list, folder[0], folder[1]);
  }
  return reading.result;
}

function readdir(pathArgument: unknown, optionsArgument: unknown, callback?: unknown): void {
  const done = makeCallback(typeof optionsArgument === "function" ? optionsArgument : callback);
  const options = optionsOf(typeof optionsArgument === "function" ? undefined : optionsArgument);
  const path = getValidatedPathToString(pathArgument);
  PromisePrototypeThen(
    all(new FolderReader(path, options, true), (waiting, at) => waiting[at]),
    (result: unknown[]) => done(null, result),
    (error: unknown) => done(error),
  );
}

/**
 * The folder that was found last is read first. The entry types come from the folder itself, which
 * does not follow links.
 */
const readdirPromise = (pathArgument: unknown, optionsArgument?: unknown): Promise<unknown[]> =>
  new Promise((resolve: (result: Promise<unknown[]>) => void) => {
    const options = optionsOf(optionsArgument);
    const reading = new FolderReader(getValidatedPathToString(pathArgument), options, !options.withFileTypes);
    resolve(all(reading, (waiting) => ArrayPrototypePop(waiting)));
  });

internals.folders = { readdir, readdirPromise, readdirSync };
