//! Corrections of `fetch`.

use super::Correction;

pub(super) const CORRECTIONS: &[Correction] = &[
    // Bodies are decoded as in Node (`js/node/fetch-encoding.ts`), and the headers are Node's
    // (ext/src/node/fetch.rs).
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
    // Requests are sent by the dispatcher (`js/node/undici-dispatcher.ts`).
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
    // Network errors have undici's messages.
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
    // Errors of a request or a response have undici's messages.
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
    // A failed connection has the error code that programs look for.
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "throw new TypeError(\"fetch failed\", { cause: new Error(cause) });",
        replacement: "const has = (text) => primordials.StringPrototypeIncludes(`${cause} ${resp.error[0]}`, text); \
                      const code = has(\"os error 111\") || has(\"os error 61)\") ? \"ECONNREFUSED\" \
                      : has(\"os error 104\") || has(\"os error 54)\") ? \"ECONNRESET\" \
                      : has(\"os error 113\") ? \"EHOSTUNREACH\" \
                      : has(\"os error 110\") || has(\"os error 60)\") ? \"ETIMEDOUT\" \
                      : has(\"dns error\") ? \"ENOTFOUND\" \
                      : has(\"UnknownIssuer\") ? \"UNABLE_TO_VERIFY_LEAF_SIGNATURE\" \
                      : has(\"certificate expired\") ? \"CERT_HAS_EXPIRED\" \
                      : has(\"not valid for name\") ? \"ERR_TLS_CERT_ALTNAME_INVALID\" \
                      : has(\"connection closed\") ? \"UND_ERR_SOCKET\" : undefined; \
                      const error = new Error(cause); \
                      const { hostname, port, protocol } = new URL(req.currentUrl()); \
                      const errno = { ECONNREFUSED: -111, EHOSTUNREACH: -113, ETIMEDOUT: -110 }[code]; \
                      if (code) error.code = code; \
                      if (code === \"ENOTFOUND\") { \
                      error.message = `getaddrinfo ${code} ${hostname}`; \
                      primordials.ObjectAssign(error, { errno: -3008, syscall: \"getaddrinfo\", hostname }); \
                      } else if (errno) { \
                      const place = { address: hostname, port: +port || (protocol === \"https:\" ? 443 : 80) }; \
                      error.message = `connect ${code} ${place.address}:${place.port}`; \
                      primordials.ObjectAssign(error, { errno, syscall: \"connect\", ...place }); } \
                      throw new TypeError(\"fetch failed\", { cause: error });",
    },
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "\"Fetch failed: \" + (response.error ?? \"unknown error\"),",
        replacement: "\"fetch failed\", { cause: new Error(response.error ?? \"unknown error\") },",
    },
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "`Requests to port ${url.port} are blocked`",
        replacement: "\"bad port\"",
    },
    // A truncated body is an error (`js/node/fetch-body.ts`).
    Correction {
        specifier: "ext:deno_fetch/26_fetch.js",
        text: "readableStreamForRid(responseBodyRid)",
        replacement: "readableStreamForRid(responseBodyRid, true, undefined, (controller, error) => \
                      controller.error(__bootstrap.internals.terminated(error)))",
    },
];
