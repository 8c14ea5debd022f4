// Bodies of requests and responses that are iterated, as streams of Node are: Deno takes
// only bytes of them, Node what a `Buffer` is made of, texts above all.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, primordials } from "ext:core/mod.js";

const { SymbolAsyncIterator, TypedArrayPrototypeGetByteLength, Uint8Array } = primordials;
const webidl = core.loadExtScript("ext:deno_webidl/00_webidl.js");
const { Buffer } = core.loadExtScript("ext:deno_node/internal/buffer.mjs");

// Sets the converter that is replaced here.
core.loadExtScript("ext:deno_fetch/22_body.js");

// Copied: what is given to a stream of bytes is taken away from its owner.
const toBytes = (value: any) => new Uint8Array(Buffer.isBuffer(value) ? value : Buffer.from(value));
const toSequence = webidl.createAsyncSequenceConverter(toBytes);

webidl.converters["async_sequence<Uint8Array>"] = (body: any, ...context: unknown[]) => {
  // An array is its text.
  if (body[SymbolAsyncIterator] == null) return webidl.converters.DOMString(body, ...context);
  const sequence = toSequence(body, ...context);
  const { open } = sequence;
  sequence.open = (...context: unknown[]) => {
    const chunks = open(...context);
    const { next } = chunks;
    // Nothing at all is no chunk.
    chunks.next = async () => {
      while (true) {
        const chunk = await next();
        if (chunk.done || TypedArrayPrototypeGetByteLength(chunk.value) > 0) return chunk;
      }
    };
    return chunks;
  };
  return sequence;
};
