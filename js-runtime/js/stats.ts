// What `stat` and its like tell, as Node has it: Deno's have times in whole milliseconds,
// and whoever compares them takes a file that was written twice in one for the same. The
// texts of `snapshot/corrections` call it; what is in the snapshot is replaced here.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { op_fs_utime_async, op_fs_utime_sync, op_stat, op_stat_descriptor, op_stat_now } from "ext:core/ops";
// @ts-ignore: provided by the runtime
import { BigIntStats, getValidatedFd, getValidatedPathToString, Stats } from "ext:deno_node/internal/fs/utils.mjs";

const {
  BigInt64Array,
  MathFloor,
  MathTrunc,
  Number,
  ObjectAssign,
  ObjectPrototypeIsPrototypeOf,
  Promise,
  PromisePrototypeThen,
  TypedArrayPrototypeGetBuffer,
  Uint8Array,
} = primordials;

const { makeCallback } = core.loadExtScript("ext:deno_node/_fs/_fs_common.ts");
const { denoErrorToNodeError } = core.loadExtScript("ext:deno_node/internal/errors.ts");

const files = core.loadExtScript("ext:deno_node/_fs/_fs_fstat.ts");
/** Knows what is open and no file of the system's, too. */
const statOfAny: (fd: number, options: Options) => object = files.fstatSync;

/** As `Fields` of `ext/src/stat.rs`. */
type Fields = BigInt64Array;
type Options = { bigint?: boolean; throwIfNoEntry?: boolean } | null | undefined;
type Callback = (error: unknown, stats?: unknown) => void;
declare const Deno: any;

const LENGTH = 18;
/** Of what is asked for at once; nothing runs between the writing and the reading of it. */
const fields: Fields = new BigInt64Array(LENGTH);
const bytes = new Uint8Array(TypedArrayPrototypeGetBuffer(fields));

/** Read at once: the next call writes into the same. */
function statNow(path: string, follow: boolean): Fields {
  op_stat_now(path, follow, bytes);
  return fields;
}

const stat = (path: string, follow: boolean): Promise<Fields> =>
  PromisePrototypeThen(
    op_stat(path, follow),
    (bytes: Uint8Array) => new BigInt64Array(TypedArrayPrototypeGetBuffer(bytes)),
  );

const nanoseconds = (fields: Fields, at: number): bigint => fields[at] * 1_000_000_000n + fields[at + 1];
const milliseconds = (fields: Fields, at: number): number =>
  Number(fields[at]) * 1000 + Number(fields[at + 1]) / 1_000_000;

function statsOf(f: Fields, bigint: boolean | undefined): object {
  const [make, number, time] = bigint
    ? [BigIntStats, (field: bigint) => field, nanoseconds]
    : [Stats, Number, milliseconds];
  return new make(
    number(f[0]),
    number(f[1]),
    number(f[2]),
    number(f[3]),
    number(f[4]),
    number(f[5]),
    number(f[6]),
    number(f[7]),
    number(f[8]),
    number(f[9]),
    time(f, 10),
    time(f, 12),
    time(f, 14),
    time(f, 16),
  );
}

const isNoEntry = (options: Options, error: unknown): boolean =>
  options?.throwIfNoEntry === false && ObjectPrototypeIsPrototypeOf(Deno.errors.NotFound.prototype, error);

function lstat(path: unknown, options: Options | Callback, callback?: Callback): void {
  const [asked, told] = typeof options === "function" ? [undefined, options] : [options, callback];
  const done: Callback = makeCallback(told);
  const found = getValidatedPathToString(path);
  PromisePrototypeThen(
    stat(found, false),
    (fields: Fields) => done(null, statsOf(fields, asked?.bigint)),
    (error: unknown) => {
      if (isNoEntry(asked, error)) done(null, undefined);
      else done(denoErrorToNodeError(error, { syscall: "lstat", path: found }));
    },
  );
}

function lstatSync(path: unknown, options: Options): object | undefined {
  const found = getValidatedPathToString(path);
  try {
    return statsOf(statNow(found, false), options?.bigint);
  } catch (error) {
    if (isNoEntry(options, error)) return undefined;
    throw denoErrorToNodeError(error, { syscall: "lstat", path: found });
  }
}

function fstatSync(fd: unknown, options: Options): object {
  const descriptor: number = getValidatedFd(fd);
  try {
    if (op_stat_descriptor(descriptor, bytes)) return statsOf(fields, options?.bigint);
  } catch (error) {
    throw denoErrorToNodeError(error, { syscall: "fstat" });
  }
  return statOfAny(descriptor, options);
}

function fstat(fd: unknown, options: Options | Callback, callback?: Callback): void {
  const descriptor: number = getValidatedFd(fd);
  const [asked, told] = typeof options === "function" ? [undefined, options] : [options, callback];
  const done: Callback = makeCallback(told);
  const asking = new Promise((resolve: (stats: object) => void) => resolve(fstatSync(descriptor, asked)));
  PromisePrototypeThen(asking, (stats: object) => done(null, stats), (error: unknown) => done(error));
}

const promised = (ask: (subject: unknown, options: Options, callback: Callback) => void) =>
  (subject: unknown, options: Options) =>
    new Promise((resolve: (stats: unknown) => void, reject: (error: unknown) => void) => {
      ask(subject, options, (error, stats) => error ? reject(error) : resolve(stats));
    });

ObjectAssign(core.loadExtScript("ext:deno_node/_fs/_fs_lstat.ts"), {
  lstat,
  lstatPromise: promised(lstat),
  lstatSync,
});
ObjectAssign(files, { fstat, fstatPromise: promised(fstat), fstatSync });

/** Seconds, and the nanoseconds after them. */
const parts = (time: number): [number, number] => {
  const seconds = MathFloor(time);
  return [seconds, MathTrunc((time - seconds) * 1e9)];
};

/** In seconds since 1970; Deno's drop what is less than a millisecond. */
const utime = (path: string, atime: number, mtime: number): Promise<void> => {
  const [accessed, modified] = [parts(atime), parts(mtime)];
  return op_fs_utime_async(path, accessed[0], accessed[1], modified[0], modified[1]);
};
const utimeNow = (path: string, atime: number, mtime: number): void => {
  const [accessed, modified] = [parts(atime), parts(mtime)];
  op_fs_utime_sync(path, accessed[0], accessed[1], modified[0], modified[1]);
};

ObjectAssign(internals, { stat, statNow, statsOf, utime, utimeNow });
