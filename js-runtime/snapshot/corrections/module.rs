//! Corrections of `node:module` (`js/node/require.ts`).

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // `node:sea` exists; the program is no single executable application.
    Correction {
        specifier: "node:module",
        text: "\"sqlite\": ()=>core.loadExtScript(",
        replacement: "\"sea\": ()=>core.createLazyLoader(\"node:sea\")().default, \
                      \"sqlite\": ()=>core.loadExtScript(",
    },
    // Modules that Node has only with "node:" are packages without it.
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
    // `require` throws the exception of the module instead of its text.
    Correction {
        specifier: "node:module",
        text: "throw e;\n  }\n  if (ObjectHasOwn(namespace, \"module.exports\")) {",
        replacement: "throw internals.required(e);\n  }\n  \
                      if (ObjectHasOwn(namespace, \"module.exports\")) {",
    },
    // Hooks get the format of a file. JSON is not JavaScript if they do not return a format.
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
    // `require` knows pi's modules from the start (`js/node/require.ts`).
    Correction {
        specifier: "node:module",
        text: "internals.closeIdleConnections = closeIdleConnections;",
        replacement: "internals.hookRequire(Module); \
                      internals.closeIdleConnections = closeIdleConnections;",
    },
    // A syntax error has its position (`js/node/require.ts`).
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
    // An addon that lacks a function is refused, because the first call of the function would end
    // the program.
    Correction {
        specifier: "node:module",
        text: "if (filename.endsWith(\"cpufeatures.node\")) {",
        replacement: "internals.checkAddon(filename); \
                      if (filename.endsWith(\"cpufeatures.node\")) {",
    },
    // No warning for a package that requires `punycode`, as in Node: the user cannot change the
    // package.
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
];
