// Type checks for members of entries, which may be anything: files are edited, cut off, or written
// by other versions. No value is used before its type is checked.

export type Members = Record<string, unknown>;

export function members(value: unknown): Members {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : {};
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function number(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

/** Formats JSON for readers. */
export function json(value: unknown): string {
  try {
    return JSON.stringify(value, null, 2) ?? String(value);
  } catch {
    return "(nested too deeply to be shown)";
  }
}

export interface Picture {
  data: string;
  type: string;
}

/** Content of users and tools: a text, or blocks of text and images. */
export function content(value: unknown): { text: string; pictures: Picture[] } {
  if (typeof value === "string") return { text: value, pictures: [] };
  const texts: string[] = [];
  const pictures: Picture[] = [];
  for (const block of list(value).map(members)) {
    if (block.type === "text") texts.push(text(block.text));
    else if (block.type === "image") pictures.push({ data: text(block.data), type: text(block.mimeType) });
  }
  return { text: texts.join("\n"), pictures };
}
