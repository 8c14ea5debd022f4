//! Corrections of `node:timers`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // A replaced generation ends its timers (`js/bridge/release.ts`).
    Correction {
        specifier: "ext:deno_node/internal/timers.mjs",
        text: "function getActiveResourcesInfo() {",
        replacement: "__bootstrap.internals.endTimers = () => { \
                      for (const { 1: timeout } of new SafeMapIterator(activeTimers)) timeout[kDestroy](); }; \
                      function getActiveResourcesInfo() {",
    },
    // Marks the extension whose timer ran or threw: code between two timers, and the report of an
    // exception, are outside their contexts.
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
];
