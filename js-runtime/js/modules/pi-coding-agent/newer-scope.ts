// `@earendil-works/pi-coding-agent`: the same API under the scope of newer versions.
import { createBashTool as plain, createBashToolDefinition } from "pi:pi-coding-agent.ts";

export * from "pi:pi-coding-agent.ts";

/** Includes the tool's texts for the system prompt, which extensions copy with the other members. */
export function createBashTool(...args: Parameters<typeof plain>) {
  const { promptSnippet, promptGuidelines } = createBashToolDefinition(...args);
  return { ...plain(...args), promptSnippet, promptGuidelines };
}
