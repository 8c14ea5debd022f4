//! Of `node:module` (`js/node/require.ts`).

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // `node:sea` is there, and no such program.
    Correction {
        specifier: "node:module",
        text: "\"sqlite\": ()=>core.loadExtScript(",
        replacement: "\"sea\": ()=>core.createLazyLoader(\"node:sea\")().default, \
                      \"sqlite\": ()=>core.loadExtScript(",
    },
    // What is Node's with \"node:\" only is a package without it.
    Correction {
        specifier: "node:module",
        text: "const schemelessBlockList = new SafeSet([",
        replacement: "const schemelessBlockList = new SafeSet([ \"sea\",",
    },
    Correction {
        specifier: "node:module",
        text: "moduleName === \"test\" || moduleName === \"test/reporters\"",
        replacement: "internals.needsScheme(moduleName)",
    },
    Correction {
        specifier: "node:module",
        text: "return request in nativeModuleExports;",
        replacement: "return request in nativeModuleExports && !internals.needsScheme(request);",
    },
    Correction {
        specifier: "node:module",
        text: "isBuiltin(request) || normalizedRequest in nativeModuleExports",
        replacement: "isBuiltin(request) || \
                      !internals.needsScheme(request) && normalizedRequest in nativeModuleExports",
    },
    Correction {
        specifier: "node:module",
        text: "const mod = loadNativeModule(filename, request);",
        replacement: "const mod = internals.needsScheme(request) ? undefined : \
                      loadNativeModule(filename, request);",
    },
    // What the module has thrown, and not a text of it.
    Correction {
        specifier: "node:module",
        text: "throw e;\n  }\n  if (ObjectHasOwn(namespace, \"module.exports\")) {",
        replacement: "throw internals.required(e);\n  }\n  \
                      if (ObjectHasOwn(namespace, \"module.exports\")) {",
    },
    // Hooks are told what a file is, and JSON is no JavaScript if they say nothing of it.
    Correction {
        specifier: "node:module",
        text: "format: undefined,\n        conditions: [\n          \"node\",\n          \"require\"",
        replacement: "format: internals.formatOf(this.filename, op_require_is_maybe_cjs), \
                      conditions: [ \"node\", \"require\"",
    },
    Correction {
        specifier: "node:module",
        text: "let hasLoadHooks = false;\n  if (hookEntries.length > 0 && !insideLoadHook) {",
        replacement: "let hasLoadHooks = false; \
                      if (hookEntries.length > 0 && !insideLoadHook && internals.loadsWithHooks( \
                      Module._extensions[findLongestRegisteredExtension(filename)])) {",
    },
];
