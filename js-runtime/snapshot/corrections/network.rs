//! Of `fetch` and `WebSocket`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // Bodies in encodings that Deno does not decode (`js/encodings.ts`).
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "let bodyStream = createResponseBodyStream(resp.responseRid, terminator);",
        replacement: "const codings = __bootstrap.internals.codingsOf(resp); \
                      let bodyStream = createResponseBodyStream(resp.responseRid, terminator); \
                      if (codings.length > 0) bodyStream = \
                      __bootstrap.internals.decoded(bodyStream, codings);",
    },
    // A connection that ended without a word has a number, too.
    Correction {
        specifier: "ext:deno_websocket/01_websocket.js",
        text: "new CloseEvent(\"close\")",
        replacement: "new CloseEvent(\"close\", { code: 1006 })",
    },
];
