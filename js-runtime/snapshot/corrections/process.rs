//! Corrections of `node:process`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // Removes `deno` from the versions, and the global event target (js/node/globals.ts).
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
    // Marks the extension of a listener (js/bridge/listeners.ts).
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
    // pi itself emits the signals that end it (js/bridge/listeners.ts). Listeners get the number,
    // too.
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
    // A refused call explains why; without a function the error would be "not a function".
    Correction {
        specifier: "node:process",
        text: "process.setuid = setuid;",
        replacement: "process.setuid = setuid; for (const name of [\"setgroups\", \"initgroups\"]) \
                      process[name] = () => internals.setGroups(name);",
    },
    // Pending deprecations are reported only on request.
    Correction {
        specifier: "node:process",
        text: "if (warning.name === \"DeprecationWarning\") {",
        replacement: "if (code === \"DEP0104\" && !getOptionValue(\"--pending-deprecation\")) \
                      return; if (warning.name === \"DeprecationWarning\") {",
    },
];
