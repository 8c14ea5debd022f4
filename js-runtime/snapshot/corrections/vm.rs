//! Corrections of `node:v8` and `node:vm`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // Promise hooks apply to all contexts (`js/node/promise-hooks.ts`).
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
];
