// The full-screen terminal of newer versions, as far as extensions use it.
import { patchedClass } from "pi:unavailable-classes.ts";

/** True for a terminal that knows the size of its visible part, which only a full-screen one does. */
export const isViewportTUI = (_tui: unknown): false => false;

export const TuiAltScreen = patchedClass(
  "TuiAltScreen",
  "@mariozechner/pi-tui",
  "there is no full-screen terminal yet; isViewportTUI() says so",
);
