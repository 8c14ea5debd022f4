// Gives `stat` and related functions the precision of Node. Deno's times are whole milliseconds, so
// that a file written twice within one looks unchanged. Code in `snapshot/corrections` calls these
// functions; modules that are in the snapshot are replaced here.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
import {
  op_allow_foreign_descriptor,
  op_fs_utime_async,
  op_fs_utime_sync,
  op_is_script,
  op_stat,
  op_stat_descriptor,
  op_stat_now,
  // @ts-ignore: provided by the runtime
} from "ext:core/ops";
// @ts-ignore: provided by the runtime
import { BigIntStats, getValidatedFd, getValidatedPathToString, Stats } from "ext:deno_node/internal/fs/utils.mjs";

const {
  BigInt64Array,
  Error,
  Float64Array,
  MathFloor,
  MathTrunc,
  ObjectAssign,
  Promise,
  PromisePrototypeThen,
  TypedArrayPrototypeGetBuffer,
  Uint8Array,
} = primordials;

const { makeCallback } = core.loadExtScript("ext:deno_node/_fs/_fs_common.ts");
const { denoErrorToNodeError } = core.loadExtScript("ext:deno_node/internal/errors.ts");

const files = core.loadExtScript("ext:deno_node/_fs/_fs_fstat.ts");
/** Also covers descriptors that are no files of the system. */
const statOfAny: (fd: number, options: Options) => object = files.fstatSync;

type Options = { bigint?: boolean; throwIfNoEntry?: boolean } | null | undefined;
type Callback = (error: unknown, stats?: unknown) => void;

const LENGTH = 18;
/** Buffers for synchronous calls. Nothing runs between writing and reading one. */
const plain = new Float64Array(LENGTH);
const whole = new BigInt64Array(LENGTH);
const bytesOfPlain = new Uint8Array(TypedArrayPrototypeGetBuffer(plain));
const bytesOfWhole = new Uint8Array(TypedArrayPrototypeGetBuffer(whole));

const [ENOENT, ENOTDIR] = [2, 20];

/** A path that leads through a file does not exist, either. */
const isMissing = (error: number): boolean => error === ENOENT || error === ENOTDIR;

const nanoseconds = (fields: BigInt64Array, at: number): bigint => fields[at] * 1_000_000_000n + fields[at + 1];
const milliseconds = (fields: Float64Array, at: number): number => fields[at] * 1000 + fields[at + 1] / 1_000_000;

const statsOfPlain = (f: Float64Array): object =>
  new Stats(
    f[0],
    f[1],
    f[2],
    f[3],
    f[4],
    f[5],
    f[6],
    f[7],
    f[8],
    f[9],
    milliseconds(f, 10),
    milliseconds(f, 12),
    milliseconds(f, 14),
    milliseconds(f, 16),
  );

const statsOfWhole = (f: BigInt64Array): object =>
  new BigIntStats(
    f[0],
    f[1],
    f[2],
    f[3],
    f[4],
    f[5],
    f[6],
    f[7],
    f[8],
    f[9],
    nanoseconds(f, 10),
    nanoseconds(f, 12),
    nanoseconds(f, 14),
    nanoseconds(f, 16),
  );

/** Implements the synchronous calls. `missing` tells which errors mean that the file does not exist. */
function statNow(pathArgument: unknown, options: Options, follow: boolean, missing: (error: number) => boolean) {
  const path: string = getValidatedPathToString(pathArgument);
  const bigint = Boolean(options?.bigint);
  const error: number = op_stat_now(path, follow, bigint, bigint ? bytesOfWhole : bytesOfPlain);
  if (error === 0) return bigint ? statsOfWhole(whole) : statsOfPlain(plain);
  if (options?.throwIfNoEntry === false && missing(error)) return undefined;
  throw denoErrorToNodeError(new Error(`(os error ${error})`), { syscall: follow ? "stat" : "lstat", path });
}

const statSync = (path: unknown, options: Options) => statNow(path, options, true, isMissing);

const lstatSync = (path: unknown, options: Options) => statNow(path, options, false, (error) => error === ENOENT);

