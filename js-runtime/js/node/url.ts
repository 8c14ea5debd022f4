// Gives errors of URLs the form of Node: programs compare the code and the input.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { windowOrWorkerGlobalScope } from "ext:runtime/98_global_scope_shared.js";

const {
  ArrayPrototypeIncludes,
  ErrorCaptureStackTrace,
  ObjectAssign,
  ObjectDefineProperty,
  Proxy,
  ReflectConstruct,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
  StringPrototypeStartsWith,
  TypeError,
} = primordials;

const urls = core.loadExtScript("ext:deno_web/00_url.js");
const Plain = urls.URL;

/** https://nodejs.org/docs/latest-v24.x/api/errors.html#err_invalid_url */
function invalid(error: any, args: unknown[]): unknown {
  if (!StringPrototypeStartsWith(`${error?.message}`, "Invalid URL: ")) return error;
  const found: any = new TypeError("Invalid URL");
  found.code = "ERR_INVALID_URL";
  found.input = `${args[0]}`;
  if (args[1] !== undefined) found.base = `${args[1]}`;
  return found;
}

// The Node layer itself makes its objects without this wrapper.
function construct(target: Function, args: unknown[], made: Function): object {
  try {
    return ReflectConstruct(target, args, made === URL ? target : made);
  } catch (error) {
    const found: any = invalid(error, args);
    // The stack begins with the caller.
    ErrorCaptureStackTrace(found, construct);
    throw found;
  }
}
const URL = new Proxy(Plain, { __proto__: null, construct });
ObjectDefineProperty(Plain.prototype, "constructor", { __proto__: null, value: URL });
const global = { __proto__: null, value: URL, writable: true, enumerable: false, configurable: true };
windowOrWorkerGlobalScope.URL = global;
ObjectDefineProperty(globalThis, "URL", global);
ObjectAssign(urls, { URL });
ObjectAssign(core.loadExtScript("ext:deno_node/url.ts"), { URL });

/** https://github.com/nodejs/undici: lib/web/fetch/request.js */
internals.fetchedUrl = (input: string, base: string | undefined): object => {
  let url: any;
  try {
    url = new URL(input, base);
  } catch (cause) {
    throw new TypeError(`Failed to parse URL from ${input}`, { cause });
  }
  if (url.username !== "" || url.password !== "") {
    throw new TypeError(`Request cannot be constructed from a URL that includes credentials: ${input}`);
  }
  return url;
};

internals.isFetched = (protocol: string): boolean =>
  ArrayPrototypeIncludes(["http:", "https:", "blob:", "data:", "file:"], protocol);

/** The origin of the address of a WebSocket. */
internals.originOf = (url: string): string =>
  StringPrototypeSlice(url, 0, StringPrototypeIndexOf(url, "/", "wss://".length));
