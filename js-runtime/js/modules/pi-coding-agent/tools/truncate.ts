// Truncates tool output to the limits for a model: whole lines, up to a number of lines and of
// bytes.

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

/** The last bytes of `text`, starting with a whole character. */
function lastBytes(text: string, maxBytes: number): string {
  const bytes = utf8(text);
  let start = Math.max(0, bytes.length - maxBytes);
  while (start < bytes.length && (bytes[start] & 0xc0) === 0x80) start += 1;
  return new TextDecoder().decode(bytes.subarray(start));
}

function truncate(content: string, options: TruncationOptions, end: "head" | "tail"): TruncationResult {
  // Some callers pass `null` to omit a limit.
  const maxLines = options.maxLines ?? DEFAULT_MAX_LINES;
  const maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES;
  const lines = content.split("\n");
  const totalBytes = utf8(content).length;
  const whole: TruncationResult = {
    content,
    truncated: false,
    truncatedBy: null,
    totalLines: lines.length,
    totalBytes,
    outputLines: lines.length,
    outputBytes: totalBytes,
    lastLinePartial: false,
    firstLineExceedsLimit: false,
    maxLines,
    maxBytes,
  };
  if (whole.totalLines <= maxLines && totalBytes <= maxBytes) return whole;

  const cut: TruncationResult = { ...whole, truncated: true, truncatedBy: "lines" };
  if (end === "head" && utf8(lines[0]).length > maxBytes) {
    return { ...cut, truncatedBy: "bytes", content: "", outputLines: 0, outputBytes: 0, firstLineExceedsLimit: true };
  }
  const inOrder = end === "head" ? lines : lines.toReversed();
  const kept: string[] = [];
  let bytes = 0;
  for (const line of inOrder) {
    if (!(kept.length < maxLines)) break;
    const size = utf8(line).length + (kept.length > 0 ? 1 : 0);
    if (bytes + size > maxBytes) {
      cut.truncatedBy = "bytes";
      if (kept.length > 0) break;
      // The end of a long line is more useful than nothing.
      kept.push(lastBytes(line, maxBytes));
      bytes = utf8(kept[0]).length;
      cut.lastLinePartial = true;
      break;
    }
    kept.push(line);
    bytes += size;
  }
  // One more line would have exceeded the limit.
  if (kept.length >= maxLines && bytes <= maxBytes) cut.truncatedBy = "lines";
  const output = end === "head" ? kept : kept.toReversed();
  return { ...cut, content: output.join("\n"), outputLines: kept.length, outputBytes: bytes };
}

/** Keeps the beginning, as for files. */
export function truncateHead(content: string, options: TruncationOptions = {}): TruncationResult {
  return truncate(content, options, "head");
}

/** Keeps the end, as for the output of commands. */
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
