//! Adds exports that Node 24 has and Deno's modules lack: an `import` of a missing name is an
//! error before any code runs. Names that exist elsewhere, or in the module's default, get that
//! value. The rest is `undefined`, as in a Node that is too old for them, which packages check.

pub struct Addition {
    pub specifier: &'static str,
    /// Statements that are added at the end of the module.
    pub text: &'static str,
}

pub const ADDITIONS: &[Addition] = &[
    Addition {
        specifier: "node:assert/strict",
        text: "export const { Assert } = strict; export let CallTracker;",
    },
    Addition {
        specifier: "node:cluster",
        text: "export const { _events, _eventsCount, _maxListeners } = mod.default;",
    },
    Addition {
        specifier: "node:console",
        text: "export const { context, createTask } = console;",
    },
    Addition {
        specifier: "node:constants",
        text: "export const { O_DIRECT, O_NOATIME } = mod.default; \
               export let UV_FS_O_RANDOM, UV_FS_O_SEQUENTIAL, UV_FS_O_SHORT_LIVED, UV_FS_O_TEMPORARY;",
    },
    Addition {
        specifier: "node:crypto",
        text: "export let argon2, argon2Sync, decapsulate, encapsulate, randomUUIDv7;",
    },
    Addition {
        specifier: "node:dns",
        text: "export let resolveTlsa;",
    },
    Addition {
        specifier: "node:dns/promises",
        text: "export let resolveTlsa;",
    },
    Addition {
        specifier: "node:fs",
        text: "export const FileReadStream = mod.ReadStream, FileWriteStream = mod.WriteStream;",
    },
    // `WebSocket` is a class of the web that is loaded on first use.
    Addition {
        specifier: "node:http",
        text: "import { internals } from \"ext:core/mod.js\"; \
               export const { CloseEvent, MessageEvent } = globalThis; \
               export const { setGlobalProxyFromEnv } = mod; \
               export const WebSocket = internals.lazyFunction(\"WebSocket\", () => globalThis.WebSocket);",
    },
    Addition {
        specifier: "node:inspector",
        text: "export let NetworkResources;",
    },
    Addition {
        specifier: "node:inspector/promises",
        text: "export let NetworkResources;",
    },
    // Compiled code is always cached, in a folder of pi. In Node such a program reports that the
    // cache is off. https://nodejs.org/docs/latest-v24.x/api/module.html
    Addition {
        specifier: "node:module",
        text: "Object.assign(Module, { \
                 constants: { compileCacheStatus: { FAILED: 0, ENABLED: 1, ALREADY_ENABLED: 2, DISABLED: 3 } }, \
                 enableCompileCache: () => ({ status: 3 }), \
                 flushCompileCache() {}, \
                 getCompileCacheDir() {}, \
                 getSourceMapsSupport: () => ({ enabled: true, nodeModules: true, generatedCode: false }), \
                 register, \
               }); \
               export const { constants, enableCompileCache, flushCompileCache, getCompileCacheDir, \
                 getSourceMapsSupport } = Module; \
               export let _debug, setSourceMapsSupport;",
    },
    Addition {
        specifier: "node:net",
        text: "export let BoundSocket;",
    },
    Addition {
        specifier: "node:path/posix",
        text: "export const { matchesGlob } = mod.posix;",
    },
    Addition {
        specifier: "node:path/win32",
        text: "export const { matchesGlob } = mod.win32;",
    },
    Addition {
        specifier: "node:perf_hooks",
        text: "export const { Performance, PerformanceMark, PerformanceMeasure, \
                 PerformanceResourceTiming } = globalThis;",
    },
    Addition {
        specifier: "node:process",
        text: "export const { binding, config, debugPort, exitCode, getgroups, \
                 hasUncaughtExceptionCaptureCallback, initgroups, moduleLoadList, openStdin, \
                 reallyExit, release, setgroups, setSourceMapsEnabled, \
                 setUncaughtExceptionCaptureCallback, sourceMapsEnabled, title, uptime } = process; \
               export { features }; export let domain, execve, finalization, ref, unref;",
    },
    Addition {
        specifier: "node:repl",
        text: "export let isValidSyntax;",
    },
    Addition {
        specifier: "node:sqlite",
        text: "export let Session;",
    },
    Addition {
        specifier: "node:stream/web",
        text: "export let ReadableStreamTee;",
    },
    Addition {
        specifier: "node:test",
        text: "export const { expectFailure, only, skip, todo } = mod.default; \
               export let assert, snapshot;",
    },
    Addition {
        specifier: "node:tls",
        text: "export let SecureContext, getCertificateCompressionAlgorithms;",
    },
    Addition {
        specifier: "node:v8",
        text: "export const { promiseHooks } = mod; \
               export let getCppHeapStatistics, isStringOneByteRepresentation, startCpuProfile;",
    },
];
