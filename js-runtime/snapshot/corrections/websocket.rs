//! Corrections of `WebSocket`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // The origin of a message is scheme and host, without a path.
    Correction {
        specifier: "ext:deno_websocket/01_websocket.js",
        text: "origin: this[_url],",
        replacement: "origin: internals.originOf(this[_url]),",
    },
    // A connection that ended without a close frame has a code, too.
    Correction {
        specifier: "ext:deno_websocket/01_websocket.js",
        text: "new CloseEvent(\"close\")",
        replacement: "new CloseEvent(\"close\", { code: 1006 })",
    },
];
