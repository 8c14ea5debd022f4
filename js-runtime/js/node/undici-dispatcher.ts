// Supports undici's dispatchers, which send the requests of Node's `fetch`. Here the program sends
// requests itself, unless a dispatcher sends them elsewhere (a proxy, a mock), changes them or
// trusts other certificates: then it is called, with the interface of every version of undici. Time
// limits and keep-alive settings of an `Agent` may be ignored.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";

const {
  ArrayIsArray,
  ArrayPrototypeFind,
  ArrayPrototypeIncludes,
  ArrayPrototypePush,
  ObjectEntries,
  ObjectGetOwnPropertySymbols,
  ObjectGetPrototypeOf,
  ObjectKeys,
  Promise,
  StringPrototypeToLowerCase,
  SymbolFor,
  SymbolPrototypeGetDescription,
  TypedArrayPrototypeGetByteLength,
  TypeError,
  Uint8Array,
} = primordials;
const { URL } = core.loadExtScript("ext:deno_web/00_url.js");
const abortSignal = core.loadExtScript("ext:deno_web/03_abort_signal.js");

// The keys in https://github.com/nodejs/undici: lib/global.js. undici 8 wraps the global dispatcher
// for older versions, and stores it under another key.
const GLOBAL_DISPATCHERS = [SymbolFor("undici.globalDispatcher.2"), SymbolFor("undici.globalDispatcher.1")];
/** Options of an `Agent`'s `connect` that change neither the peer nor the trusted certificates. */
const HARMLESS_OPTIONS = [
  "allowH2",
  "autoSelectFamily",
  "autoSelectFamilyAttemptTimeout",
  "keepAlive",
  "keepAliveInitialDelay",
  "maxCachedSessions",
  "noDelay",
  "timeout",
];

const kindOf = (it: any): string => it?.constructor?.name ?? "Agent";

/** Whether an `Agent` has a setting that cannot be ignored. */
function isSpecial(agent: any): boolean {
  // An agent composed of interceptors is a proxy of the `Agent`.
  if (agent.dispatch !== ObjectGetPrototypeOf(agent).dispatch) return true;
  const options = ArrayPrototypeFind(
    ObjectGetOwnPropertySymbols(agent),
    (symbol: symbol) => SymbolPrototypeGetDescription(symbol) === "options",
  );
  const connect = agent[options]?.connect;
  if (typeof connect === "function") return true;
  const name = ArrayPrototypeFind(
    ObjectKeys(connect ?? {}),
    (name: string) => connect[name] != null && !ArrayPrototypeIncludes(HARMLESS_OPTIONS, name),
  );
  return name !== undefined && (name !== "rejectUnauthorized" || !connect[name]);
}

/** The dispatcher that has to send the requests of a `fetch`, if there is one. */
internals.dispatcherOf = (given: any): unknown => {
  const globalDispatcher = globalThis[GLOBAL_DISPATCHERS[0]] ?? globalThis[GLOBAL_DISPATCHERS[1]];
  // A plain object delegates to the global dispatcher (@google/genai, for time limits).
  const usesGlobal = !given || kindOf(given) === "Object" || kindOf(given) === "Dispatcher1Wrapper";
  const dispatcher = usesGlobal ? globalDispatcher : given;
  const kind = kindOf(dispatcher);
  if (dispatcher == null || kind === "EnvHttpProxyAgent") return internals.overMocks?.();
  if (typeof dispatcher.dispatch !== "function") {
    throw new TypeError(`fetch: the dispatcher, a ${kind}, has no function "dispatch": give it one of undici's`);
  }
  return kind === "Agent" && !isSpecial(dispatcher) ? internals.overMocks?.() : dispatcher;
};

interface Request {
  method: string;
  headerList: [string, string][];
  body: { length: number | null; streamOrStatic: { body?: unknown } } | null;
  currentUrl(): string;
}

/** The response as `op_fetch_send` has it, except for the body. */
interface Response {
  status: number;
  statusText: string;
  headers: [string, string][];
  url: string;
  responseRid: ReadableStream<Uint8Array>;
  error: null;
}

/** Includes the headers that Node's `fetch` adds (ext/src/node/fetch.rs). */
function headersOf(request: Request, isSecure: boolean): Record<string, string> {
  const headers: any = { __proto__: null };
  const names: any = { __proto__: null };
  const add = (name: string, value: string, isOther = false) => {
    const lower = StringPrototypeToLowerCase(name);
    if (lower in names && isOther) return;
    const known = names[lower] ??= name;
    headers[known] = known in headers ? `${headers[known]}${lower === "cookie" ? "; " : ", "}${value}` : value;
  };
  for (let at = 0; at < request.headerList.length; at += 1) add(request.headerList[at][0], request.headerList[at][1]);
  add("sec-fetch-mode", "cors", true);
  add("user-agent", "node", true);
  const length = lengthOf(request);
  if (length !== null) add("content-length", `${length}`, true);
  const encodings = isSecure ? "br, gzip, deflate" : "gzip, deflate";
  add("accept-encoding", "range" in names ? "identity" : encodings, true);
  return { ...headers };
}

/** The length of the body in bytes, as far as it is known. */
function lengthOf({ body, method }: Request): number | null {
  if (body === null) return ArrayPrototypeIncludes(["POST", "PUT"], method) ? 0 : null;
  const source = body.streamOrStatic.body;
  return typeof source === "string" ? TypedArrayPrototypeGetByteLength(core.encode(source)) : body.length;
}

