//! Where a descriptor's number comes from JavaScript, or goes to it (`js/node/fd.ts`).

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    Correction {
        specifier: "ext:deno_process/40_process.js",
        text: "} = core.ops;",
        replacement: "} = internals.operationsOfChildren(core.ops);",
    },
    Correction {
        specifier: "ext:deno_node/internal_binding/tty_wrap.ts",
        text: "const { TTY } = core.ops;",
        replacement: "const TTY = __bootstrap.internals.guardedTerminal(core.ops.TTY);",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "tcpHandle.fdForIpc();",
        replacement: "__bootstrap.internals.descriptorToSend(tcpHandle);",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "udpHandle.fdForIpc();",
        replacement: "__bootstrap.internals.descriptorToSend(udpHandle);",
    },
    Correction {
        specifier: "ext:deno_node/internal/child_process.ts",
        text: "function createIpcHandle(message, rawFd) {",
        replacement: "function createIpcHandle(message, rawFd) { \
                      __bootstrap.internals.descriptorReceived(rawFd);",
    },
];
