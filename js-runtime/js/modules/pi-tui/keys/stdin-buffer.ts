// Splits terminal input into single keys and pastes. Input arrives in pieces of any size, and
// components expect one key at a time.
import { eventEmitter } from "pi:node.ts";

const ESC = "\x1b";
const PASTE_START = "\x1b[200~";
const PASTE_END = "\x1b[201~";

/** The mouse report of old xterms has three bytes of any kind behind its letter. */
const OLD_MOUSE = /^\x1b\[M[^]{3}/;
const SGR_MOUSE = /^\x1b\[<\d+;\d+;\d+[Mm]/;
/** Whatever ends with ST: DCS and APC. OSC may also end with BEL. */
const STRING = /^\x1b[P_][^]*?\x1b\\/;
const OSC = /^\x1b\][^]*?(?:\x07|\x1b\\)/;
const CSI = /^\x1b\[[^\x40-\x7e]*[\x40-\x7e]/;
const SS3 = /^\x1bO[^]/;
const META = /^\x1b[^]/;

/** The pattern that the sequence at the start of `text` must match to be whole. */
function patternOf(text: string): RegExp {
  switch (text[1]) {
    case "[":
      if (text[2] === "M") return OLD_MOUSE;
      return text[2] === "<" ? SGR_MOUSE : CSI;
    case "]":
      return OSC;
    case "P":
    case "_":
      return STRING;
    case "O":
      return SS3;
    default:
      return META;
  }
}

/** Takes whole keys from the start of `text`. The rest is a sequence that goes on. */
function split(text: string): { keys: string[]; rest: string } {
  const keys: string[] = [];
  let at = 0;
  while (at < text.length) {
    if (text[at] !== ESC) {
      keys.push(text[at]);
      at += 1;
      continue;
    }
    const rest = text.slice(at);
    const match = patternOf(rest).exec(rest);
    if (!match) return { keys, rest };
    keys.push(match[0]);
    at += match[0].length;
  }
  return { keys, rest: "" };
}

export interface StdinBufferOptions {
  /** Milliseconds to wait for the rest of an unfinished sequence. */
  timeout?: number;
}

type Bytes = Uint8Array & { toString(encoding?: string): string };
type Listener = (data: string) => void;

/** Emits `data` for each key and `paste` for each bracketed paste. */
export class StdinBuffer {
  private _events = eventEmitter();
  private buffer = "";
  /** The beginning of a paste whose end is still missing. */
  private _pasted: string | undefined;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private timeout: number;

  constructor(options: StdinBufferOptions = {}) {
    this.timeout = options.timeout ?? 10;
  }

  on(event: "data" | "paste", listener: Listener): this {
    this._events.on(event, listener);
    return this;
  }

  addListener(event: "data" | "paste", listener: Listener): this {
    return this.on(event, listener);
  }

  once(event: "data" | "paste", listener: Listener): this {
    this._events.once(event, listener);
    return this;
  }

  off(event: "data" | "paste", listener: Listener): this {
    this._events.off(event, listener);
    return this;
  }

  removeListener(event: "data" | "paste", listener: Listener): this {
    return this.off(event, listener);
  }

  removeAllListeners(event?: "data" | "paste"): this {
    this._events.removeAllListeners(event);
    return this;
  }

  emit(event: "data" | "paste", data: string): boolean {
    return this._events.emit(event, data);
  }

  listenerCount(event: "data" | "paste"): number {
    return this._events.listenerCount(event);
  }

  process(data: string | Uint8Array): void {
    clearTimeout(this._timer);
    const text = typeof data === "string" ? data : decode(data);
    if (text === "" && this.buffer === "") {
      this.emit("data", "");
      return;
    }
    this._onText(text);
    if (this.buffer === "") return;
    this._timer = setTimeout(() => {
      for (const key of this.flush()) this.emit("data", key);
    }, this.timeout);
  }

  private _onText(text: string): void {
    // A loop, since one read may hold any number of pastes.
    let more: string | undefined = text;
    while (more !== undefined) {
      more = this._pasted === undefined ? this._takeKeys(more) : this._takePaste(more);
    }
  }

  /** Returns what follows the start of a paste, if there is one. */
  private _takeKeys(text: string): string | undefined {
    const input = this.buffer + text;
    this.buffer = "";
    const start = input.indexOf(PASTE_START);
    const { keys, rest } = split(start < 0 ? input : input.slice(0, start));
    for (const key of keys) this.emit("data", key);
    if (start < 0) {
      this.buffer = rest;
      return undefined;
    }
    this._pasted = "";
    return input.slice(start + PASTE_START.length);
  }

  /** Returns what follows the end of the paste, if it is there. */
  private _takePaste(text: string): string | undefined {
    this._pasted += text;
    const pasted = this._pasted ?? "";
    const end = pasted.indexOf(PASTE_END);
    if (end < 0) return undefined;
    this._pasted = undefined;
    this.emit("paste", pasted.slice(0, end));
    return pasted.slice(end + PASTE_END.length) || undefined;
  }

  /** Gives up waiting: what is there is a key. */
  flush(): string[] {
    clearTimeout(this._timer);
    const rest = this.buffer;
    this.buffer = "";
    return rest === "" ? [] : [rest];
  }

  clear(): void {
    clearTimeout(this._timer);
    this.buffer = "";
    this._pasted = undefined;
  }

  getBuffer(): string {
    return this.buffer;
  }

  destroy(): void {
    this.clear();
  }
}

/** A single byte above 127 is what old terminals send for Alt. */
function decode(data: Uint8Array): string {
  if (data.length === 1 && data[0] > 127) return ESC + String.fromCharCode(data[0] - 128);
  return (data as Bytes).toString("utf8");
}
