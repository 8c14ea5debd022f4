//! Of `fetch` and `WebSocket`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // Bodies are decoded as in Node (`js/node/fetch-encoding.ts`), and the headers are its (ext/src/fetch.rs).
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "= op_fetch(\n    req.method,\n    req.currentUrl(),\n    req.headerList,\n    \
               req.clientRid,\n    reqBody !== null || reqRid !== null,\n    reqBody,\n    reqRid,\n  );",
        replacement: "= url.protocol === \"http:\" || url.protocol === \"https:\" \
                      ? core.ops.op_fetch_http(req.method, req.currentUrl(), req.headerList, \
                      req.clientRid, reqBody, reqRid) \
                      : op_fetch(req.method, req.currentUrl(), req.headerList, req.clientRid, \
                      reqBody !== null || reqRid !== null, reqBody, reqRid);",
    },
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "let bodyStream = createResponseBodyStream(resp.responseRid, terminator);",
        replacement: "const codings = __bootstrap.internals.codingsOf(resp); \
                      let bodyStream = createResponseBodyStream(resp.responseRid, terminator); \
                      if (codings.length > 0) bodyStream = \
                      __bootstrap.internals.decoded(bodyStream, codings, terminator);",
    },
    // Who sends the requests (`js/node/undici-dispatcher.ts`).
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "function fetch(input, init = undefined) {",
        replacement: "function fetch(input, init = undefined) { let dispatcher; try { dispatcher = \
                      internals.dispatcherOf(init?.dispatcher); } catch (error) \
                      { return primordials.PromiseReject(error); }",
    },
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "const request = toInnerRequest(requestObject);",
        replacement: "const request = toInnerRequest(requestObject); request.dispatcher = dispatcher;",
    },
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "if (req.body) {",
        replacement: "if (req.body && !req.dispatcher) {",
    },
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "const { requestRid, cancelHandleRid } =",
        replacement: "const { requestRid, cancelHandleRid } = req.dispatcher ? { requestRid: \
                      internals.dispatched(req.dispatcher, req, terminator), cancelHandleRid: null } :",
    },
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "return op_fetch_send(rid);",
        replacement: "return typeof rid === \"number\" ? op_fetch_send(rid) : rid;",
    },
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "core.close(resp.responseRid);",
        replacement: "internals.leaveBody(resp.responseRid);",
    },
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "core.tryClose(resp.responseRid);",
        replacement: "internals.leaveBody(resp.responseRid);",
    },
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "core.tryClose(responseBodyRid);",
        replacement: "internals.leaveBody(responseBodyRid);",
    },
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "const readable = readableStreamForRid(",
        replacement: "const readable = typeof responseBodyRid !== \"number\" ? responseBodyRid \
                      : readableStreamForRid(",
    },
    // Why there is no answer is told in undici's words.
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "return networkError(\n          \"Encountered redirect while redirect mode is set to 'error'\",\n        );",
        replacement: "return networkError(\"unexpected redirect\");",
    },
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "\"Can not redirect to a non HTTP(s) url\"",
        replacement: "\"URL scheme must be a HTTP(S) scheme\"",
    },
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "\"Maximum number of redirects (20) reached\"",
        replacement: "\"redirect count exceeded\"",
    },
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "if (req.blobUrlEntry !== null) {",
        replacement: "if (!internals.isFetched(url.protocol)) return networkError(\"unknown scheme\"); \
                      if (req.blobUrlEntry !== null) {",
    },
    // So is what is wrong with a request or a response.
    Correction {
        specifier: "ext:deno_fetch/23_request.js",
        text: "const parsedURL = new URL(input, baseURL);",
        replacement: "const parsedURL = __bootstrap.internals.fetchedUrl(input, baseURL);",
    },
    Correction {
        specifier: "ext:deno_fetch/23_request.js",
        text: "throw new TypeError(\"Method is forbidden\");",
        replacement: "throw new TypeError(`'${m}' HTTP method is unsupported.`);",
    },
    Correction {
        specifier: "ext:deno_fetch/23_request.js",
        text: "throw new TypeError(\"Method is not valid\");",
        replacement: "throw new TypeError(`'${m}' is not a valid HTTP method.`);",
    },
    Correction {
        specifier: "ext:deno_fetch/23_request.js",
        text: "\"Request with GET/HEAD method cannot have body\"",
        replacement: "\"Request with GET/HEAD method cannot have body.\"",
    },
    Correction {
        specifier: "ext:deno_fetch/23_request.js",
        text: "const res = extractBody(init.body);",
        replacement: "if (init.body[primordials.SymbolAsyncIterator] && arguments[1].duplex == null) \
                      throw new TypeError(\"RequestInit: duplex option is required when sending a body.\"); \
                      const res = extractBody(init.body);",
    },
    Correction {
        specifier: "ext:deno_fetch/23_response.js",
        text: "\"Response with null body status cannot have body\"",
        replacement: "`Response constructor: Invalid response status code ${response[_response].status}`",
    },
    Correction {
        specifier: "ext:deno_fetch/23_response.js",
        text: "`The status provided (${init.status}) is not equal to 101 and outside the range [200, 599]`",
        replacement: "\"init[\\\"status\\\"] must be in the range of 200 to 599, inclusive.\"",
    },
    // Who mocks connections (@mswjs/interceptors, behind nock and msw) waits for it.
    Correction {
        specifier: "ext:deno_node/net.ts",
        text: "req.oncomplete = _afterConnect;",
        replacement: "socket.emit(\"connectionAttempt\", address, port, addressType); \
                      req.oncomplete = _afterConnect;",
    },
    // What a connection or a child says is heard by whoever has made it (`js/node/async-context.ts`).
    Correction {
        specifier: "ext:deno_node/net.ts",
        text: "socket._handle.onread = onStreamRead;",
        replacement: "socket._handle.onread = __bootstrap.internals.inContext(onStreamRead);",
    },
    // `fetch` goes over connections when somebody mocks them (`js/node/fetch-over-http.ts`).
    Correction {
        specifier: "ext:deno_node/net.ts",
        text: "Socket.prototype.pause = function() {",
        replacement: "const own = Socket.prototype.connect; __bootstrap.internals.overMocks = () => \
                      Socket.prototype.connect === own ? undefined : __bootstrap.internals.overHttp; \
                      Socket.prototype.pause = function() {",
    },
    // A channel need not keep a script alive (msw has one).
    Correction {
        specifier: "ext:deno_web/01_broadcast_channel.js",
        text: "defineEventHandler(BroadcastChannel.prototype, \"messageerror\");",
        replacement: "defineEventHandler(BroadcastChannel.prototype, \"messageerror\"); \
                      BroadcastChannel.prototype.ref = function ref() \
                      { this[refBroadcastChannel](true); return this; }; \
                      BroadcastChannel.prototype.unref = function unref() \
                      { this[refBroadcastChannel](false); return this; };",
    },
    // Messages come from a place, not from a path.
    Correction {
        specifier: "ext:deno_websocket/01_websocket.js",
        text: "origin: this[_url],",
        replacement: "origin: internals.originOf(this[_url]),",
    },
    // A connection that ended without a word has a number, too.
    Correction {
        specifier: "ext:deno_websocket/01_websocket.js",
        text: "new CloseEvent(\"close\")",
        replacement: "new CloseEvent(\"close\", { code: 1006 })",
    },
];
