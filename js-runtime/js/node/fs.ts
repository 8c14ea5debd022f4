// Corrections of `node:fs` that need more than another line in its text. Code in
// `snapshot/corrections.rs` calls them.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { op_allow_foreign_descriptor, op_foreign_close, op_stat_descriptor, op_terminal_write } from "ext:core/ops";
// @ts-ignore: provided by the runtime
import { BigIntStats, Stats } from "ext:deno_node/internal/fs/utils.mjs";

const {
  ArrayPrototypeFilter,
  ArrayPrototypeSort,
  Error,
  ObjectCreate,
  ObjectDefineProperties,
  ObjectDefineProperty,
  ObjectGetOwnPropertyDescriptor,
  ObjectGetOwnPropertyDescriptors,
  ObjectHasOwn,
  ObjectKeys,
  ObjectPrototypeIsPrototypeOf,
  PromisePrototype,
  PromisePrototypeThen,
  ReflectApply,
  SafeRegExp,
  StringPrototypeEndsWith,
  StringPrototypeReplace,
  StringPrototypeReplaceAll,
  StringPrototypeSlice,
  StringPrototypeStartsWith,
  TypedArrayPrototypeSet,
  TypedArrayPrototypeSlice,
  TypedArrayPrototypeSubarray,
  Uint8Array,
} = primordials;

type Filter = (src: string, dest: string) => unknown;
type Copy = (src: string, dest: string, options: { filter?: Filter }) => unknown;

// Deno's copy makes links relative to the source path as given: with a relative path they then lead
// elsewhere. This wrapper passes absolute paths, while filters and errors get the paths of the
// caller.
internals.copyAbsolutely = (copy: Copy, src: string, dest: string, options: { filter?: Filter }) => {
  const { isAbsolute, join, resolve } = core.loadExtScript("ext:deno_node/path/mod.ts");
  if ((isAbsolute(src) && isAbsolute(dest)) || src === "" || dest === "") {
    return copy(src, dest, options);
  }
  // A trailing slash on a link means the folder that it leads to.
  const absolute = (path: string) => {
    const found = resolve(path);
    return StringPrototypeEndsWith(path, "/") && found !== "/" ? `${found}/` : found;
  };
  const from = { callerPath: src, root: absolute(src) };
  const to = { callerPath: dest, root: absolute(dest) };
  const toCallerPath = (path: string, { callerPath, root }: typeof from) => {
    if (path === root) return callerPath;
    const below = StringPrototypeEndsWith(root, "/") ? root : `${root}/`;
    const isBelow = StringPrototypeStartsWith(path, below);
    return isBelow ? join(callerPath, StringPrototypeSlice(path, below.length)) : path;
  };
  const toEitherCallerPath = (path: string) => {
    const found = toCallerPath(path, to);
    return found === path ? toCallerPath(path, from) : found;
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
      error.message = StringPrototypeReplaceAll(error.message, path, () => toEitherCallerPath(path));
    }
    error.stack = StringPrototypeReplace(stack, message, () => error.message);
    error.path = toEitherCallerPath(path);
    if (typeof dest === "string") error.dest = toEitherCallerPath(dest);
    return error;
  };
  const { filter } = options;
  const wrappedFilter: Filter | undefined = filter && ((a, b) => filter(toCallerPath(a, from), toCallerPath(b, to)));
  const failed = (error: unknown) => {
    throw known(error);
  };
  try {
    const copied = copy(from.root, to.root, { ...options, filter: wrappedFilter });
    return ObjectPrototypeIsPrototypeOf(PromisePrototype, copied)
      ? PromisePrototypeThen(copied, undefined, failed)
      : copied;
  } catch (error) {
    return failed(error);
  }
};

/** `mkdir -p a/.` creates `a`. */
internals.folderToMake = (path: string, recursive: boolean): string =>
  recursive ? StringPrototypeReplace(path, DOTS_AT_END, "") : path;
