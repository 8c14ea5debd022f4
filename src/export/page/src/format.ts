// Formats numbers and times for readers.

const ESCAPE_SEQUENCES =
  // OSC, DCS and the like with their end, CSI, and the short ones; then those of one C1 character.
  /\u001b(?:[\]P_^X][^]{0,4096}?(?:\u0007|\u001b\\)|\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])|\u009b[0-?]*[ -/]*[@-~]/g;
/** Control characters, on which a terminal acts without showing them. */
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
/** A line that was overwritten from its beginning, as by a progress bar. */
const WRITTEN_OVER = /[^\n]*\r(?=[^\r\n])/g;

/** The text that a terminal would show, without colours. */
export function withoutEscapes(text: string): string {
  const plain = text.replace(ESCAPE_SEQUENCES, "").replace(CONTROLS, "");
  return plain.includes("\r") ? plain.replace(WRITTEN_OVER, "").replaceAll("\r", "") : plain;
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${value.toLocaleString("en-US")} ${value === 1 ? one : many}`;
}

/** 950, 12.3k, 4.5M */
export function tokens(value: number): string {
  if (value < 1000) return String(value);
  if (value < 1e6) return `${(value / 1000).toFixed(value < 1e5 ? 1 : 0)}k`;
  return `${(value / 1e6).toFixed(1)}M`;
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  if (value < 1024 * 1024) return `${(value / 1024).toFixed(1)} KB`;
  return `${(value / 1024 / 1024).toFixed(1)} MB`;
}

export function dollars(value: number): string {
  return `$${value.toFixed(value > 0 && value < 0.1 ? 4 : 2)}`;
}

function date(timestamp: unknown): Date | null {
  if (typeof timestamp !== "string" && typeof timestamp !== "number") return null;
  const parsed = new Date(timestamp);
  return Number.isNaN(parsed.getTime()) ? null : parsed;
}

const two = (value: number): string => String(value).padStart(2, "0");

export function time(timestamp: unknown): string {
  const at = date(timestamp);
  return at ? `${two(at.getHours())}:${two(at.getMinutes())}` : "";
}

export function dateTime(timestamp: unknown): string {
  const at = date(timestamp);
  return at ? `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${time(timestamp)}` : "";
}

export function firstLine(text: string, limit = 200): string {
  const line = text.trimStart().split("\n", 1)[0] ?? "";
  return line.length > limit ? `${line.slice(0, limit)}\u2026` : line;
}
