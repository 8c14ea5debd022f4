// Tools that are made by a function. Works with one TypeBox only: with both installed, a generic
// schema cannot be attributed to one of them.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import type { Static, TObject } from "typebox";

/** The parameters of `execute` have the type that the author's own `Static` returns. */
export function register<T extends TObject>(pi: ExtensionAPI, parameters: T, run: (params: Static<T>) => string) {
  pi.registerTool({
    name: "made",
    label: "Made",
    description: "Made by a function",
    parameters,
    execute: async (_id, params) => ({ content: [{ type: "text", text: run(params) }], details: undefined }),
  });
}
