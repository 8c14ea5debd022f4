// Corrects bodies of requests and responses. Node accepts iterated bodies (such as its streams) of
// texts and of all that a `Buffer` is made from; Deno accepts bytes only. A body that breaks off
// fails with undici's error, because retry code compares its text.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";

const {
  Error,
  ObjectAssign,
  ObjectPrototypeIsPrototypeOf,
  PromisePrototype,
  PromisePrototypeCatch,
  StringPrototypeStartsWith,
  SymbolAsyncIterator,
  TypedArrayPrototypeGetByteLength,
  TypeError,
  Uint8Array,
} = primordials;
const webidl = core.loadExtScript("ext:deno_webidl/00_webidl.js");
const { Buffer } = core.loadExtScript("ext:deno_node/internal/buffer.mjs");

// Loading this file sets the converter that is replaced here.
const { InnerBody } = core.loadExtScript("ext:deno_fetch/22_body.js");

// The bytes are copied because a byte stream detaches the buffers that it gets.
const toBytes = (value: any) => new Uint8Array(Buffer.isBuffer(value) ? value : Buffer.from(value));
const toSequence = webidl.createAsyncSequenceConverter(toBytes);

webidl.converters["async_sequence<Uint8Array>"] = (body: any, ...context: unknown[]) => {
  // An array without an iterator is converted to text.
  if (body[SymbolAsyncIterator] == null) return webidl.converters.DOMString(body, ...context);
  const sequence = toSequence(body, ...context);
  const { open } = sequence;
  sequence.open = (...context: unknown[]) => {
    const chunks = open(...context);
    const { next } = chunks;
    // Empty chunks are skipped.
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

/** Converts an error of a body to that of Node's `fetch`. */
function terminatedError(error: any): unknown {
  const message = `${error?.message}`;
  const broken = StringPrototypeStartsWith(message, "error reading a body from connection");
  if (!broken) return error;
  const cause = ObjectAssign(new Error("other side closed"), { name: "SocketError", code: "UND_ERR_SOCKET" });
  return new TypeError("terminated", { cause });
}

// Called for streams (`snapshot/corrections`); `consume` below covers bodies that are read as a
// whole.
internals.terminated = terminatedError;
const { consume } = InnerBody.prototype;
InnerBody.prototype.consume = function () {
  if (this.unusable()) throw new TypeError("Body is unusable: Body has already been read");
  const body = consume.call(this);
  if (!ObjectPrototypeIsPrototypeOf(PromisePrototype, body)) return body;
  return PromisePrototypeCatch(body, (error: unknown) => {
    throw terminatedError(error);
  });
};
