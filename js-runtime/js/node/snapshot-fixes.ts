// Corrects files of Deno's Node layer that are in the snapshot, whose text snapshot/corrections.rs
// cannot change. Most corrections restore members that the newest Node, which that layer follows,
// has dropped and that older versions have.
// deno-lint-ignore-file
import { Dirent } from "ext:deno_node/internal/fs/utils.mjs";
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";

// https://nodejs.org/docs/latest-v20.x/api/fs.html#direntpath
Object.defineProperty(Dirent.prototype, "path", {
  get(this: { parentPath: string }) {
    return this.parentPath;
  },
  configurable: true,
});

// https://nodejs.org/docs/latest-v20.x/api/util.html#deprecated-apis
const util = core.loadExtScript("ext:deno_node/util.ts");
const { isDate, isNativeError, isRegExp } = util.types;
Object.assign(util, {
  isBoolean: (value: unknown) => typeof value === "boolean",
  isBuffer: (value: unknown) => {
    const { Buffer } = core.loadExtScript("ext:deno_node/internal/buffer.mjs");
    return Buffer.isBuffer(value);
  },
  isDate: (value: unknown) => isDate(value),
  isError: (value: unknown) => isNativeError(value) || value instanceof Error,
  isFunction: (value: unknown) => typeof value === "function",
  isNull: (value: unknown) => value === null,
  isNullOrUndefined: (value: unknown) => value === null || value === undefined,
  isNumber: (value: unknown) => typeof value === "number",
  isObject: (value: unknown) => value !== null && typeof value === "object",
  isPrimitive: (value: unknown) =>
    value === null || (typeof value !== "object" && typeof value !== "function"),
  isRegExp: (value: unknown) => isRegExp(value),
  isString: (value: unknown) => typeof value === "string",
  isSymbol: (value: unknown) => typeof value === "symbol",
  isUndefined: (value: unknown) => value === undefined,
});

util.types.isExternal = () => false;

// The name of `--no-color` in the tokens.
const { parseArgs } = util;
util.parseArgs = (config?: { allowNegative?: boolean }) => {
  const parsed = parseArgs(config);
  if (!config?.allowNegative || !parsed.tokens) return parsed;
  for (const token of parsed.tokens) {
    const isNegative = token.kind === "option" && token.rawName.startsWith("--no-");
    if (isNegative && token.value === undefined) token.name = token.rawName.slice("--no-".length);
  }
  return parsed;
};

// https://nodejs.org/docs/latest-v24.x/api/url.html#class-urlpattern
const { URLPattern } = core.loadExtScript("ext:deno_web/01_urlpattern.js");
Object.assign(core.loadExtScript("ext:deno_node/url.ts"), { URLPattern });

// `stream.isReadable()` and related functions read these members of a web stream. undici's `fetch`
// aborts a body only if it is readable.
const { _state, isReadableStreamDisturbed, ReadableStream, WritableStream } = core.loadExtScript(
  "ext:deno_web/06_streams.js",
);
type Stream = Record<symbol, string>;
const ofStreams: [prototype: object, name: string, get: (stream: Stream) => boolean][] = [
  [ReadableStream.prototype, "readable", (stream) => stream[_state] === "readable"],
  [ReadableStream.prototype, "errored", (stream) => stream[_state] === "errored"],
  [ReadableStream.prototype, "disturbed", isReadableStreamDisturbed],
  [WritableStream.prototype, "writable", (stream) => stream[_state] === "writable"],
  [WritableStream.prototype, "errored", (stream) => stream[_state] === "errored"],
];
for (const [prototype, name, get] of ofStreams) {
  Object.defineProperty(prototype, Symbol.for(`nodejs.stream.${name}`), {
    get(this: Stream) {
      return get(this);
    },
    configurable: true,
  });
}

// A caller that starts a port and then waits for `receiveMessageOnPort()` (tinypool) must find the
// messages in it: the port is read a moment later, as for listeners.
const { MessagePort } = core.loadExtScript("ext:deno_web/13_message_port.js");
const { PromisePrototypeThen, PromiseResolve, ReflectApply } = primordials;
const startPort = MessagePort.prototype.start;
MessagePort.prototype.start = function start(): void {
  PromisePrototypeThen(PromiseResolve(undefined), () => ReflectApply(startPort, this, []));
};

// The message of an abort without a reason is Node's, because some programs compare it.
const { AbortController, AbortSignal, signalAbort } = core.loadExtScript("ext:deno_web/03_abort_signal.js");
const aborted = (reason: unknown) =>
  reason === undefined ? new DOMException("This operation was aborted", "AbortError") : reason;
const { abort } = AbortController.prototype;
AbortController.prototype.abort = function (this: AbortController, reason?: unknown): void {
  ReflectApply(abort, this, [aborted(reason)]);
};
const abortedSignal = AbortSignal.abort;
AbortSignal.abort = function (reason?: unknown): AbortSignal {
  return ReflectApply(abortedSignal, this, [aborted(reason)]);
};

// The timeout fires in the async context in which it was requested.
const timeoutSignal = AbortSignal.timeout;
AbortSignal.timeout = function timeout(this: unknown, delay: number): AbortSignal {
  const signal = ReflectApply(timeoutSignal, this, arguments);
  signal[signalAbort] = internals.inContext(signal[signalAbort]);
  return signal;
};

const { TextDecoder } = core.loadExtScript("ext:deno_web/08_text_encoding.js");
const { decode } = TextDecoder.prototype;
TextDecoder.prototype.decode = function (this: TextDecoder): string {
  try {
    return ReflectApply(decode, this, arguments);
  } catch (error) {
    if ((error as Error)?.message !== "The encoded data is not valid") throw error;
    const code = "ERR_ENCODING_INVALID_ENCODED_DATA";
    throw Object.assign(new TypeError(`The encoded data was not valid for encoding ${this.encoding}`), { code });
  }
};

// Used by corrected code (`snapshot/corrections`).
internals.cloned = <T>(clone: () => T): T => {
  try {
    return clone();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new DOMException(error.message, "DataCloneError");
  }
};
internals.deciphered = (final: () => void): void => {
  try {
    final();
  } catch (error) {
    if ((error as { code?: string })?.code !== "ERR_CRYPTO_DECIPHER") throw error;
    throw new Error((error as Error).message);
  }
};
