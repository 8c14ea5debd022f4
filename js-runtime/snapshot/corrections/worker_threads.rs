//! Corrections of `node:worker_threads`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // `new Worker(file, { stdout: true })` also gets the output of `console`.
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
    // Events of a worker come after the code that made it. A module of Node's API that is loaded
    // meanwhile, as by the first `fork`, runs microtasks, and events came before there were listeners.
    Correction {
        specifier: "ext:deno_node/worker_threads.ts",
        text: "this.#pollControl();",
        replacement: "",
    },
    Correction {
        specifier: "ext:deno_node/worker_threads.ts",
        text: "this.#messageLoopPromise = this.#pollMessages();",
        replacement: "lazyProcess().default.nextTick(() => { this.#pollControl(); \
                      this.#messageLoopPromise = this.#pollMessages(); });",
    },
    // A terminated worker emits `exit` when it has ended, not when `terminate` is called.
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
    // An error of a worker without a listener is an uncaught exception of its owner.
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
    // The error of a worker that cannot be started has its position and code.
    Correction {
        specifier: "ext:deno_node/worker_threads.ts",
        text: "err.stack = undefined;",
        replacement: "const missing = /^(Cannot find module '(.*)') \\(\\2\\)$/.exec(err.message); \
                      if (missing) { err.message = missing[1]; err.code = \"MODULE_NOT_FOUND\"; } \
                      err.stack = `${err.name}: ${err.message}${data.fileName \
                      ? `\\n    at ${data.fileName}:${data.lineNumber}:${data.columnNumber}` : \"\"}`;",
    },
    // A closed port does not keep its worker alive.
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
];
