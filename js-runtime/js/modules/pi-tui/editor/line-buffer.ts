// An editable line of text: cursor, words, kill ring and undo, without any notion of keys or
// screens.

interface State {
  value: string;
  cursor: number;
}

let segmenter: Intl.Segmenter | undefined;

/** Splits a text into the characters that a reader sees. */
export function graphemes(text: string): string[] {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

const PUNCTUATION = /[(){}[\]<>.,;:'"!?+\-=*/\\|&%^$#@~`]/;

export type Kind = "space" | "punctuation" | "word";

export function kindOf(grapheme: string): Kind {
  if (/\s/.test(grapheme)) return "space";
  return PUNCTUATION.test(grapheme) ? "punctuation" : "word";
}

/** The length of the word at the start of `parts`, with the spaces before it. */
function wordLength(parts: string[]): number {
  const start = parts.findIndex((part) => kindOf(part) !== "space");
  if (start < 0) return parts.join("").length;
  const kind = kindOf(parts[start]);
  const end = parts.findIndex((part, i) => i > start && kindOf(part) !== kind);
  return parts.slice(0, end < 0 ? undefined : end).join("").length;
}

export class LineBuffer {
  value = "";
  /** The offset in UTF-16 units, always between two graphemes. */
  cursor = 0;
  private undoStack: State[] = [];
  private killRing: string[] = [];
  /** The last operation: typing and killing continue the previous one of their kind. */
  private last: "type" | "kill" | "yank" | undefined;

  private get before(): string {
    return this.value.slice(0, this.cursor);
  }

  private get after(): string {
    return this.value.slice(this.cursor);
  }

  private remember(): void {
    this.undoStack.push({ value: this.value, cursor: this.cursor });
  }

  private replace(from: number, to: number, text = ""): void {
    this.value = this.value.slice(0, from) + text + this.value.slice(to);
    this.cursor = from + text.length;
  }

  /** Types text; text typed without a space in between is undone together. */
  type(text: string): void {
    if (this.last !== "type" || /\s/.test(text)) this.remember();
    this.replace(this.cursor, this.cursor, text);
    this.last = "type";
  }

  paste(text: string): void {
    this.remember();
    this.replace(this.cursor, this.cursor, text);
    this.last = undefined;
  }

  undo(): void {
    const state = this.undoStack.pop();
    if (!state) return;
    Object.assign(this, state);
    this.last = undefined;
  }

  move(to: "left" | "right" | "start" | "end" | "wordLeft" | "wordRight"): void {
    this.last = undefined;
    this.cursor += this.distance(to);
  }

  private distance(to: Parameters<LineBuffer["move"]>[0]): number {
    switch (to) {
      case "left":
        return -(graphemes(this.before).at(-1)?.length ?? 0);
      case "right":
        return graphemes(this.after)[0]?.length ?? 0;
      case "start":
        return -this.cursor;
      case "end":
        return this.after.length;
      case "wordLeft":
        return -wordLength(graphemes(this.before).reverse());
      case "wordRight":
        return wordLength(graphemes(this.after));
    }
  }

  /** Deletes the text that `move` would pass. */
  remove(to: "left" | "right"): void {
    this.last = undefined;
    const distance = this.distance(to);
    if (distance === 0) return;
    this.remember();
    this.replace(Math.min(this.cursor, this.cursor + distance), Math.max(this.cursor, this.cursor + distance));
  }

  /** Cuts the text that `move` would pass; `yank` inserts it again. */
  kill(to: "start" | "end" | "wordLeft" | "wordRight"): void {
    const distance = this.distance(to);
    if (distance === 0) return;
    this.remember();
    const [from, end] = [this.cursor, this.cursor + distance].sort((a, b) => a - b);
    const text = this.value.slice(from, end);
    const earlier = this.last === "kill" ? (this.killRing.pop() ?? "") : "";
    this.killRing.push(distance < 0 ? text + earlier : earlier + text);
    this.replace(from, end);
    this.last = "kill";
  }

  yank(): void {
    const text = this.killRing.at(-1);
    if (text === undefined) return;
    this.remember();
    this.replace(this.cursor, this.cursor, text);
    this.last = "yank";
  }

  /** Replaces the last yanked text by the one that was killed before it. */
  yankPop(): void {
    const yanked = this.killRing.at(-1);
    if (this.last !== "yank" || yanked === undefined || this.killRing.length < 2) return;
    this.remember();
    this.killRing.unshift(this.killRing.pop() ?? "");
    this.replace(this.cursor - yanked.length, this.cursor, this.killRing.at(-1));
    this.last = "yank";
  }
}
