//! Corrections of `node:fs`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // `fs.watch` of a missing file throws, as in Node; an event would come too late for `try`.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "openError = makeWatchNodeError(e);",
        replacement: "throw Object.assign(makeWatchNodeError(e), { filename: watchPath });",
    },
    // Path of the program's script, which does not exist as a file (`js/node/fs-stat.ts`).
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "Deno.realPath(validatedPath)",
        replacement: "__bootstrap.internals.realPath(validatedPath)",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "Deno.realPathSync(validatedPath)",
        replacement: "__bootstrap.internals.realPathNow(validatedPath)",
    },
    // Records which extension opened a file, to find the one that holds too many.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "openPromise = op_node_open(path, flags, mode);",
        replacement: "openPromise = PromisePrototypeThen(op_node_open(path, flags, mode), \
                      __bootstrap.internals.opened);",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "return op_node_open_sync(path, flags, mode);",
        replacement: "const fd = op_node_open_sync(path, flags, mode); \
                      return __bootstrap.internals.opened?.(fd) ?? fd;",
    },
    // A file gets its mode when it is created, less the umask, and keeps it afterwards:
    // `appendFileSync` made files that all users could write.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "async function _writeFileGetRid(pathOrRid, flag = \"w\") {",
        replacement: "async function _writeFileGetRid(pathOrRid, flag = \"w\", mode) {",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "return await op_node_open(pathOrRid, stringToFlags(flag), 0o666);",
        replacement: "return await op_node_open(pathOrRid, stringToFlags(flag), \
                      parseFileMode(mode, \"mode\", 0o666));",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "function _writeFileGetRidSync(pathOrRid, flag = \"w\") {",
        replacement: "function _writeFileGetRidSync(pathOrRid, flag = \"w\", mode) {",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "return op_node_open_sync(pathOrRid, stringToFlags(flag), 0o666);",
        replacement: "return op_node_open_sync(pathOrRid, stringToFlags(flag), \
                      parseFileMode(mode, \"mode\", 0o666));",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "_writeFileGetRid(pathOrRid, flag);",
        replacement: "_writeFileGetRid(pathOrRid, flag, mode);",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "_writeFileGetRidSync(pathOrRid, flag);",
        replacement: "_writeFileGetRidSync(pathOrRid, flag, mode);",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "if (!isRid && mode) {",
        replacement: "if (false) {",
    },
    // A text is written at the position that the caller passes.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "return innerWriteSync(fd, buffer, 0, buffer.length, position);",
        replacement: "return innerWriteSync(fd, buffer, 0, buffer.length, \
                      typeof offset === \"number\" ? offset : null);",
    },
    // `unlink` fails for a folder, empty or not.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "function unlink(path, callback) {",
        replacement: "const ISDIR = \"Is a directory (os error 21)\"; \
                      const removeNoFolder = async (path) => { \
                      if ((await Deno.lstat(path)).isDirectory) throw new Error(ISDIR); \
                      await Deno.remove(path); }; \
                      const removeNoFolderSync = (path) => { \
                      if (Deno.lstatSync(path).isDirectory) throw new Error(ISDIR); \
                      Deno.removeSync(path); }; \
                      function unlink(path, callback) {",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "PromisePrototypeThen(Deno.remove(path), ()=>callback(), (err)=>callback(denoErrorToNodeError(err, {\n        syscall: \"unlink\",",
        replacement: "PromisePrototypeThen(removeNoFolder(path), ()=>callback(), (err)=>callback(denoErrorToNodeError(err, {\n        syscall: \"unlink\",",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "Deno.removeSync(path);\n    } catch (err) {\n      throw denoErrorToNodeError(err, {\n        syscall: \"unlink\",",
        replacement: "removeNoFolderSync(path);\n    } catch (err) {\n      throw denoErrorToNodeError(err, {\n        syscall: \"unlink\",",
    },
    // These calls failed with errors of Deno's own.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "Deno.symlinkSync(target, path, {\n      type: type ?? \"file\"\n    });",
        replacement: "try { Deno.symlinkSync(target, path, { type: type ?? \"file\" }); } \
                      catch (err) { throw denoErrorToNodeError(err, { syscall: \"symlink\", \
                      path: target, dest: path }); }",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "Deno.utimeSync(path, atime, mtime);",
        replacement: "try { __bootstrap.internals.utimeNow(path, atime, mtime); } catch (err) { \
                      throw denoErrorToNodeError(err, { syscall: \"utime\", path }); }",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "PromisePrototypeThen(Deno.utime(path, atime, mtime), ()=>callback(null), callback);",
        replacement: "PromisePrototypeThen(__bootstrap.internals.utime(path, atime, mtime), ()=>callback(null), \
                      (err) => callback(denoErrorToNodeError(err, { syscall: \"utime\", path })));",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_copy.ts",
        text: "export function copyFileSync(src, dest, mode) {",
        replacement: "function known(err, path, dest) { return core.loadExtScript( \
                      \"ext:deno_node/internal/errors.ts\").denoErrorToNodeError(err, \
                      { syscall: \"copyfile\", path, dest }); } \
                      function copySync(from, to) { try { Deno.copyFileSync(from, to); } \
                      catch (err) { throw known(err, from, to); } } \
                      export function copyFileSync(src, dest, mode) {",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_copy.ts",
        text: "throw new Error(`A file exists at the destination: ${destStr}`);",
        replacement: "throw known(new Error(\"File exists (os error 17)\"), srcStr, destStr);",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_copy.ts",
        text: "Deno.copyFileSync(srcStr, destStr);",
        replacement: "copySync(srcStr, destStr);",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_copy.ts",
        text: "Deno.copyFile(srcStr, destStr)",
        replacement: "Deno.copyFile(srcStr, destStr).catch((err) => \
                      { throw known(err, srcStr, destStr); })",
    },
    // Copied links keep their targets (`js/node/fs.ts`).
    Correction {
        specifier: "ext:deno_node/_fs/_fs_cp.ts",
        text: "cpSyncFn(srcPath, destPath, options);",
        replacement: "__bootstrap.internals.copyAbsolutely(cpSyncFn, srcPath, destPath, options);",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_cp.ts",
        text: "cpFn(srcPath, destPath, options)",
        replacement: "__bootstrap.internals.copyAbsolutely(cpFn, srcPath, destPath, options)",
    },
    // A call that is aborted before it starts leaves the file unchanged, and fails with Node's
    // error.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "const fd = await _writeFileGetRid(",
        replacement: "_checkAborted(signal); const fd = await _writeFileGetRid(",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "throw new AbortError();",
        replacement: "throw new AbortError(undefined, { cause: signal.reason });",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "options.signal.throwIfAborted();",
        replacement: "readFileCheckAborted(options.signal);",
    },
    Correction {
        specifier: "ext:deno_node/internal/fs/promises.ts",
        text: "opts.signal.throwIfAborted();",
        replacement: "{ const { AbortError } = \
                      core.loadExtScript(\"ext:deno_node/internal/errors.ts\"); throw new \
                      AbortError(undefined, { cause: opts.signal.reason }); }",
    },
    // An error of the file system is made without the stack of its caller, so it names no position
    // in the extension. Node adds the stack of the caller.
    Correction {
        specifier: "ext:deno_node/internal/fs/promises.ts",
        text: "export default promises;",
        replacement: "for (const name of Object.keys(promises)) { \
                      if (name === \"constants\" || name === \"watch\" || name === \"glob\") continue; \
                      const call = promises[name]; \
                      const placed = { async [name](...args) { \
                      try { return await call.apply(this, args); } catch (error) { \
                      if (typeof error?.errno === \"number\") Error.captureStackTrace(error); \
                      throw error; } } }[name]; \
                      Object.defineProperty(placed, \"length\", { value: call.length, configurable: true }); \
                      promises[name] = placed; } export default promises;",
    },
    // Options of `opendir` are optional, and `recursive` descends (`js/node/fs.ts`).
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "const { bufferSize } = getOptions(options, {",
        replacement: "const { bufferSize = 32, recursive } = getOptions(options, {",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "dir = new Dir(path);",
        replacement: "dir = new Dir(path, recursive);",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "return new Dir(path);",
        replacement: "return new Dir(path, recursive);",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "err = denoErrorToNodeError(error, {\n        syscall: \"opendir\"\n      });",
        replacement: "err = denoErrorToNodeError(error, { syscall: \"opendir\", path });",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_dir.ts",
        text: "constructor(path){",
        replacement: "#recursive; constructor(path, recursive){ this.#recursive = \
                      recursive;",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_dir.ts",
        text: "Deno.readDir(this.path)[SymbolAsyncIterator]()",
        replacement: "internals.entries(this.path, this.#recursive)",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_dir.ts",
        text: "Deno.readDirSync(this.path)[SymbolIterator]()",
        replacement: "internals.entriesSync(this.path, this.#recursive)",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_dir.ts",
        text: "ArrayIteratorPrototypeNext(this.#syncIterator)",
        replacement: "this.#syncIterator.next()",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_dir.ts",
        text: "direntFromDeno(iteratorResult.value, this.#dirPath)",
        replacement: "direntFromDeno(iteratorResult.value)",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_dir.ts",
        text: "import { core, primordials } from \"ext:core/mod.js\";",
        replacement: "import { core, internals, primordials } from \"ext:core/mod.js\";",
    },
    // Errors of Deno's own, and invalid times (`js/node/fs.ts`).
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "} = core.ops;",
        replacement: "} = __bootstrap.internals.namedOps(core.ops);",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "Deno.chown(path, uid, gid)",
        replacement: "__bootstrap.internals.named(Deno.chown(path, uid, gid), \"chown\", \
                      path)",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "Deno.chownSync(path, uid, gid)",
        replacement: "__bootstrap.internals.namedSync(()=>Deno.chownSync(path, uid, gid), \
                      \"chown\", path)",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "Deno.symlink(target, path, {\n      type: linkType ?? \"file\"\n    })",
        replacement: "__bootstrap.internals.named(Deno.symlink(target, path, { type: \
                      linkType ?? \"file\" }), \"symlink\", target, path)",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "function getValidTime(time, name) {",
        replacement: "function getValidTime(time, name) { return toUnixTimestamp(time);",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "function _getValidTime(time, name) {",
        replacement: "function _getValidTime(time, name) { return toUnixTimestamp(time, name);",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_lutimes.ts",
        text: "import { core, primordials } from \"ext:core/mod.js\";",
        replacement: "import { core, internals, primordials } from \"ext:core/mod.js\";",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_lutimes.ts",
        text: "op_node_lutimes(path, atimeSecs, atimeNanos, mtimeSecs, mtimeNanos)",
        replacement: "internals.named(op_node_lutimes(path, atimeSecs, atimeNanos, \
                      mtimeSecs, mtimeNanos), \"lutime\", path)",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_lutimes.ts",
        text: "op_node_lutimes_sync(path, atimeSecs, atimeNanos, mtimeSecs, mtimeNanos)",
        replacement: "internals.namedSync(()=>op_node_lutimes_sync(path, atimeSecs, \
                      atimeNanos, mtimeSecs, mtimeNanos), \"lutime\", path)",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_lutimes.ts",
        text: "function getValidUnixTime(value, name) {",
        replacement: "function getValidUnixTime(value, name) { \
                      return internals.parts(toUnixTimestamp(value));",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_copy.ts",
        text: "function known(err, path, dest) {",
        replacement: "function known(err, path, dest) { if \
                      (primordials.StringPrototypeIncludes(err.message, \"neither a regular \
                      file\") && Deno.statSync(path).isDirectory) err = new Error(\"Is a \
                      directory (os error 21)\");",
    },
    // `readFile` reports whether opening failed, and requires a callback.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "cb && cb(denoErrorToNodeError(err, {",
        replacement: "cb && cb(__bootstrap.internals.readingFailed(err, {",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "data = op_fs_read_file_sync(path, flagsNumber);\n      } catch (err) {\n        throw denoErrorToNodeError(err, {",
        replacement: "data = op_fs_read_file_sync(path, flagsNumber);\n      } catch (err) \
                      {\n        throw __bootstrap.internals.readingFailed(err, {",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "const options = getOptions(optOrCallback, readFileDefaultOptions);",
        replacement: "validateFunction(cb, \"cb\"); const options = \
                      getOptions(optOrCallback, readFileDefaultOptions);",
    },
    // Descriptors that other code has opened (`js/node/fs.ts`).
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "const { read, readSync } = core.createLazyLoader(\"ext:deno_node/_fs/_fs_read.ts\")();",
        replacement: "const { read, readSync } = __bootstrap.internals.readingForeign( \
                      core.createLazyLoader(\"ext:deno_node/_fs/_fs_read.ts\")());",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "data = op_node_fs_read_file_sync(path);",
        replacement: "data = __bootstrap.internals.readAll(op_node_fs_read_file_sync, path, \
                      options?.encoding, { fstatSync, readSync, ERR_FS_FILE_TOO_LARGE });",
    },
    // A file of 2 GB and more is an error, as in Node, and so is one without an end.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "data = op_fs_read_file_sync(path, flagsNumber);",
        replacement: "data = __bootstrap.internals.readPath(path, options?.flag, \
                      () => op_fs_read_file_sync(path, flagsNumber), \
                      { statSync, openSync, readSync, closeSync, ERR_FS_FILE_TOO_LARGE });",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "const data = await op_fs_read_file_async(path, cancelRid, flagsNumber);",
        replacement: "if (!__bootstrap.internals.isReadAtOnce(() => statSync(path), \
                      ERR_FS_FILE_TOO_LARGE)) { \
                      const fd = await op_node_open(path, flagsNumber, 0o666); \
                      try { return await readFileFromFd(fd, options); } \
                      finally { closeSync(fd); } } \
                      const data = await op_fs_read_file_async(path, cancelRid, flagsNumber);",
    },
    // `mkdir` returns the first created folder as it was named.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "let cursor = resolve(path);",
        replacement: "let cursor = `${path}`.replace(/(?<=.)(?:\\/+\\.?)+$/, \"\");",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "const parent = resolve(cursor, \"..\");",
        replacement: "const parent = pathModule.dirname(cursor);",
    },
    // A trailing dot is not a folder.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "Deno.mkdir(path, {",
        replacement: "Deno.mkdir(__bootstrap.internals.folderToMake(path, recursive), {",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "Deno.mkdirSync(path, {",
        replacement: "Deno.mkdirSync(__bootstrap.internals.folderToMake(path, recursive), {",
    },
    // Names that Node has up to version 24, and packages use; see `js/node/snapshot-fixes.ts`.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "  constants,\n",
        replacement: "  constants, F_OK: constants.F_OK, R_OK: constants.R_OK, W_OK: constants.W_OK, \
                      X_OK: constants.X_OK,\n",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "if (options?.recursive !== undefined) {",
        replacement: "if (options?.recursive) { return typeof callback == \"function\" ? \
                      rm(path, { recursive: true }, callback) : rmSync(path, { recursive: true }); } \
                      if (false) {",
    },
    // Recursive watches have their own watcher (`js/node/fs-watch.ts`).
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "iterator = Deno.watchFs(watchPath, {",
        replacement: "iterator = recursive ? __bootstrap.internals.watchTree(watchPath) : \
                      Deno.watchFs(watchPath, {",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "const watcher = Deno.watchFs(watchPath, {",
        replacement: "const watcher = recursive ? __bootstrap.internals.watchTree(watchPath) : \
                      Deno.watchFs(watchPath, {",
    },
    // Modules are loaded lazily (`js/node/lazy-node.ts`). Streams are made by the class that is
    // exported.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "_createReadStream = lazyInternalStreams().createReadStream",
        replacement: "_createReadStream = __bootstrap.internals.lazyFunction(\"createReadStream\", \
                      () => (fsExports.ReadStream.length, lazyInternalStreams().createReadStream))",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "_createWriteStream = lazyInternalStreams().createWriteStream",
        replacement: "_createWriteStream = __bootstrap.internals.lazyFunction(\"createWriteStream\", \
                      () => (fsExports.WriteStream.length, lazyInternalStreams().createWriteStream))",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "_ReadStream = lazyInternalStreams().ReadStream",
        replacement: "_ReadStream = __bootstrap.internals.lazyFunction(\"ReadStream\", \
                      () => lazyInternalStreams().ReadStream)",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "_WriteStream = lazyInternalStreams().WriteStream",
        replacement: "_WriteStream = __bootstrap.internals.lazyFunction(\"WriteStream\", \
                      () => lazyInternalStreams().WriteStream)",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "return lazyUtf8Stream().default;",
        replacement: "return __bootstrap.internals.Utf8Stream ??= \
                      __bootstrap.internals.lazyFunction(\"Utf8Stream\", \
                      () => lazyUtf8Stream().default);",
    },
    // Times have nanoseconds (`js/node/fs-stat.ts`).
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "function stat(path, options = defaultStatOptions, callback) {",
        replacement: "function stat(path, options = defaultStatOptions, callback) { \
                      return __bootstrap.internals.stat(path, options, callback);",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "function statSync(path, options = defaultStatSyncOptions) {",
        replacement: "function statSync(path, options = defaultStatSyncOptions) { \
                      return __bootstrap.internals.statSync(path, options);",
    },
    // Folders are listed as in Node (`js/node/fs-readdir.ts`).
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "const { readdir, readdirSync } = core.createLazyLoader(\"ext:deno_node/_fs/_fs_readdir.ts\")();",
        replacement: "const readdir = function (path, options, callback) { \
                      __bootstrap.internals.folders.readdir(path, options, callback); }, \
                      readdirSync = function (path, options) { \
                      return __bootstrap.internals.folders.readdirSync(path, options); };",
    },
    Correction {
        specifier: "ext:deno_node/internal/fs/promises.ts",
        text: "import { readdirPromise } from \"ext:deno_node/_fs/_fs_readdir.ts\";",
        replacement: "import { internals } from \"ext:core/mod.js\"; \
                      const readdirPromise = (path, options) => \
                      internals.folders.readdirPromise(path, options);",
    },
    // Names that Node has up to version 24, and packages use; see `js/node/snapshot-fixes.ts`.
    Correction {
        specifier: "node:fs",
        text: "export const constants = mod.constants;",
        replacement: "export const constants = mod.constants; \
                      export const { F_OK, R_OK, W_OK, X_OK } = mod;",
    },
];
