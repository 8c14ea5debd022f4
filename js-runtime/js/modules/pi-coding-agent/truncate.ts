// Cutting tool output to what a model should be given: whole lines, up to a number
// of lines and of bytes, whichever is reached first.

export const DEFAULT_MAX_LINES = 2000;
export const DEFAULT_MAX_BYTES = 50 * 1024;
const MAX_LINE_CHARACTERS = 500;

export interface TruncationOptions {
  maxLines?: number;
  maxBytes?: number;
}

export interface TruncationResult {
  content: string;
  truncated: boolean;
  truncatedBy: "lines" | "bytes" | null;
  totalLines: number;
  totalBytes: number;
  outputLines: number;
  outputBytes: number;
  lastLinePartial: boolean;
  firstLineExceedsLimit: boolean;
  maxLines: number;
  maxBytes: number;
}

export function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes}B`;
  const kilobytes = bytes / 1024;
  return kilobytes < 1024 ? `${kilobytes.toFixed(1)}KB` : `${(kilobytes / 1024).toFixed(1)}MB`;
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

/** The last bytes of `text`, beginning with a whole character. */
function lastBytes(text: string, maxBytes: number): string {
  const bytes = utf8(text);
  let start = Math.max(0, bytes.length - maxBytes);
  while (start < bytes.length && (bytes[start] & 0xc0) === 0x80) start += 1;
  return new TextDecoder().decode(bytes.subarray(start));
}

function truncate(
  content: string,
  { maxLines = DEFAULT_MAX_LINES, maxBytes = DEFAULT_MAX_BYTES }: TruncationOptions,
  end: "head" | "tail",
): TruncationResult {
  const lines = content.split("\n");
  const whole: TruncationResult = {
    content,
    truncated: false,
    truncatedBy: null,
    totalLines: lines.length,
    totalBytes: utf8(content).length,
    outputLines: lines.length,
    outputBytes: utf8(content).length,
    lastLinePartial: false,
    firstLineExceedsLimit: false,
    maxLines,
    maxBytes,
  };
  if (whole.totalLines <= maxLines && whole.totalBytes <= maxBytes) return whole;

  const inOrder = end === "head" ? lines : lines.toReversed();
  const kept: string[] = [];
  let bytes = 0;
  let truncatedBy: "lines" | "bytes" = "lines";
  for (const line of inOrder.slice(0, maxLines)) {
    const size = utf8(line).length + (kept.length > 0 ? 1 : 0);
    if (bytes + size > maxBytes) {
      truncatedBy = "bytes";
      break;
    }
    kept.push(line);
    bytes += size;
  }
  const cut = { ...whole, truncated: true, truncatedBy };
  if (kept.length === 0 && truncatedBy === "bytes") {
    if (end === "head") {
      return { ...cut, content: "", outputLines: 0, outputBytes: 0, firstLineExceedsLimit: true };
    }
    // The end of a long line says more than nothing.
    const part = lastBytes(inOrder[0], maxBytes);
    const outputBytes = utf8(part).length;
    return { ...cut, content: part, outputLines: 1, outputBytes, lastLinePartial: true };
  }
  const output = end === "head" ? kept : kept.toReversed();
  return { ...cut, content: output.join("\n"), outputLines: kept.length, outputBytes: bytes };
}

/** Keeps the beginning: for files. */
export function truncateHead(content: string, options: TruncationOptions = {}): TruncationResult {
  return truncate(content, options, "head");
}

/** Keeps the end: for the output of commands. */
export function truncateTail(content: string, options: TruncationOptions = {}): TruncationResult {
  return truncate(content, options, "tail");
}

export function truncateLine(
  line: string,
  maxChars = MAX_LINE_CHARACTERS,
): { text: string; wasTruncated: boolean } {
  if (line.length <= maxChars) return { text: line, wasTruncated: false };
  return { text: `${line.slice(0, maxChars)}... [truncated]`, wasTruncated: true };
}
