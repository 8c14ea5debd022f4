// Decodes response bodies with `node:zlib`, as undici (the `fetch` of Node) does: up to five
// encodings in a row.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";

const {
  ArrayPrototypeForEach,
  ArrayPrototypeIncludes,
  ArrayPrototypeJoin,
  ArrayPrototypeMap,
  ArrayPrototypePush,
  ReflectApply,
  StringPrototypeSplit,
  StringPrototypeToLowerCase,
  StringPrototypeTrim,
  SymbolAsyncIterator,
  TypeError,
  TypedArrayPrototypeGetByteLength,
  Uint8Array,
} = primordials;
const { ReadableStream } = core.loadExtScript("ext:deno_web/06_streams.js");
const abortSignal = core.loadExtScript("ext:deno_web/03_abort_signal.js");

type Bytes = AsyncIterable<Uint8Array>;
type Decoder = Bytes & { destroy(): void };
/** `node:zlib` is loaded when a body is first decoded: most programs never do that. */
type Zlib = Record<string, (options?: object) => Decoder> & { constants: Record<string, number> };

/** The limit in https://github.com/nodejs/undici: lib/web/fetch/index.js */
const MAX_ENCODINGS = 5;

/** Decodes one body. Holds its decoders, so that they can be destroyed when the body is cancelled. */
class Decoding {
  #zlib: Zlib = core.loadExtScript("ext:deno_node/zlib.js");
  #pipeline = core.createLazyLoader("node:stream")().pipeline;
  #decoders: Decoder[] = [];

  /** A truncated body ends without an error, as in Node. */
  #options(operation: string): object {
    const flush = this.#zlib.constants[operation];
    return { flush, finishFlush: flush };
  }

  #through(source: Bytes, decoder: Decoder): Bytes {
    ArrayPrototypePush(this.#decoders, decoder);
    this.#pipeline(source, decoder, () => {});
    return decoder;
  }

  gzip(source: Bytes): Bytes {
    return this.#through(source, this.#zlib.createGunzip(this.#options("Z_SYNC_FLUSH")));
  }

  br(source: Bytes): Bytes {
    return this.#through(source, this.#zlib.createBrotliDecompress(this.#options("BROTLI_OPERATION_FLUSH")));
  }

  zstd(source: Bytes): Bytes {
    const { ZSTD_e_continue: flush, ZSTD_e_end: finishFlush } = this.#zlib.constants;
    return this.#through(source, this.#zlib.createZstdDecompress({ flush, finishFlush }));
  }

  /** Some servers omit the header of the format; the first byte shows whether it is there. */
  async *deflate(source: Bytes): AsyncGenerator<Uint8Array> {
    const chunks = source[SymbolAsyncIterator]();
    let first = await chunks.next();
    while (!first.done && TypedArrayPrototypeGetByteLength(first.value) === 0) first = await chunks.next();
    if (first.done) return;
    const rest = async function* () {
      for (let chunk = first; !chunk.done; chunk = await chunks.next()) yield chunk.value;
    };
    const hasHead = (first.value[0] & 0x0f) === 8;
    const make = hasHead ? this.#zlib.createInflate : this.#zlib.createInflateRaw;
    yield* this.#through(rest(), ReflectApply(make, this.#zlib, [this.#options("Z_SYNC_FLUSH")]));
  }

  end(): void {
    ArrayPrototypeForEach(this.#decoders, (decoder: Decoder) => decoder.destroy());
  }
}

type Coding = "gzip" | "deflate" | "br" | "zstd";
const CODINGS: Record<string, Coding> = {
  // @ts-ignore: no names but these
  __proto__: null,
  "x-gzip": "gzip",
  gzip: "gzip",
  deflate: "deflate",
  br: "br",
  zstd: "zstd",
};

type Response = { headers: [string, string][] };

/** The encodings to decode, the last one applied first. Empty if one of them is unknown. */
internals.codingsOf = ({ headers }: Response): Coding[] => {
  const names: string[] = [];
  for (let at = 0; at < headers.length; at += 1) {
    if (headers[at][0] === "content-encoding") {
      ArrayPrototypePush(names, headers[at][1]);
    }
  }
  if (names.length === 0) return [];
  const words: string[] = StringPrototypeSplit(ArrayPrototypeJoin(names, ","), ",");
  if (words.length > MAX_ENCODINGS) {
    const cause = new Error(`too many content-encodings in response: ${words.length}, maximum allowed is ${MAX_ENCODINGS}`);
    throw new TypeError("fetch failed", { cause });
  }
  const codings = ArrayPrototypeMap(
    words,
    (word: string) => CODINGS[StringPrototypeToLowerCase(StringPrototypeTrim(word))],
  );
  return ArrayPrototypeIncludes(codings, undefined) ? [] : codings;
};

internals.decoded = (
  body: ReadableStream<Uint8Array>,
  codings: Coding[],
  terminator: AbortSignal,
): ReadableStream<Uint8Array> => {
  const decoding = new Decoding();
  const reader = body.getReader();
  /** The error of the connection, which describes itself. */
  let broken: unknown;
  const received = async function* (): AsyncGenerator<Uint8Array> {
    try {
      for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) yield chunk.value;
    } catch (error) {
      throw broken = error;
    }
  };
  let decoded: Bytes = received();
  for (let at = codings.length - 1; at >= 0; at -= 1) decoded = decoding[codings[at]](decoded);
  const chunks = decoded[SymbolAsyncIterator]();
  return new ReadableStream({
    type: "bytes",
    start(controller: ReadableByteStreamController) {
      // Chunks that are decoded already are dropped as well.
      (terminator as any)[abortSignal.add](() => {
        controller.error(terminator.reason);
        decoding.end();
      });
    },
    async pull(controller: ReadableByteStreamController) {
      try {
        let chunk = await chunks.next();
        while (!chunk.done && TypedArrayPrototypeGetByteLength(chunk.value) === 0) chunk = await chunks.next();
        if (chunk.done) {
          controller.close();
          controller.byobRequest?.respond(0);
        } else {
          // The chunk is a part of a larger buffer, and a byte stream detaches what it gets, so it
          // is copied.
          controller.enqueue(new Uint8Array(chunk.value));
        }
      } catch (error) {
        controller.error(error === broken ? error : new TypeError("terminated", { cause: error }));
      }
    },
    async cancel(reason: unknown) {
      await reader.cancel(reason);
      decoding.end();
    },
  });
};
