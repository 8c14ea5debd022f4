//! Corrections of `node:http`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // A request is sent once. Deno sends a request again if a kept connection was lost: also a
    // POST, and one that was aborted, of which the end was never reported.
    Correction {
        specifier: "node:_http_client",
        text: "function canRetryRequest(req) {",
        replacement: "function canRetryRequest(req) { return false;",
    },
    // Exceptions in handlers of requests, connections and datagrams are uncaught exceptions
    // instead of errors of the request.
    Correction {
        specifier: "node:_http_server",
        text: "import { core, primordials } from \"ext:core/mod.js\";",
        replacement: "import { core, internals, primordials } from \"ext:core/mod.js\";",
    },
    Correction {
        specifier: "node:_http_server",
        text: "server.emit(\"request\", req, res);",
        replacement: "try { server.emit(\"request\", req, res); } \
                      catch (error) { internals.reportUncaught(error); }",
    },
    Correction {
        specifier: "node:_http_server",
        text: "server.emit(eventName, req, socket, bodyHead);",
        replacement: "try { server.emit(eventName, req, socket, bodyHead); } \
                      catch (error) { internals.reportUncaught(error); }",
    },
];
