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
    // The last messages of a forked child come before its end. A grandchild may keep the
    // channel open.
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "this.emit(\"exit\", this.exitCode, this.signalCode);",
        replacement: "if (typeof pipeRid == \"number\" && this.connected) { \
                      await new Promise((done) => { this.once(\"disconnect\", done); \
                      setTimeout(done, 200); }); } \
                      this.emit(\"exit\", this.exitCode, this.signalCode);",
    },
    // Whose code it is that cannot be interrupted.
    Correction {
        specifier: "ext:deno_process/40_process.js",
        text: "const result = op_spawn_sync(",
        replacement: "internals.beforeNative?.(); const result = op_spawn_sync(",
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
