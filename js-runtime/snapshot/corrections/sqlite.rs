//! Corrections of `node:sqlite`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // A replaced generation closes its databases (`js/bridge/release.ts`).
    Correction {
        specifier: "ext:deno_node/sqlite.ts",
        text: "return ReflectConstruct(DatabaseSyncOp,",
        replacement: "return __bootstrap.internals.makeDatabase(DatabaseSyncOp,",
    },
];
