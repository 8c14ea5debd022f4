// Tools that are made by a function. Only where there is one TypeBox: with both, nobody can tell
// whose a schema is that is not known yet.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import type { Static, TObject } from "typebox";

/** What `execute` gets is what the author's own `Static` says. */
export function register<T extends TObject>(pi: ExtensionAPI, parameters: T, run: (params: Static<T>) => string) {
  pi.registerTool({
    name: "made",
    label: "Made",
    description: "Made by a function",
    parameters,
    execute: async (_id, params) => ({ content: [{ type: "text", text: run(params) }], details: undefined }),
  });
}
