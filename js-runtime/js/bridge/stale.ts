// Checks whether this generation was replaced while one of its commands goes on, so that calls
// without effect throw. The program knows the answer; this module decides when to ask for it.
import { hostSync } from "ext:js_runtime/bridge/host.ts";

let wasReplaced = false;

/** Called when one of the generation's own commands replaced it. */
export function markReplaced(): void {
  wasReplaced = true;
}

/** Throws if the generation was replaced. */
export function checkStale(): void {
  if (wasReplaced) hostSync("stale.check");
}
