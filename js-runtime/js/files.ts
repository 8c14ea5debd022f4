// What is to be mended in `node:fs` and takes more than another line of its text; the
// texts of `snapshot/corrections.rs` call it.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { op_terminal_write } from "ext:core/ops";
// @ts-ignore: provided by the runtime
import { BigIntStats, Stats } from "ext:deno_node/internal/fs/utils.mjs";

const {
  ArrayPrototypeFilter,
  ArrayPrototypeSort,
  ObjectCreate,
  ObjectDefineProperty,
  ObjectGetOwnPropertyDescriptor,
  ObjectHasOwn,
  ObjectKeys,
  ObjectPrototypeIsPrototypeOf,
  PromisePrototype,
  PromisePrototypeThen,
  ReflectApply,
  StringPrototypeEndsWith,
  StringPrototypeReplace,
  StringPrototypeReplaceAll,
  StringPrototypeSlice,
  StringPrototypeStartsWith,
} = primordials;

type Filter = (src: string, dest: string) => unknown;
type Copy = (src: string, dest: string, options: { filter?: Filter }) => unknown;

// Deno's copy makes links that are relative to the source as it is given to it: from a
// relative one they come to lead elsewhere. It gets absolute paths; filters and errors
// get those that the caller gave.
internals.copyAbsolutely = (copy: Copy, src: string, dest: string, options: { filter?: Filter }) => {
  const { isAbsolute, join, resolve } = core.loadExtScript("ext:deno_node/path/mod.ts");
  if ((isAbsolute(src) && isAbsolute(dest)) || src === "" || dest === "") {
    return copy(src, dest, options);
  }
  // Of a link that is named with a slash at the end, the folder that it leads to is meant.
  const absolute = (path: string) => {
    const found = resolve(path);
    return StringPrototypeEndsWith(path, "/") && found !== "/" ? `${found}/` : found;
  };
  const from = { given: src, root: absolute(src) };
  const to = { given: dest, root: absolute(dest) };
  const given = (path: string, { given, root }: typeof from) => {
    if (path === root) return given;
    const below = StringPrototypeEndsWith(root, "/") ? root : `${root}/`;
    const isBelow = StringPrototypeStartsWith(path, below);
    return isBelow ? join(given, StringPrototypeSlice(path, below.length)) : path;
  };
  const eitherGiven = (path: string) => {
    const found = given(path, to);
    return found === path ? given(path, from) : found;
  };
  const known = (error: any) => {
    if (typeof error?.path !== "string") return error;
    const { path, dest, message, stack } = error;
    const named = ArrayPrototypeFilter(
      [path, dest, from.root, to.root],
      (path: unknown) => typeof path === "string" && path !== "/",
    );
    ArrayPrototypeSort(named, (a: string, b: string) => b.length - a.length);
    for (const path of named) {
      error.message = StringPrototypeReplaceAll(error.message, path, () => eitherGiven(path));
    }
    error.stack = StringPrototypeReplace(stack, message, () => error.message);
    error.path = eitherGiven(path);
    if (typeof dest === "string") error.dest = eitherGiven(dest);
    return error;
  };
  const { filter } = options;
  const told: Filter | undefined = filter && ((a, b) => filter(given(a, from), given(b, to)));
  const failed = (error: unknown) => {
    throw known(error);
  };
  try {
    const copied = copy(from.root, to.root, { ...options, filter: told });
    return ObjectPrototypeIsPrototypeOf(PromisePrototype, copied)
      ? PromisePrototypeThen(copied, undefined, failed)
      : copied;
  } catch (error) {
    return failed(error);
  }
};

type Entry = { name: string; isDirectory: boolean; parentPath?: string };
declare const Deno: any;

const below = ({ name, parentPath }: Entry) =>
  core.loadExtScript("ext:deno_node/path/mod.ts").join(parentPath, name);

/** What is in a folder, each with the folder that it is in. */
internals.entries = async function* (folder: string, recursive?: boolean): AsyncGenerator<Entry> {
  const folders = [folder];
  for (let index = 0; index < folders.length; index += 1) {
    for await (const entry of Deno.readDir(folders[index])) {
      entry.parentPath = folders[index];
      if (recursive && entry.isDirectory) folders[folders.length] = below(entry);
      yield entry;
    }
  }
};

internals.entriesSync = function* (folder: string, recursive?: boolean): Generator<Entry> {
  const folders = [folder];
  for (let index = 0; index < folders.length; index += 1) {
    for (const entry of Deno.readDirSync(folders[index])) {
      entry.parentPath = folders[index];
      if (recursive && entry.isDirectory) folders[folders.length] = below(entry);
      yield entry;
    }
  }
};

