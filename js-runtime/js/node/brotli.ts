// Reports broken and truncated Brotli data. Deno's `zlib` takes both for the end of the data.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";

const { ReflectApply, StringPrototypeReplace, Uint8Array, Uint32Array } = primordials;

/** The decoder as the code in `snapshot/corrections.rs` has it. */
type Decoder = { onerror: (message: string, errno: number, code?: string) => void };
type Write = (this: Decoder, ...args: unknown[]) => void;

/**
 * Wraps the `write` of a decoder so that it reports errors: the decoder calls `onerror`, and does
 * nothing else if it got an empty callback at its initialisation.
 */
internals.brotliDecoding = (write: Write, FINISH: number, BUF_ERROR: number): Write => {
  const step = (decoder: Decoder, args: unknown[]) => {
    const { onerror } = decoder;
    let failed: { errno: number; code: string } | undefined;
    decoder.onerror = (name, errno) => {
      failed = { errno, code: StringPrototypeReplace(name, "ERR_", "ERR__") };
    };
    try {
      ReflectApply(write, decoder, args);
    } finally {
      decoder.onerror = onerror;
    }
    return failed;
  };
  // The decoder does not report that its input is incomplete, so it is offered one more byte: a
  // decoder that is done leaves that byte unread.
  const wantsMore = (decoder: Decoder) => {
    const remaining = new Uint32Array(2);
    const failed = step(decoder, [FINISH, new Uint8Array(1), 0, 1, new Uint8Array(64), 0, 64, remaining]);
    return failed !== undefined || remaining[1] === 0;
  };
  return function (this: Decoder, ...args: unknown[]) {
    const failed = step(this, args);
    const [outputLeft, inputLeft] = args[7] as number[];
    if (failed) {
      this.onerror("Decompression failed", failed.errno, failed.code);
    } else if (args[0] === FINISH && inputLeft === 0 && outputLeft > 0 && wantsMore(this)) {
      this.onerror("unexpected end of file", BUF_ERROR, "Z_BUF_ERROR");
    }
  };
};
