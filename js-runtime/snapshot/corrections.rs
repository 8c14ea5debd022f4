//! Where Deno's Node layer does not do what Node does, and no hook of it lets us: a
//! line of its text is another one in the program.

struct Correction {
    specifier: &'static str,
    text: &'static str,
    replacement: &'static str,
}

const CORRECTIONS: &[Correction] = &[
    // Node's `fs.watch` of what is not there throws; an event comes too late for `try`.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "openError = makeWatchNodeError(e);",
        replacement: "throw Object.assign(makeWatchNodeError(e), { filename: watchPath });",
    },
    // `new Worker(file, { stdout: true })` gets what `console` prints, too.
    Correction {
        specifier: "ext:deno_node/worker_threads.ts",
        text: "hasStdin: !!options?.stdin,",
        replacement: "hasStdin: !!options?.stdin, hasStdout: !!options?.stdout, \
                      hasStderr: !!options?.stderr,",
    },
    Correction {
        specifier: "ext:deno_node/worker_threads.ts",
        text: "const origStdoutWrite = FunctionPrototypeBind(",
        replacement: "if (metadata.hasStdout || metadata.hasStderr) { \
                      const { Console } = core.loadExtScript(\"ext:deno_web/01_console.js\"); \
                      const own = new Console((text, level) => { const isError = level > 1; \
                      if (!(isError ? metadata.hasStderr : metadata.hasStdout)) \
                      return core.print(text, isError); \
                      parentPort.postMessage({ type: isError ? \"WORKER_STDERR\" : \
                      \"WORKER_STDOUT\", data: text }); }); \
                      for (const name of Object.keys(own)) globalThis.console[name] = own[name]; } \
                      const origStdoutWrite = FunctionPrototypeBind(",
    },
    // See `js/promise-hooks.ts`.
    Correction {
        specifier: "ext:deno_node/v8.ts",
        text: "core.setPromiseHooks(",
        replacement: "__bootstrap.internals.promiseHooks(",
    },
    Correction {
        specifier: "ext:deno_node/vm.js",
        text: "    contextObject,\n    importModuleDynamically,\n  );\n  return contextObject;",
        replacement: "    contextObject,\n    importModuleDynamically,\n  );\n  \
                      __bootstrap.internals.contextMade(contextObject, (object) => \
                      new Script(\"Object\").runInContext(object));\n  \
                      return contextObject;",
    },
    // A worker that is ended says so when it has, not while it is told to.
    Correction {
        specifier: "ext:deno_node/worker_threads.ts",
        text: "this.emit(\"exit\", 1);",
        replacement: "",
    },
    Correction {
        specifier: "ext:deno_node/worker_threads.ts",
        text: "return PromiseResolve(1);",
        replacement: "const later = \
                      core.loadExtScript(\"ext:deno_web/02_timers.js\").setTimeout; \
                      return new Promise((done) => later(() => later(() => { \
                      this.emit(\"exit\", 1); done(1); }, 1), 1));",
    },
    // What ends a worker and nobody listens for is an uncaught exception of its owner.
    Correction {
        specifier: "ext:deno_node/worker_threads.ts",
        text: "if (this.listenerCount(\"error\") > 0) {",
        replacement: "if (this.listenerCount(\"error\") === 0) { \
                      const unheard = new Error(data.errorMessage ?? data.message); \
                      unheard.name = data.name ?? \"Error\"; \
                      unheard.stack = `${unheard.name}: ${unheard.message}\\n    in a worker`; \
                      Promise.reject(unheard); } else {",
    },
    // The last messages of a forked child come before its end, those, too, that are read
    // and wait for their turn. A grandchild may keep the channel open.
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "this.emit(\"exit\", this.exitCode, this.signalCode);",
        replacement: "if (typeof pipeRid == \"number\") { if (this.connected) \
                      await new Promise((done) => { this.once(\"disconnect\", done); \
                      setTimeout(done, 200); }); \
                      await new Promise((done) => nextTick(done)); } \
                      this.emit(\"exit\", this.exitCode, this.signalCode);",
    },
    // Whose timer it was that ran or threw: what is between two of them, and what is told
    // of an exception, is not in their context.
    Correction {
        specifier: "ext:deno_node/internal/timers.mjs",
        text: "function invokeCallback() {",
        replacement: "function invokeCallback() { __bootstrap.internals.ran?.(asyncContext); \
                      try { return invokeUnwatched(); } catch (error) { __bootstrap.internals.thrown?.(error); throw error; } } \
                      function invokeUnwatched() {",
    },
    Correction {
        specifier: "ext:deno_node/internal/timers.mjs",
        text: "return ReflectApply(unboundCallback, self, argv);",
        replacement: "__bootstrap.internals.ran?.(asyncContext); \
                      try { return ReflectApply(unboundCallback, self, argv); } catch (error) \
                      { __bootstrap.internals.thrown?.(error); throw error; }",
    },
    // What is refused says why; what is not there would be "not a function".
    Correction {
        specifier: "node:process",
        text: "process.setuid = setuid;",
        replacement: "process.setuid = setuid; for (const name of [\"setgroups\", \"initgroups\"]) \
                      process[name] = () => internals.setGroups(name);",
    },
    // Who opened which file: whoever holds too many is to be named.
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
    // Whose code it is that cannot be interrupted.
    Correction {
        specifier: "ext:deno_process/40_process.js",
        text: "const result = op_spawn_sync(",
        replacement: "internals.beforeNative?.(); const result = op_spawn_sync(",
    },
    // A file gets its mode when it is made, less what the umask takes, and keeps the one
    // that it has: `appendFileSync` made files that anybody could write.
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
    // A text is written where it is to be.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "return innerWriteSync(fd, buffer, 0, buffer.length, position);",
        replacement: "return innerWriteSync(fd, buffer, 0, buffer.length, \
                      typeof offset === \"number\" ? offset : null);",
    },
    // A folder is not unlinked, empty or not.
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
    // These failed with errors of Deno's own.
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
        replacement: "try { Deno.utimeSync(path, atime, mtime); } catch (err) { \
                      throw denoErrorToNodeError(err, { syscall: \"utime\", path }); }",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "PromisePrototypeThen(Deno.utime(path, atime, mtime), ()=>callback(null), callback);",
        replacement: "PromisePrototypeThen(Deno.utime(path, atime, mtime), ()=>callback(null), \
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
    // Links that are copied lead where they led (`js/files.ts`).
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
    // Brotli data that are broken or cut off are an error (`js/brotli.ts`). Of what is not
    // asked for nothing is set: "-1" would be "yes".
    Correction {
        specifier: "ext:deno_node/zlib.js",
        text: "setupHandleWriteState(handle, this._writeState);\n  const success = handle.init(\n    brotliInitParamsArray,\n    processCallback,\n  );",
        replacement: "setupHandleWriteState(handle, this._writeState); \
                      if (mode === BROTLI_DECODE) { handle[kNativeWrite] = \
                      handle[kNativeWriteSync] = __bootstrap.internals.brotliDecoding( \
                      handle[kNativeWrite], BROTLI_OPERATION_FINISH, constants.Z_BUF_ERROR); } \
                      const success = handle.init(mode === BROTLI_DECODE ? \
                      brotliInitParamsArray.map((value) => value === 0xffffffff ? 0 : value) : \
                      brotliInitParamsArray, \
                      mode === BROTLI_DECODE ? () => {} : processCallback);",
    },
    // What is aborted before it begins leaves the file as it is, and the error is that of Node.
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
    // An error of the file system is made where nobody awaits it, and names no place in the
    // extension: Node gives it the stack of who called.
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
    // What did not run has a code of its own, and no channel.
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "output.signal,\n        stdout,",
        replacement: "null, stdout,",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "this.#_handleError(e);",
        replacement: "if (typeof e?.errno === \"number\") nextTick(() => { this.exitCode = \
                      e.errno; }); this.#_handleError(e);",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "killed = false;",
        replacement: "connected = false; killed = false;",
    },
    // Options of a folder that is opened are not needed, and `recursive` goes down (`js/files.ts`).
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
    // More errors of Deno's own, and times that are none (`js/files.ts`).
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
        text: "if (typeof time === \"number\" && (NumberIsNaN(time) || !NumberIsFinite(time))) {",
        replacement: "if (false) {",
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
        text: "if (typeof value === \"number\" && (NumberIsNaN(value) || !NumberIsFinite(value))) {",
        replacement: "if (false) {",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_readdir.ts",
        text: "syscall: \"readdir\"",
        replacement: "syscall: \"scandir\"",
    },
    Correction {
        specifier: "ext:deno_node/_fs/_fs_copy.ts",
        text: "function known(err, path, dest) {",
        replacement: "function known(err, path, dest) { if \
                      (primordials.StringPrototypeIncludes(err.message, \"neither a regular \
                      file\") && Deno.statSync(path).isDirectory) err = new Error(\"Is a \
                      directory (os error 21)\");",
    },
    // Reading says whether it was the opening that failed, and needs somebody to tell it to.
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
    // The first folder that is made has the name that it was given.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "let cursor = resolve(path);",
        replacement: "let cursor = `${path}`.replace(/(?<=.)\\/+$/, \"\");",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "const parent = resolve(cursor, \"..\");",
        replacement: "const parent = pathModule.dirname(cursor);",
    },
    // The environment of a child that is waited for is the one that it is given.
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "clearEnv: false,",
        replacement: "clearEnv: true,",
    },
    // A shell gets the words as they are: `*` and `&&` are for it.
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "escapeShellArg(stripShellArgQuotes(file)),",
        replacement: "file,",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "escapeShellArg(stripShellArgQuotes(arg))",
        replacement: "arg",
    },
    // What may not be run says so, and whatever is not run has no outcome.
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "result.error = _createSpawnError(\"ENOENT\", command, args, true);\n      }",
        replacement: "result.error = _createSpawnError(\"ENOENT\", command, args, true);\n      } \
                      else if (ObjectPrototypeIsPrototypeOf(Deno.errors.PermissionDenied.prototype, \
                      err)) { result.error = _createSpawnError(\"EACCES\", command, args, true); } \
                      else if (err.code) { result.error = _createSpawnError(err.code, command, args, true); } \
                      else throw err; \
                      for (const name of [\"status\", \"signal\", \"output\", \"stdout\", \"stderr\"]) \
                      result[name] = null; \
                      result.pid = 0;",
    },
    // With an environment of its own, too, a child that is this program runs a script as
    // node does (src/cli/as_node.rs).
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "this.#process = nodeSpawnChild(cmd, {",
        replacement: "if (cmd === Deno.execPath()) env.PI_CODING_AGENT ??= \"true\"; \
                      this.#process = nodeSpawnChild(cmd, {",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "env: mapValues(env, (value)=>value.toString()),",
        replacement: "env: mapValues(command === Deno.execPath() ? \
                      { PI_CODING_AGENT: \"true\", ...env } : env, (value)=>value.toString()),",
    },
    // A request is sent once. Deno sends what a kept connection lost again: also a POST, and
    // what its author gave up, and then nobody hears the end of it.
    Correction {
        specifier: "node:_http_client",
        text: "function canRetryRequest(req) {",
        replacement: "function canRetryRequest(req) { return false;",
    },
    // A request that is to go through a proxy, or to a mock, must not go past it. What an
    // `Agent` of undici says of time limits and connections may be left out, and so may
    // an object that asks that of everybody for it (@google/genai, for time limits).
    // undici 8 wraps everybody's for its older versions, and has it under another name.
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "function fetch(input, init = undefined) {",
        replacement: "function fetch(input, init = undefined) { \
                      const everybodys = globalThis[Symbol.for(\"undici.globalDispatcher.2\")] ?? \
                      globalThis[Symbol.for(\"undici.globalDispatcher.1\")]; \
                      const kindOf = (it) => it?.constructor?.name ?? \"Agent\"; \
                      const own = kindOf(init?.dispatcher); \
                      const kind = own === \"Object\" || own === \"Dispatcher1Wrapper\" || !init?.dispatcher \
                      ? kindOf(everybodys) : own; \
                      if (kind !== \"Agent\" && kind !== \"EnvHttpProxyAgent\") \
                      return primordials.PromiseReject(new TypeError(`The global fetch of pi cannot use the \
                      ${kind} of undici: call the fetch that undici exports, or set HTTP_PROXY`));",
    },
    // `require` knows our modules from the beginning (require.ts).
    Correction {
        specifier: "node:module",
        text: "internals.closeIdleConnections = closeIdleConnections;",
        replacement: "internals.hookRequire(Module); \
                      internals.closeIdleConnections = closeIdleConnections;",
    },
    // What an addon lacks is looked for when it is first called, and ends the program.
    Correction {
        specifier: "node:module",
        text: "if (filename.endsWith(\"cpufeatures.node\")) {",
        replacement: "internals.checkAddon(filename); \
                      if (filename.endsWith(\"cpufeatures.node\")) {",
    },
    // A port that is closed keeps its worker no longer.
    Correction {
        specifier: "ext:deno_node/worker_threads.ts",
        text: "parentPort.emit = ()=>notImplemented(\"parentPort.emit\");",
        replacement: "parentPort.emit = (name, ...args) => { \
                      const listeners = [...(parentPortListeners[name]?.keys() ?? [])]; \
                      for (const listener of listeners) listener(...args); \
                      return listeners.length > 0; }; \
                      parentPort.start = () => {}; \
                      parentPort.close = () => { parentPort.removeAllListeners(\"message\"); \
                      parentPort.unref(); \
                      lazyProcess().default.nextTick(() => parentPort.emit(\"close\")); };",
    },
    Correction {
        specifier: "ext:deno_node/worker_threads.ts",
        text: "parentPort.removeAllListeners = ()=>notImplemented(\"parentPort.removeAllListeners\");",
        replacement: "parentPort.removeAllListeners = (...names) => { \
                      for (const name of names.length ? names : Object.keys(parentPortListeners)) \
                      for (const listener of [...(parentPortListeners[name]?.keys() ?? [])]) \
                      parentPort.off(name, listener); return parentPort; };",
    },
    // What Node has up to version 24, and its packages use; see node-repairs.ts.
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "  constants,\n",
        replacement: "  constants, F_OK: constants.F_OK, R_OK: constants.R_OK, W_OK: constants.W_OK, \
                      X_OK: constants.X_OK,\n",
    },
    Correction {
        specifier: "node:fs",
        text: "export const constants = mod.constants;",
        replacement: "export const constants = mod.constants; \
                      export const { F_OK, R_OK, W_OK, X_OK } = mod;",
    },
    Correction {
        specifier: "ext:deno_node/fs.ts",
        text: "if (options?.recursive !== undefined) {",
        replacement: "if (options?.recursive) { return typeof callback == \"function\" ? \
                      rm(path, { recursive: true }, callback) : rmSync(path, { recursive: true }); } \
                      if (false) {",
    },
    // Programs look for the code of a connection that failed.
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "throw new TypeError(\"fetch failed\", { cause: new Error(cause) });",
        replacement: "const has = (text) => primordials.StringPrototypeIncludes(`${cause} ${resp.error[0]}`, text); \
                      const code = has(\"os error 111\") || has(\"os error 61)\") ? \"ECONNREFUSED\" \
                      : has(\"os error 104\") || has(\"os error 54)\") ? \"ECONNRESET\" \
                      : has(\"os error 113\") ? \"EHOSTUNREACH\" \
                      : has(\"os error 110\") || has(\"os error 60)\") ? \"ETIMEDOUT\" \
                      : has(\"dns error\") ? \"ENOTFOUND\" \
                      : has(\"connection closed\") ? \"UND_ERR_SOCKET\" : undefined; \
                      const error = new Error(cause); \
                      if (code) error.code = code; \
                      throw new TypeError(\"fetch failed\", { cause: error });",
    },
];

/// The text of a module as the program has it.
pub fn corrected(specifier: &str, source: String) -> String {
    let own = CORRECTIONS.iter().filter(|c| c.specifier == specifier);
    own.fold(source, |source, correction| {
        let Correction { text, .. } = correction;
        assert!(
            source.contains(text),
            "{specifier} does not say {text} any more"
        );
        source.replace(text, correction.replacement)
    })
}

/// All modules whose text is corrected: they must be in the program as text.
pub fn specifiers() -> impl Iterator<Item = &'static str> {
    CORRECTIONS.iter().map(|correction| correction.specifier)
}
