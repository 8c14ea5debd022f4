//! Corrections of `node:crypto`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    Correction {
        specifier: "ext:deno_node/internal/crypto/cipher.ts",
        text: "op_node_decipheriv_final(this._context, this._autoPadding, this._cache.cache, buf, this._authTag || NO_TAG);",
        replacement: "__bootstrap.internals.deciphered(() => op_node_decipheriv_final(this._context, \
                      this._autoPadding, this._cache.cache, buf, this._authTag || NO_TAG));",
    },
    // Modules are loaded lazily (`js/node/lazy-node.ts`).
    Correction {
        specifier: "ext:deno_node/crypto.ts",
        text: "const { core, primordials } = __bootstrap;",
        replacement: "const { primordials } = __bootstrap; \
                      const core = __bootstrap.internals.lazyCryptoCore;",
    },
    Correction {
        specifier: "ext:deno_node/crypto.ts",
        text: "const Hash = deprecate(",
        replacement: "const Hash = __bootstrap.internals.lazyResult(\"Hash\", deprecate, ",
    },
    Correction {
        specifier: "ext:deno_node/crypto.ts",
        text: "const Hmac = deprecate(",
        replacement: "const Hmac = __bootstrap.internals.lazyResult(\"Hmac\", deprecate, ",
    },
];
