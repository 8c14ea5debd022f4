//! Corrections of `node:tty`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // Descriptors that come from JavaScript by number, or go to it, are checked (`js/node/fd.ts`).
    Correction {
        specifier: "ext:deno_node/internal_binding/tty_wrap.ts",
        text: "const { TTY } = core.ops;",
        replacement: "const TTY = __bootstrap.internals.guardedTerminal(core.ops.TTY);",
    },
];
