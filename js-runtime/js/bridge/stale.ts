// Whether this set of extensions was replaced while a command of it goes on: what would do
// nothing any more says so. The program knows best; here is only when to ask.
import { hostSync } from "ext:js_runtime/bridge/host.ts";

let wasReplaced = false;

/** By one of its own commands, which lives on to see it. */
export function replaced(): void {
  wasReplaced = true;
}

/** Throws if the set was replaced. */
export function checkStale(): void {
  if (wasReplaced) hostSync("stale");
}
