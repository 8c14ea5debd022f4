//! Corrections of `node:stream`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // `read()` returns all available data, as up to Node 26 at least.
    Correction {
        specifier: "ext:deno_node/internal/streams/readable.js",
        text: "if ((state[kState] & kDecoder) === 0 && state.length) {",
        replacement: "if (false) {",
    },
];
