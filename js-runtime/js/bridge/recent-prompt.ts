// A prompt of an extension is work from the call on, for the extension that says it and looks
// at once: with extensions in a process of their own its run may be over by then, which
// cannot be in the original, where JavaScript has to return first.
import { setTimeout } from "ext:js_runtime/primordials.ts";

let prompts = 0;
let isFresh = false;

/** A prompt was said. It counts as work until JavaScript has returned to its event loop. */
export function markPrompted(): void {
  const prompt = (prompts += 1);
  isFresh = true;
  setTimeout(() => {
    if (prompt === prompts) isFresh = false;
  }, 0);
}

/** The program has said that the session is idle. */
export function markIdle(): void {
  isFresh = false;
}

export const isJustPrompted = (): boolean => isFresh;
