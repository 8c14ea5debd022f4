//! Of all but `node:fs`: processes, workers, requests, time.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
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
                      const own = __bootstrap.internals.consoleOf((text, isError) => { \
                      if (!(isError ? metadata.hasStderr : metadata.hasStdout)) \
                      return core.print(text, isError); \
                      parentPort.postMessage({ type: isError ? \"WORKER_STDERR\" : \
                      \"WORKER_STDOUT\", data: text }); }); \
                      for (const name of Object.keys(own)) globalThis.console[name] = own[name]; } \
                      const origStdoutWrite = FunctionPrototypeBind(",
    },
    // See `js/node/promise-hooks.ts`.
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
                      unheard.stack = `${unheard.name}: ${unheard.message}\\n    ${data.fileName \
                      ? `at ${data.fileName}:${data.lineNumber}:${data.columnNumber}` : \"in a worker\"}`; \
                      Promise.reject(unheard); } else {",
    },
    Correction {
        specifier: "ext:deno_node/worker_threads.ts",
        text: "serializeMessageData(message)",
        replacement: "__bootstrap.internals.cloned(() => serializeMessageData(message))",
    },
    // Of its stack the place is known, and of a file that is not there the code.
    Correction {
        specifier: "ext:deno_node/worker_threads.ts",
        text: "err.stack = undefined;",
        replacement: "const missing = /^(Cannot find module '(.*)') \\(\\2\\)$/.exec(err.message); \
                      if (missing) { err.message = missing[1]; err.code = \"MODULE_NOT_FOUND\"; } \
                      err.stack = `${err.name}: ${err.message}${data.fileName \
                      ? `\\n    at ${data.fileName}:${data.lineNumber}:${data.columnNumber}` : \"\"}`;",
    },
    Correction {
        specifier: "ext:deno_node/child_process.ts",
        text: "const args = ArrayIsArray(argsOrOptions) ? argsOrOptions : [];",
        replacement: "if (argsOrOptions != null && typeof argsOrOptions !== \"object\") \
                      throw new ERR_INVALID_ARG_TYPE(\"args\", \"object\", argsOrOptions); \
                      const args = ArrayIsArray(argsOrOptions) ? argsOrOptions : [];",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "notImplemented(`normalizeStdioOption stdio=${typeof stdio} (${stdio})`);",
        replacement: "throw new ERR_INVALID_ARG_VALUE(\"stdio\", stdio);",
    },
    Correction {
        specifier: "ext:deno_node/internal/crypto/cipher.ts",
        text: "op_node_decipheriv_final(this._context, this._autoPadding, this._cache.cache, buf, this._authTag || NO_TAG);",
        replacement: "__bootstrap.internals.deciphered(() => op_node_decipheriv_final(this._context, \
                      this._autoPadding, this._cache.cache, buf, this._authTag || NO_TAG));",
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
        replacement: "function invokeCallback() { __bootstrap.internals.timerStarted?.(asyncContext); \
                      try { return invokeUnwatched(); } catch (error) { __bootstrap.internals.timerThrew?.(error); throw error; } } \
                      function invokeUnwatched() {",
    },
    Correction {
        specifier: "ext:deno_node/internal/timers.mjs",
        text: "return ReflectApply(unboundCallback, self, argv);",
        replacement: "__bootstrap.internals.timerStarted?.(asyncContext); \
                      try { return ReflectApply(unboundCallback, self, argv); } catch (error) \
                      { __bootstrap.internals.timerThrew?.(error); throw error; }",
    },
    // There is no `deno` among the versions, and no event target that is global (js/node/globals.ts).
    Correction {
        specifier: "node:process",
        text: "process.versions = versions;",
        replacement: "delete versions.deno; delete versions.typescript; process.versions = versions;",
    },
    Correction {
        specifier: "node:process",
        text: "versions[entry[0]] = entry[1];",
        replacement: "if (entry[0] in versions) versions[entry[0]] = entry[1];",
    },
    Correction {
        specifier: "node:process",
        text: "globalThis.addEventListener(",
        replacement: "internals.listenGlobally(",
    },
    Correction {
        specifier: "node:process",
        text: "globalThis.removeEventListener(",
        replacement: "internals.ignoreGlobally(",
    },
    // Whose listener it is (js/bridge/listeners.ts).
    Correction {
        specifier: "node:process",
        text: "FunctionPrototypeCall(EventEmitter.prototype.on, this, event, listener);",
        replacement: "internals.listens?.(event, listener); \
                      FunctionPrototypeCall(EventEmitter.prototype.on, this, event, listener);",
    },
    Correction {
        specifier: "node:process",
        text: "FunctionPrototypeCall(EventEmitter.prototype.prependListener, this, event, listener);",
        replacement: "internals.listens?.(event, listener); \
                      FunctionPrototypeCall(EventEmitter.prototype.prependListener, this, event, listener);",
    },
    // Of the signals that end pi it tells itself (js/bridge/listeners.ts). Listeners hear the
    // number, too.
    Correction {
        specifier: "node:process",
        text: "Deno.addSignalListener(",
        replacement: "(internals.isEmittedByProgram(event) ? () => {} : Deno.addSignalListener)(",
    },
    Correction {
        specifier: "node:process",
        text: "wrapper = ()=>listener(event);",
        replacement: "wrapper = () => \
                      ReflectApply(listener, process, [event, constants.os.signals[event]]);",
    },
    Correction {
        specifier: "node:process",
        text: "_uncaughtExceptionCaptureFn = fn;",
        replacement: "_uncaughtExceptionCaptureFn = fn; internals.captures?.();",
    },
    // What is refused says why; what is not there would be "not a function".
    Correction {
        specifier: "node:process",
        text: "process.setuid = setuid;",
        replacement: "process.setuid = setuid; for (const name of [\"setgroups\", \"initgroups\"]) \
                      process[name] = () => internals.setGroups(name);",
    },
    // Whose code it is that cannot be interrupted.
    Correction {
        specifier: "ext:deno_process/40_process.js",
        text: "const result = op_spawn_sync(",
        replacement: "internals.beforeNative?.(); const result = op_spawn_sync(",
    },
    // Brotli data that are broken or cut off are an error (`js/node/brotli.ts`). Of what is not
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
    // So are those of zstd, with their names (`js/node/zstd.ts`).
    Correction {
        specifier: "ext:deno_node/zlib.js",
        text: "new binding.ZstdDecompress(mode)",
        replacement: "__bootstrap.internals.zstdDecoder()",
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
    // What came of a child that is waited for is told as it is (ext/src/spawn_sync.rs).
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "stdin: stdin_ == \"inherit\" ? \"inherit\" : \"null\",",
        replacement: "stdin: toDenoStdio(stdin_),",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "const killedByDeno = output.killedByTimeout || output.killedByMaxBuffer;",
        replacement: "const killedByDeno = false;",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "if (output.killedByTimeout) {",
        replacement: "if (output.inputIsLeft) result.error = _createSpawnError(\"EPIPE\", command, \
                      args, true); if (output.killedByTimeout) {",
    },
    Correction {
        specifier: "ext:deno_process/40_process.js",
        text: "killedByMaxBuffer: result.killedByMaxBuffer,",
        replacement: "killedByMaxBuffer: result.killedByMaxBuffer, inputIsLeft: result.inputIsLeft,",
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
    // node does (src/cli/node_compat/mod.rs).
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
    // `require` knows our modules from the beginning (require.ts).
    Correction {
        specifier: "node:module",
        text: "internals.closeIdleConnections = closeIdleConnections;",
        replacement: "internals.hookRequire(Module); \
                      internals.closeIdleConnections = closeIdleConnections;",
    },
    // What does not compile says where (`js/node/require.ts`).
    Correction {
        specifier: "node:module",
        text: "throw err.thrown;",
        replacement: "throw internals.withPosition(err.thrown, () => core.compileFunction(content, \
                      url.pathToFileURL(filename).toString(), [format !== \"module\"], \
                      [\"exports\", \"require\", \"module\", \"__filename\", \"__dirname\"]));",
    },
    // A `.cts` file with `export` is an ES module here.
    Correction {
        specifier: "node:module",
        text: "  } else if (StringPrototypeEndsWith(filename, \".cts\")) {\n    return loadCjs(",
        replacement: "  } else if (StringPrototypeEndsWith(filename, \".cts\")) {\n    return loadMaybeCjs(",
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
                      : has(\"UnknownIssuer\") ? \"UNABLE_TO_VERIFY_LEAF_SIGNATURE\" \
                      : has(\"certificate expired\") ? \"CERT_HAS_EXPIRED\" \
                      : has(\"not valid for name\") ? \"ERR_TLS_CERT_ALTNAME_INVALID\" \
                      : has(\"connection closed\") ? \"UND_ERR_SOCKET\" : undefined; \
                      const error = new Error(cause); \
                      const { hostname, port, protocol } = new URL(req.currentUrl()); \
                      const errno = { ECONNREFUSED: -111, EHOSTUNREACH: -113, ETIMEDOUT: -110 }[code]; \
                      if (code) error.code = code; \
                      if (code === \"ENOTFOUND\") { \
                      error.message = `getaddrinfo ${code} ${hostname}`; \
                      primordials.ObjectAssign(error, { errno: -3008, syscall: \"getaddrinfo\", hostname }); \
                      } else if (errno) { \
                      const place = { address: hostname, port: +port || (protocol === \"https:\" ? 443 : 80) }; \
                      error.message = `connect ${code} ${place.address}:${place.port}`; \
                      primordials.ObjectAssign(error, { errno, syscall: \"connect\", ...place }); } \
                      throw new TypeError(\"fetch failed\", { cause: error });",
    },
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "\"Fetch failed: \" + (response.error ?? \"unknown error\"),",
        replacement: "\"fetch failed\", { cause: new Error(response.error ?? \"unknown error\") },",
    },
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "`Requests to port ${url.port} are blocked`",
        replacement: "\"bad port\"",
    },
    // Who does not wait for a browser to open must not fall over one that is not there.
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "this.#process.ref();",
        replacement: "this.#process?.ref();",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "this.#process.unref();",
        replacement: "this.#process?.unref();",
    },
    // What is deprecated some day is not told of unless somebody wants to know.
    Correction {
        specifier: "node:process",
        text: "if (warning.name === \"DeprecationWarning\") {",
        replacement: "if (code === \"DEP0104\" && !getOptionValue(\"--pending-deprecation\")) \
                      return; if (warning.name === \"DeprecationWarning\") {",
    },
    // A package that requires `punycode` is not the user's to mend: as in Node nothing is
    // said of it.
    Correction {
        specifier: "node:module",
        text: "const deprecatedNativeModules = ObjectCreate(null);",
        replacement: "import { op_node_call_is_from_dependency } from \"ext:core/ops\"; \
                      const deprecatedNativeModules = ObjectCreate(null);",
    },
    Correction {
        specifier: "node:module",
        text: "SetPrototypeAdd(emittedNativeModuleDeprecations, request);",
        replacement: "SetPrototypeAdd(emittedNativeModuleDeprecations, request); \
                      if (request === \"punycode\" && op_node_call_is_from_dependency()) return;",
    },
    // See `js/node/lazy-node.ts`.
    Correction {
        specifier: "ext:deno_node/crypto.ts",
        text: "const { core, primordials } = __bootstrap;",
        replacement: "const { primordials } = __bootstrap; \
                      const core = __bootstrap.internals.lazyCryptoCore;",
    },
    Correction {
        specifier: "ext:deno_node/crypto.ts",
        text: "const Hash = deprecate(",
        replacement: "const Hash = __bootstrap.internals.lazyResult(\"Hash\", deprecate, ",
    },
    Correction {
        specifier: "ext:deno_node/crypto.ts",
        text: "const Hmac = deprecate(",
        replacement: "const Hmac = __bootstrap.internals.lazyResult(\"Hmac\", deprecate, ",
    },
    // What handlers of requests, connections and datagrams throw is uncaught, and not an
    // error of the request, or of nothing.
    Correction {
        specifier: "node:_http_server",
        text: "import { core, primordials } from \"ext:core/mod.js\";",
        replacement: "import { core, internals, primordials } from \"ext:core/mod.js\";",
    },
    Correction {
        specifier: "node:_http_server",
        text: "server.emit(\"request\", req, res);",
        replacement: "try { server.emit(\"request\", req, res); } \
                      catch (error) { internals.reportUncaught(error); }",
    },
    Correction {
        specifier: "node:_http_server",
        text: "server.emit(eventName, req, socket, bodyHead);",
        replacement: "try { server.emit(eventName, req, socket, bodyHead); } \
                      catch (error) { internals.reportUncaught(error); }",
    },
    Correction {
        specifier: "ext:deno_node/net.ts",
        text: "()=>_afterConnectImpl(status, handle, req, readable, writable)",
        replacement: "() => { try { _afterConnectImpl(status, handle, req, readable, writable); } \
                      catch (error) { __bootstrap.internals.reportUncaught(error); } }",
    },
    Correction {
        specifier: "ext:deno_node/net.ts",
        text: "()=>FunctionPrototypeCall(_onconnectionImpl, handle, err, clientHandle)",
        replacement: "() => { try { FunctionPrototypeCall(_onconnectionImpl, handle, err, clientHandle); } \
                      catch (error) { __bootstrap.internals.reportUncaught(error); } }",
    },
    Correction {
        specifier: "ext:deno_node/net.ts",
        text: "this.emit(\"close\", isException);",
        replacement: "try { this.emit(\"close\", isException); } \
                      catch (error) { __bootstrap.internals.reportUncaught(error); }",
    },
    Correction {
        specifier: "ext:deno_node/dgram.ts",
        text: "self.emit(\"message\", buf, rinfo);",
        replacement: "try { self.emit(\"message\", buf, rinfo); } \
                      catch (error) { __bootstrap.internals.reportUncaught(error); }",
    },
    // A body that breaks off (`js/node/fetch-body.ts`).
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "readableStreamForRid(responseBodyRid)",
        replacement: "readableStreamForRid(responseBodyRid, true, undefined, (controller, error) => \
                      controller.error(__bootstrap.internals.terminated(error)))",
    },
    // `read()` gives all that is there, until Node 26 at least.
    Correction {
        specifier: "ext:deno_node/internal/streams/readable.js",
        text: "if ((state[kState] & kDecoder) === 0 && state.length) {",
        replacement: "if (false) {",
    },
    // The first word of a child is the command as it was given, or `argv0`.
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "argv0: argv0 !== cmd ? argv0 : undefined",
        replacement: "argv0",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "argv0: argv0 !== command ? argv0 : undefined",
        replacement: "argv0",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "this.spawnargs = [\n        cmd,",
        replacement: "this.spawnargs = [ argv0,",
    },
    // What is wrong with the call itself is thrown, as in Node.
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "let e = err;",
        replacement: "const refusal = __bootstrap.internals.spawnRefusal(err, (code) => \
                      _createSpawnError(code, command, [])); \
                      if (refusal) throw refusal; let e = err;",
    },
];
