//! Corrections of `node:net` and `node:dgram`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // Emits the event for which mocks of connections (@mswjs/interceptors, in nock and msw) wait.
    Correction {
        specifier: "ext:deno_node/net.ts",
        text: "req.oncomplete = _afterConnect;",
        replacement: "socket.emit(\"connectionAttempt\", address, port, addressType); \
                      req.oncomplete = _afterConnect;",
    },
    // Listeners of a connection or a child run in the async context of its creator
    // (`js/node/async-context.ts`).
    Correction {
        specifier: "ext:deno_node/net.ts",
        text: "socket._handle.onread = onStreamRead;",
        replacement: "socket._handle.onread = __bootstrap.internals.inContext(onStreamRead);",
    },
    // `fetch` uses `node:net` when connections are mocked (`js/node/fetch-over-http.ts`).
    Correction {
        specifier: "ext:deno_node/net.ts",
        text: "Socket.prototype.pause = function() {",
        replacement: "const own = Socket.prototype.connect; __bootstrap.internals.overMocks = () => \
                      Socket.prototype.connect === own ? undefined : __bootstrap.internals.overHttp; \
                      Socket.prototype.pause = function() {",
    },
    // Exceptions in handlers of requests, connections and datagrams are uncaught exceptions
    // instead of errors of the request.
    Correction {
        specifier: "ext:deno_node/net.ts",
        text: "()=>_afterConnectImpl(status, handle, req, readable, writable)",
        replacement: "() => { try { _afterConnectImpl(status, handle, req, readable, writable); } \
                      catch (error) { __bootstrap.internals.reportUncaught(error); } }",
    },
    Correction {
        specifier: "ext:deno_node/net.ts",
        text: "()=>FunctionPrototypeCall(_onconnectionImpl, handle, err, clientHandle)",
        replacement: "() => { try { FunctionPrototypeCall(_onconnectionImpl, handle, err, clientHandle); } \
                      catch (error) { __bootstrap.internals.reportUncaught(error); } }",
    },
    Correction {
        specifier: "ext:deno_node/net.ts",
        text: "this.emit(\"close\", isException);",
        replacement: "try { this.emit(\"close\", isException); } \
                      catch (error) { __bootstrap.internals.reportUncaught(error); }",
    },
    Correction {
        specifier: "ext:deno_node/dgram.ts",
        text: "self.emit(\"message\", buf, rinfo);",
        replacement: "try { self.emit(\"message\", buf, rinfo); } \
                      catch (error) { __bootstrap.internals.reportUncaught(error); }",
    },
];
