// `@earendil-works/pi-coding-agent`: the same under the scope of newer versions, whose
// number it says. Extensions written for them refuse to work in older ones.
import { createBashTool as plain, createBashToolDefinition } from "pi:pi-coding-agent.ts";

export * from "pi:pi-coding-agent.ts";

/** The version whose additions are here, as far as they are. */
export const VERSION = "1.5.2";

/** With what the system prompt says of it, which extensions take over with the rest. */
export function createBashTool(...args: Parameters<typeof plain>) {
  const { promptSnippet, promptGuidelines } = createBashToolDefinition(...args);
  return { ...plain(...args), promptSnippet, promptGuidelines };
}