const DOTS_AT_END = new SafeRegExp(/(?<=[^/])(?:\/+\.)+\/*$/);

type Entry = { name: string; isDirectory: boolean; parentPath?: string };
declare const Deno: any;

const below = ({ name, parentPath }: Entry) =>
  core.loadExtScript("ext:deno_node/path/mod.ts").join(parentPath, name);

/** Yields the entries of a folder, each with the folder that it is in. */
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

/** Turns a rejection into the error that Node has for it. */
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

/** Reading a folder fails at the read, not at the opening. */
internals.readingFailed = (error: any, { path }: { path?: string }) =>
  path === undefined || error?.code === "EISDIR" ? asNode(error, "read") : asNode(error, "open", path);

/** System calls by the operation on a descriptor or a path. */
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
/** Operations whose errors already name the system call. */
const OTHERS = ["op_node_fs_fstat_sync", "op_node_fs_read_deferred", "op_node_fs_read_sync"];

/** Retries a failed write as a write to a terminal that an addon has opened (terminals.rs). */
function toTerminal(error: unknown, descriptor: number, data: Uint8Array): number {
  const written: number = op_terminal_write(descriptor, data);
  if (written < 0) throw error;
  return written;
}

/**
 * Writes to a terminal that other code has opened, and returns the number of bytes; -1 if it is no
 * such terminal.
 */
const writtenToTerminal = (descriptor: number, data: Uint8Array): number =>
  op_allow_foreign_descriptor(descriptor) ? op_terminal_write(descriptor, data) : -1;

type Write<T> = (descriptor: number, data: Uint8Array, position: number) => T;

/** Wraps the operations so that they work with descriptors opened by other code (foreign.rs). */
function withForeign(ops: any): any {
  const { op_node_fs_close: close, op_node_fs_write_deferred: later, op_node_fs_write_sync: now } = ops;
  const writeLater: Write<Promise<number>> = async (descriptor, data, position) => {
    const written = writtenToTerminal(descriptor, data);
    if (written >= 0) return written;
    try {
      return await later(descriptor, data, position);
    } catch (error) {
      return toTerminal(error, descriptor, data);
    }
  };
  const writeNow: Write<number> = (descriptor, data, position) => {
    const written = writtenToTerminal(descriptor, data);
    if (written >= 0) return written;
    try {
      return now(descriptor, data, position);
    } catch (error) {
      return toTerminal(error, descriptor, data);
    }
  };
  const more = ObjectCreate(ops);
  more.op_node_fs_close = (descriptor: number) => {
    op_allow_foreign_descriptor(descriptor);
    if (!op_foreign_close(descriptor)) close(descriptor);
  };
  more.op_node_fs_write_deferred = writeLater;
  more.op_node_fs_write_sync = writeNow;
  for (const name of OTHERS) {
    const op = ops[name];
    more[name] = (...args: unknown[]) => {
      op_allow_foreign_descriptor(args[0]);
      return ReflectApply(op, ops, args);
    };
  }
  return more;
}

/** Wraps operations whose errors `node:fs` passes on unchanged. */
internals.namedOps = (all: any) => {
  const ops = withForeign(all);
  const named = ObjectCreate(ops);
  /** The path among the arguments; the first argument may be a descriptor instead. */
  const pathOf = (first: unknown) => {
    if (typeof first === "string") return first;
    op_allow_foreign_descriptor(first);
    return undefined;
  };
  for (const name of ObjectKeys(SYSCALLS)) {
    const op = ops[name];
    named[name] = (...args: unknown[]) => {
      const path = pathOf(args[0]);
      return internals.named(ReflectApply(op, ops, args), SYSCALLS[name], path);
    };
  }
  for (const name of ObjectKeys(SYNC_SYSCALLS)) {
    const op = ops[name];
    named[name] = (...args: unknown[]) => {
      const path = pathOf(args[0]);
      return internals.namedSync(() => ReflectApply(op, ops, args), SYNC_SYSCALLS[name], path);
    };
  }
  return named;
};

/** Wraps `read` and `readSync`, which call the operations directly. */
internals.readingForeign = (functions: Record<string, Function>): Record<string, Function> => {
  const more: Record<string, Function> = {};
  for (const name of ["read", "readSync"]) {
    const own = functions[name];
    const { length: _, ...others } = ObjectGetOwnPropertyDescriptors(own);
    more[name] = ObjectDefineProperties((...args: unknown[]) => {
      if (typeof args[0] === "number") op_allow_foreign_descriptor(args[0]);
      return ReflectApply(own, undefined, args);
    }, { ...others, length: ObjectGetOwnPropertyDescriptor(own, "length") });
  }
  return more;
};

interface FileStat {
  size: number;
  isFile(): boolean;
  isDirectory(): boolean;
  isCharacterDevice(): boolean;
}

interface Files {
  statSync(path: string): FileStat;
  fstatSync(descriptor: number): FileStat;
  openSync(path: string, flag?: string): number;
  readSync(descriptor: number, buffer: Uint8Array): number;
  closeSync(descriptor: number): void;
  ERR_FS_FILE_TOO_LARGE: new (size: number) => Error;
}

/** The maximum number of bytes that Node reads. */
const MAX_BUFFER = 2 ** 31 - 1;
const PIECE_SIZE = 1 << 18;

/** Devices and pipes have no size and perhaps no end, so that reading them has to be interruptible. */
function isReadAtOnce(stat: () => FileStat, TooLarge: Files["ERR_FS_FILE_TOO_LARGE"]): boolean {
  let found;
  try {
    found = stat();
  } catch {
    return true; // Reading says what is wrong.
  }
  if (found.isFile() && found.size > MAX_BUFFER) throw new TooLarge(found.size);
  return found.isFile() || found.isDirectory();
}
internals.isReadAtOnce = isReadAtOnce;

function readInPieces(descriptor: number, { readSync, ERR_FS_FILE_TOO_LARGE }: Files): Uint8Array {
  let bytes = new Uint8Array(PIECE_SIZE);
  let end = 0;
  for (;;) {
    const count = readSync(descriptor, TypedArrayPrototypeSubarray(bytes, end));
    if (count === 0) return TypedArrayPrototypeSlice(bytes, 0, end);
    end += count;
    if (end > MAX_BUFFER) throw new ERR_FS_FILE_TOO_LARGE(end);
    if (end === bytes.length) {
      const larger = new Uint8Array(2 * end);
      TypedArrayPrototypeSet(larger, bytes);
      bytes = larger;
    }
  }
}

internals.readPath = (path: string, flag: string | undefined, atOnce: () => Uint8Array, files: Files): Uint8Array => {
  if (isReadAtOnce(() => files.statSync(path), files.ERR_FS_FILE_TOO_LARGE)) return atOnce();
  const descriptor = files.openSync(path, flag);
  try {
    return readInPieces(descriptor, files);
  } finally {
    files.closeSync(descriptor);
  }
};

/** Reads all of an open file. Node checks its size first, unless it is read as text. */
internals.readAll = (
  read: (descriptor: number) => Uint8Array,
  descriptor: number,
  encoding: unknown,
  files: Files,
): Uint8Array => {
  let found;
  try {
    found = files.fstatSync(descriptor);
  } catch {
    // The read reports the error.
  }
  if (found?.isCharacterDevice()) return readInPieces(descriptor, files);
  if (found?.isFile() && found.size > MAX_BUFFER) throw new files.ERR_FS_FILE_TOO_LARGE(found.size);
  try {
    return read(descriptor);
  } catch (error: any) {
    const isText = encoding === "utf8" || encoding === "utf-8";
    const isOpen = isText || error.code !== "EBADF" || op_stat_descriptor(descriptor, false, new Uint8Array(0));
    throw isOpen ? error : asNode(new Error("Bad file descriptor (os error 9)"), "fstat");
  }
};

// Times that are properties of a `Stats` object are copied with it. The constructor sets all of
// them but this one, which is made on first use.
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