const asNode = (error: unknown, syscall: string, path?: string, dest?: string): unknown => {
  const context: Record<string, string> = { syscall };
  if (path !== undefined) context.path = path;
  if (dest !== undefined) context.dest = dest;
  return core.loadExtScript("ext:deno_node/internal/errors.ts").denoErrorToNodeError(error, context);
};

/** What fails, fails with the error that Node has for it. */
internals.named = (promise: Promise<unknown>, syscall: string, path?: string, dest?: string) =>
  PromisePrototypeThen(promise, undefined, (error: unknown) => {
    throw asNode(error, syscall, path, dest);
  });

internals.namedSync = (action: () => unknown, syscall: string, path?: string, dest?: string) => {
  try {
    return action();
  } catch (error) {
    throw asNode(error, syscall, path, dest);
  }
};

/** Of a folder it is not the opening that fails. */
internals.readingFailed = (error: any, { path }: { path?: string }) =>
  path === undefined || error?.code === "EISDIR" ? asNode(error, "read") : asNode(error, "open", path);

/** The system call that an operation on a descriptor or a path stands for. */
const SYSCALLS: Record<string, string> = {
  op_node_fs_fchmod: "fchmod",
  op_node_fs_fchown: "fchown",
  op_node_fs_fdatasync: "fdatasync",
  op_node_fs_fsync: "fsync",
  op_node_fs_ftruncate: "ftruncate",
  op_node_fs_futimes: "futime",
  op_node_lchown: "lchown",
};
const SYNC_SYSCALLS: Record<string, string> = {
  op_node_fs_close: "close",
  op_node_fs_read_file_sync: "read",
  op_node_fs_write_sync: "write",
};
for (const name of ObjectKeys(SYSCALLS)) SYNC_SYSCALLS[`${name}_sync`] = SYSCALLS[name];
SYSCALLS.op_node_fs_write_deferred = "write";

/** What failed may be a write to a terminal that an addon has opened (terminals.rs). */
function toTerminal(error: unknown, descriptor: number, data: Uint8Array): number {
  const written: number = op_terminal_write(descriptor, data);
  if (written < 0) throw error;
  return written;
}

type Write<T> = (descriptor: number, data: Uint8Array, position: number) => T;

/** The operations, with other descriptors that can be written to. */
function withTerminals(ops: any): any {
  const { op_node_fs_write_deferred: later, op_node_fs_write_sync: now } = ops;
  const writeLater: Write<Promise<number>> = (descriptor, data, position) =>
    PromisePrototypeThen(
      later(descriptor, data, position),
      undefined,
      (error: unknown) => toTerminal(error, descriptor, data),
    );
  const writeNow: Write<number> = (descriptor, data, position) => {
    try {
      return now(descriptor, data, position);
    } catch (error) {
      return toTerminal(error, descriptor, data);
    }
  };
  const more = ObjectCreate(ops);
  more.op_node_fs_write_deferred = writeLater;
  more.op_node_fs_write_sync = writeNow;
  return more;
}

/** The operations of which `node:fs` passes on what they throw. */
internals.namedOps = (all: any) => {
  const ops = withTerminals(all);
  const named = ObjectCreate(ops);
  const pathOf = (first: unknown) => (typeof first === "string" ? first : undefined);
  for (const name of ObjectKeys(SYSCALLS)) {
    const op = ops[name];
    named[name] = (...args: unknown[]) =>
      internals.named(ReflectApply(op, ops, args), SYSCALLS[name], pathOf(args[0]));
  }
  for (const name of ObjectKeys(SYNC_SYSCALLS)) {
    const op = ops[name];
    named[name] = (...args: unknown[]) =>
      internals.namedSync(() => ReflectApply(op, ops, args), SYNC_SYSCALLS[name], pathOf(args[0]));
  }
  return named;
};

// Times that are properties of what `stat` gives are copied with it. The constructor sets
// them all but this one, which is made when it is read.
for (const { prototype } of [Stats, BigIntStats]) {
  const last = ObjectGetOwnPropertyDescriptor(prototype, "ctime");
  ObjectDefineProperty(prototype, "ctime", {
    ...last,
    set(this: any, value: unknown) {
      ReflectApply(last.set, this, [value]);
      if (ObjectHasOwn(this, "birthtimeMs")) this.birthtime;
    },
  });
}
