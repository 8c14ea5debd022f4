//! Corrections of `node:child_process`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // Descriptors that come from JavaScript by number, or go to it, are checked (`js/node/fd.ts`).
    Correction {
        specifier: "ext:deno_process/40_process.js",
        text: "} = core.ops;",
        replacement: "} = internals.operationsOfChildren(core.ops);",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "tcpHandle.fdForIpc();",
        replacement: "__bootstrap.internals.descriptorToSend(tcpHandle);",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "udpHandle.fdForIpc();",
        replacement: "__bootstrap.internals.descriptorToSend(udpHandle);",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "function createIpcHandle(message, rawFd) {",
        replacement: "function createIpcHandle(message, rawFd) { \
                      __bootstrap.internals.descriptorReceived(rawFd);",
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
    // The last messages of a forked child arrive before its exit, including those that are read
    // and queued. A grandchild may keep the channel open.
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "this.emit(\"exit\", this.exitCode, this.signalCode);",
        replacement: "if (typeof pipeRid == \"number\") { if (this.connected) \
                      await new Promise((done) => { this.once(\"disconnect\", done); \
                      setTimeout(done, 200); }); \
                      await new Promise((done) => nextTick(done)); } \
                      this.emit(\"exit\", this.exitCode, this.signalCode);",
    },
    // A channel is closed when its messages are written: the first of a process wait for the event
    // loop. A parent that does not read gets no more than a second.
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "const control = new Control(ipc, serialization);",
        replacement: "let unwritten = 0; let onWritten; \
                      const control = new Control(ipc, serialization);",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "return queueOk[0];",
        replacement: "unwritten += 1; const written = () => { unwritten -= 1; \
                      if (unwritten === 0) onWritten?.(); }; \
                      PromisePrototypeThen(writePromise, written, written); return queueOk[0];",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "control[kControlDisconnect]();",
        replacement: "control[kControlDisconnect](); if (unwritten > 0) { \
                      const close = () => { onWritten = undefined; clearTimeout(limit); \
                      nextTick(() => { target.channel = null; core.close(ipc); \
                      target.emit(\"disconnect\"); }); }; \
                      const limit = setTimeout(close, 1000); onWritten = close; return; }",
    },
    // A process that ends in the middle of a message closes the channel.
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "if (isInterruptedError(err) || isChannelClosedError(err)) {",
        replacement: "if (ObjectPrototypeIsPrototypeOf(Deno.errors.UnexpectedEof.prototype, err)) { \
                      if (target.connected) target.disconnect(); return; } \
                      if (isInterruptedError(err) || isChannelClosedError(err)) {",
    },
    // Marks the extension whose code blocks in a native call.
    Correction {
        specifier: "ext:deno_process/40_process.js",
        text: "const result = op_spawn_sync(",
        replacement: "internals.beforeNative?.(); const result = op_spawn_sync(",
    },
    // A child that could not be started has an exit code of its own, and no channel.
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
    // The outcome of a synchronous child is reported unchanged (ext/src/node/spawn_sync.rs).
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
    // A synchronous child gets exactly the environment that the caller passes.
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "clearEnv: false,",
        replacement: "clearEnv: true,",
    },
    // A shell gets the words unquoted: `*` and `&&` are for it.
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
    // A file without permission to execute has its own error, and a child that was not started has
    // no outcome.
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
    // A child that is this program runs a script as node does (src/cli/node_compat/mod.rs), also with an
    // environment of its own.
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
    // A missing program is not an uncaught exception of a caller that does not wait for it, such
    // as one that opens a browser.
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
    // `argv[0]` of a child is the command as it was passed, or `argv0`.
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
    // Invalid arguments throw, as in Node.
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "let e = err;",
        replacement: "const refusal = __bootstrap.internals.spawnRefusal(err, (code) => \
                      _createSpawnError(code, command, [])); \
                      if (refusal) throw refusal; let e = err;",
    },
];
