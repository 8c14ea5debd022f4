//! Corrections of `node:zlib`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // Broken or truncated Brotli data is an error (`js/node/brotli.ts`). Options that are not
    // passed stay unset: "-1" would mean "yes".
    Correction {
        specifier: "ext:deno_node/zlib.js",
        text: "setupHandleWriteState(handle, this._writeState);\n  const success = handle.init(\n    brotliInitParamsArray,\n    processCallback,\n  );",
        replacement: "setupHandleWriteState(handle, this._writeState); \
                      if (mode === BROTLI_DECODE) { handle[kNativeWrite] = \
                      handle[kNativeWriteSync] = __bootstrap.internals.brotliDecoding( \
                      handle[kNativeWrite], BROTLI_OPERATION_FINISH, constants.Z_BUF_ERROR); } \
                      const success = handle.init(mode === BROTLI_DECODE ? \
                      brotliInitParamsArray.map((value) => value === 0xffffffff ? 0 : value) : \
                      brotliInitParamsArray, \
                      mode === BROTLI_DECODE ? () => {} : processCallback);",
    },
    // Broken or truncated zstd data is an error with Node's name (`js/node/zstd.ts`).
    Correction {
        specifier: "ext:deno_node/zlib.js",
        text: "new binding.ZstdDecompress(mode)",
        replacement: "__bootstrap.internals.zstdDecoder()",
    },
];
