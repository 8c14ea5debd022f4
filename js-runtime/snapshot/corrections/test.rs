//! Corrections of `node:test`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // Deno passes its tests to a runner that does not exist here (js/node/test.ts).
    Correction {
        specifier: "ext:deno_node/testing.ts",
        text: "return getNodeTestReporter() === \"tap\";",
        replacement: "return __bootstrap.internals.writesTap();",
    },
    Correction {
        specifier: "ext:deno_node/testing.ts",
        text: "Deno.test(denoTestOptions);",
        replacement: "__bootstrap.internals.nodeTest(denoTestOptions);",
    },
    Correction {
        specifier: "ext:deno_node/testing.ts",
        text: "ignore: !!prepared.options.todo || !!prepared.options.skip",
        replacement: "options: prepared.options, \
                      ignore: !!prepared.options.todo || !!prepared.options.skip",
    },
    Correction {
        specifier: "ext:deno_node/testing.ts",
        text: "ignore: entry.ignore",
        replacement: "options: entry.options, ignore: entry.ignore",
    },
    Correction {
        specifier: "ext:deno_node/testing.ts",
        text: "const isTopLevel = parentNodeContext === undefined;",
        replacement: "t.isSuite = true; const isTopLevel = parentNodeContext === undefined;",
    },
    // A skipped test does not count as active.
    Correction {
        specifier: "ext:deno_node/testing.ts",
        text: "activeNodeTests++;",
        replacement: "if (!prepared.options.skip) activeNodeTests++;",
    },
    Correction {
        specifier: "ext:deno_node/testing.ts",
        text: "skip() {",
        replacement: "skip(message) { this.#denoContext.skip = message || true;",
    },
    Correction {
        specifier: "ext:deno_node/testing.ts",
        text: "todo() {",
        replacement: "todo(message) { this.#denoContext.todo = message || true;",
    },
    Correction {
        specifier: "ext:deno_node/testing.ts",
        text: "console.log(\"DIAGNOSTIC:\", message);",
        replacement: "this.#denoContext.notes.push(String(message));",
    },
    // An exception after the end of a test fails it, as a rejection does.
    Correction {
        specifier: "ext:deno_node/testing.ts",
        text: "globalThis.addEventListener(\"error\", (event)=>{",
        replacement: "globalThis.addEventListener(\"error\", (event)=>{ \
                      const thrower = currentTestSink(); \
                      if (thrower !== null) { event.preventDefault(); \
                      return thrower.fail(event.error); }",
    },
    Correction {
        specifier: "ext:deno_node/testing.ts",
        text: "globalThis.addEventListener(",
        replacement: "__bootstrap.internals.listenGlobally(",
    },
    Correction {
        specifier: "ext:deno_node/testing.ts",
        text: "globalThis.Deno",
        replacement: "Deno",
    },
];