/** Implements the asynchronous calls. For a missing file `lstat` always fails. */
function statAsync(syscall: "stat" | "lstat", pathArgument: unknown, options: Options | Callback, callback?: Callback): void {
  const [settings, listener] = typeof options === "function" ? [undefined, options] : [options, callback];
  const done: Callback = makeCallback(listener);
  const path: string = getValidatedPathToString(pathArgument);
  const bigint = Boolean(settings?.bigint);
  PromisePrototypeThen(
    op_stat(path, syscall === "stat", bigint),
    (bytes: Uint8Array) => {
      const buffer = TypedArrayPrototypeGetBuffer(bytes);
      done(null, bigint ? statsOfWhole(new BigInt64Array(buffer)) : statsOfPlain(new Float64Array(buffer)));
    },
    (thrown: unknown) => {
      const error = denoErrorToNodeError(thrown, { syscall, path });
      if (syscall === "stat" && settings?.throwIfNoEntry === false && isMissing(-error.errno)) done(null, undefined);
      else done(error);
    },
  );
}

const stat = (path: unknown, options: Options | Callback, callback?: Callback): void =>
  statAsync("stat", path, options, callback);
// The function has the name and length of Node's.
function lstat(path: unknown, options: Options | Callback, callback?: Callback): void {
  statAsync("lstat", path, options, callback);
}

function fstatSync(fd: unknown, options: Options): object {
  const descriptor: number = getValidatedFd(fd);
  op_allow_foreign_descriptor(descriptor);
  const bigint = Boolean(options?.bigint);
  try {
    if (op_stat_descriptor(descriptor, bigint, bigint ? bytesOfWhole : bytesOfPlain)) {
      return bigint ? statsOfWhole(whole) : statsOfPlain(plain);
    }
  } catch (error) {
    throw denoErrorToNodeError(error, { syscall: "fstat" });
  }
  return statOfAny(descriptor, options);
}

function fstat(fd: unknown, options: Options | Callback, callback?: Callback): void {
  const descriptor: number = getValidatedFd(fd);
  const [settings, listener] = typeof options === "function" ? [undefined, options] : [options, callback];
  const done: Callback = makeCallback(listener);
  const asking = new Promise((resolve: (stats: object) => void) => resolve(fstatSync(descriptor, settings)));
  PromisePrototypeThen(asking, (stats: object) => done(null, stats), (error: unknown) => done(error));
}

const promised = (statFunction: (subject: unknown, options: Options, callback: Callback) => void) =>
  (subject: unknown, options: Options) =>
    new Promise((resolve: (stats: unknown) => void, reject: (error: unknown) => void) => {
      statFunction(subject, options, (error, stats) => error ? reject(error) : resolve(stats));
    });

ObjectAssign(core.loadExtScript("ext:deno_node/_fs/_fs_lstat.ts"), {
  lstat,
  lstatPromise: promised(lstat),
  lstatSync,
});
ObjectAssign(files, { fstat, fstatPromise: promised(fstat), fstatSync });

/** Splits a time into seconds and nanoseconds. */
const parts = (time: number): [number, number] => {
  const seconds = MathFloor(time);
  return [seconds, MathTrunc((time - seconds) * 1e9)];
};

/** Times are in seconds since 1970. Deno's version drops everything below a millisecond. */
const utime = (path: string, atime: number, mtime: number): Promise<void> => {
  const [accessed, modified] = [parts(atime), parts(mtime)];
  return op_fs_utime_async(path, accessed[0], accessed[1], modified[0], modified[1]);
};
const utimeNow = (path: string, atime: number, mtime: number): void => {
  const [accessed, modified] = [parts(atime), parts(mtime)];
  op_fs_utime_sync(path, accessed[0], accessed[1], modified[0], modified[1]);
};

// @ts-ignore: provided by the runtime
declare const Deno: any;

/** `process.argv[1]` is a path of this program without a file (`ext/src/program.rs`). */
const realPath = async (path: string): Promise<string> => op_is_script(path) ? path : await Deno.realPath(path);
const realPathNow = (path: string): string => op_is_script(path) ? path : Deno.realPathSync(path);

ObjectAssign(internals, { parts, realPath, realPathNow, stat, statSync, utime, utimeNow });
