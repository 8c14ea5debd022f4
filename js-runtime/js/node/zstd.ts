// The zstd decoder of `node:zlib` (`snapshot/corrections`): truncated data are an error, and errors
// have Node's names.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { internals, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { ZstdFrames } from "ext:core/ops";

const { TypedArrayPrototypeSubarray } = primordials;

/** https://github.com/facebook/zstd: lib/zstd_errors.h */
const ERROR_NAMES: Record<number, string> = {
  1: "GENERIC",
  10: "prefix_unknown",
  12: "version_unsupported",
  14: "frameParameter_unsupported",
  16: "frameParameter_windowTooLarge",
  20: "corruption_detected",
  22: "checksum_wrong",
  24: "literals_headerWrong",
  30: "dictionary_corrupted",
  32: "dictionary_wrong",
  44: "tableLog_tooLarge",
  46: "maxSymbolValue_tooLarge",
  48: "maxSymbolValue_tooSmall",
  60: "stage_wrong",
  62: "init_missing",
  64: "memory_allocation",
  66: "workSpace_tooSmall",
  70: "dstSize_tooSmall",
  72: "srcSize_wrong",
  74: "dstBuffer_null",
  80: "noForwardProgress_destFull",
  82: "noForwardProgress_inputEmpty",
};
/** Indexes of parameters, and the value of one that is not set. */
const WINDOW_LOG_MAX = 100;
const NOT_GIVEN = 0xffffffff;
/** `constants.ZSTD_e_end`, and zlib's error number. */
const FLUSH_END = 2;
const Z_BUF_ERROR = -5;

class ZstdDecoder {
  #frames: any = new ZstdFrames();
  /** Whether the input so far ends with a complete frame. */
  #isComplete = false;
  declare onerror: (message: string, errno: number, code: string) => void;

  init(parameters: Uint32Array): boolean {
    const limit = parameters[WINDOW_LOG_MAX];
    return limit === NOT_GIVEN || this.#frames.limit(limit);
  }

  write(
    flush: number,
    input: Uint8Array,
    inputAt: number,
    inputLength: number,
    output: Uint8Array,
    outputAt: number,
    outputLength: number,
    left: Uint32Array,
  ): void {
    const missing: number = this.#frames.decode(
      TypedArrayPrototypeSubarray(input, inputAt, inputAt + inputLength),
      TypedArrayPrototypeSubarray(output, outputAt, outputAt + outputLength),
      left,
    );
    // Without input and output the result is the hint for the next frame, so the state stays as it
    // is.
    if (inputLength > left[1] || outputLength > left[0]) this.#isComplete = missing === 0;
    if (missing < 0) {
      this.onerror(ZstdFrames.message(missing), -missing, `ZSTD_error_${ERROR_NAMES[-missing] ?? ERROR_NAMES[1]}`);
    } else if (flush === FLUSH_END && left[0] > 0 && !this.#isComplete) {
      this.onerror("unexpected end of file", Z_BUF_ERROR, "Z_BUF_ERROR");
    }
  }

  writeSync(...args: Parameters<ZstdDecoder["write"]>): void {
    this.write(...args);
  }

  reset(): void {
    this.#isComplete = false;
    this.#frames.reset();
  }

  params(): void {}

  close(): void {
    this.#frames = undefined;
  }
}

internals.zstdDecoder = () => new ZstdDecoder();
