//! Corrections of `BroadcastChannel`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // A channel with `unref` does not keep a script alive (msw has one).
    Correction {
        specifier: "ext:deno_web/01_broadcast_channel.js",
        text: "defineEventHandler(BroadcastChannel.prototype, \"messageerror\");",
        replacement: "defineEventHandler(BroadcastChannel.prototype, \"messageerror\"); \
                      BroadcastChannel.prototype.ref = function ref() \
                      { this[refBroadcastChannel](true); return this; }; \
                      BroadcastChannel.prototype.unref = function unref() \
                      { this[refBroadcastChannel](false); return this; };",
    },
];
