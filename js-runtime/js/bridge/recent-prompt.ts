// Makes the session look busy from the call of a prompt on, for the extension that sends it and
// checks at once. With extensions in a process of their own the run may be over by then, which
// cannot happen in the original, where JavaScript has to return first.
import { setTimeout } from "ext:js_runtime/primordials.ts";

let prompts = 0;
let isFresh = false;

/**
 * Called when a prompt is sent. The session counts as busy until JavaScript has returned to its
 * event loop.
 */
export function markPrompted(): void {
  const prompt = (prompts += 1);
  isFresh = true;
  setTimeout(() => {
    if (prompt === prompts) isFresh = false;
  }, 0);
}

/** Called when the program has reported that the session is idle. */
export function markIdle(): void {
  isFresh = false;
}

export const isJustPrompted = (): boolean => isFresh;
