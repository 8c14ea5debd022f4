// Bodies of responses in encodings, which are decoded as undici does, which is Node's: with
// `node:zlib`, five in a row.
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
/** Made when a body is first decoded: most programs never see one. */
type Zlib = Record<string, (options?: object) => Decoder> & { constants: Record<string, number> };

/** https://github.com/nodejs/undici: lib/web/fetch/index.js */
const MOST = 5;

/** One body, with what is to be ended when nobody wants it any more. */
class Decoding {
  #zlib: Zlib = core.loadExtScript("ext:deno_node/zlib.js");
  #pipeline = core.createLazyLoader("node:stream")().pipeline;
  #decoders: Decoder[] = [];

  /** A body that ends too early is what has come of it, as in Node. */
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

  /** Some servers leave the head of the format out; its first byte tells. */
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

/** What is to be decoded, the last of them first; nothing if there is one that nobody knows. */
internals.codingsOf = ({ headers }: Response): Coding[] => {
  const given: string[] = [];
  for (let at = 0; at < headers.length; at += 1) {
    if (headers[at][0] === "content-encoding") {
      ArrayPrototypePush(given, headers[at][1]);
    }
  }
  if (given.length === 0) return [];
  const words: string[] = StringPrototypeSplit(ArrayPrototypeJoin(given, ","), ",");
  if (words.length > MOST) {
    const cause = new Error(`too many content-encodings in response: ${words.length}, maximum allowed is ${MOST}`);
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
  /** Of the connection, which says itself what it is. */
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
      // What is decoded already is not read, either.
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
          // Copied: a stream of bytes takes what it is given, and this is a part of more.
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