/** A mock compares the body if it is a text. */
function bodyOf({ body }: Request): unknown {
  if (body === null) return null;
  const source = body.streamOrStatic.body;
  if (typeof source === "string") return source;
  return source instanceof Uint8Array ? source : body.streamOrStatic;
}

/** One exchange, with the callbacks of all versions of undici. */
class Exchange {
  #resolve!: (response: Response) => void;
  #reject!: (error: unknown) => void;
  response: Promise<Response> = new Promise((resolve: any, reject: any) => {
    this.#resolve = resolve;
    this.#reject = reject;
  });
  #url: string;
  #body: ReadableStreamDefaultController<Uint8Array> | undefined;
  #isOver = false;
  #abort: ((reason: unknown) => void) | undefined;
  #resume: (() => void) | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  abort(reason: unknown): void {
    this.#isOver = true;
    this.#abort?.(reason);
  }

  fail(cause: unknown): void {
    if (this.#body === undefined) this.#reject(new TypeError("fetch failed", { cause }));
    else if (!this.#isOver) this.#body.error(new TypeError("terminated", { cause }));
    this.#isOver = true;
  }

  #begin(status: number, statusText: string, headers: [string, string][], resume: () => void): void {
    // Informational responses are not the response.
    if (status < 200) return;
    this.#resume = resume;
    const { ReadableStream } = core.loadExtScript("ext:deno_web/06_streams.js");
    const body = new ReadableStream({
      start: (controller: ReadableStreamDefaultController<Uint8Array>) => {
        this.#body = controller;
      },
      pull: () => this.#resume?.(),
      cancel: (reason: unknown) => this.abort(reason),
    });
    this.#resolve({ status, statusText, headers, url: this.#url, responseRid: body, error: null });
  }

  /** Returns whether there is room for more. */
  #addChunk(chunk: Uint8Array): boolean {
    if (this.#isOver || this.#body === undefined) return true;
    if (TypedArrayPrototypeGetByteLength(chunk) > 0) this.#body.enqueue(new Uint8Array(chunk));
    return (this.#body.desiredSize ?? 0) > 0;
  }

  #end(): void {
    if (!this.#isOver) this.#body?.close();
    this.#isOver = true;
  }

  #start(abort: (reason: unknown) => void): void {
    if (this.#isOver) abort(undefined);
    else this.#abort = abort;
  }

  /**
   * The callbacks of https://github.com/nodejs/undici: docs/docs/api/Dispatcher.md, in the forms up
   * to version 6 and since.
   */
  get handler(): object {
    return {
      onConnect: (abort: (reason: unknown) => void) => this.#start(abort),
      onResponseStarted: () => {},
      onHeaders: (status: number, raw: Uint8Array[], resume: () => void, statusText = "") => {
        const headers: [string, string][] = [];
        for (let at = 0; at < raw.length; at += 2) {
          ArrayPrototypePush(headers, [StringPrototypeToLowerCase(text(raw[at])), text(raw[at + 1])]);
        }
        this.#begin(status, statusText, headers, resume);
        return true;
      },
      onData: (chunk: Uint8Array) => this.#addChunk(chunk),
      onComplete: () => this.#end(),
      onError: (error: unknown) => this.fail(error),
      onRequestStart: (controller: any) => this.#start((reason) => controller.abort(reason)),
      onResponseStart: (controller: any, status: number, fields: Record<string, unknown>, statusText = "") => {
        const headers: [string, string][] = [];
        const entries: [string, unknown][] = ObjectEntries(fields);
        for (let at = 0; at < entries.length; at += 1) {
          const values: unknown[] = ArrayIsArray(entries[at][1]) ? entries[at][1] as unknown[] : [entries[at][1]];
          for (let index = 0; index < values.length; index += 1) {
            ArrayPrototypePush(headers, [StringPrototypeToLowerCase(entries[at][0]), text(values[index])]);
          }
        }
        this.#begin(status, statusText, headers, () => controller.resume());
      },
      onResponseData: (controller: any, chunk: Uint8Array) => {
        if (!this.#addChunk(chunk)) controller.pause();
      },
      onResponseEnd: () => this.#end(),
      onResponseError: (_controller: unknown, error: unknown) => this.fail(error),
    };
  }
}

/** Headers are bytes, one per character. */
const text = (value: unknown): string => value instanceof Uint8Array ? latin1(value) : `${value}`;
const latin1 = (bytes: Uint8Array): string =>
  core.loadExtScript("ext:deno_node/internal/buffer.mjs").Buffer.from(bytes).toString("latin1");

/** Sends the request through `dispatcher`. */
internals.dispatched = (dispatcher: any, request: Request, terminator: AbortSignal): Promise<Response> => {
  const url = new URL(request.currentUrl());
  const exchange = new Exchange(url.href);
  (terminator as any)[abortSignal.add](() => exchange.abort((terminator as any).reason));
  try {
    dispatcher.dispatch({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: request.method,
      headers: headersOf(request, url.protocol === "https:"),
      body: bodyOf(request),
      maxRedirections: 0,
    }, exchange.handler);
  } catch (error) {
    exchange.fail(error);
  }
  return exchange.response;
};

/** Discards the rest of a response that is not read. */
internals.leaveBody = (body: number | ReadableStream): void => {
  if (typeof body === "number") core.tryClose(body);
  else if (!body.locked) body.cancel().catch(() => {});
};
