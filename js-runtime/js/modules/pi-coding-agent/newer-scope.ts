// `@earendil-works/pi-coding-agent`: the same under the scope of newer versions.
import { createBashTool as plain, createBashToolDefinition } from "pi:pi-coding-agent.ts";

export * from "pi:pi-coding-agent.ts";

/** With what the system prompt says of it, which extensions take over with the rest. */
export function createBashTool(...args: Parameters<typeof plain>) {
  const { promptSnippet, promptGuidelines } = createBashToolDefinition(...args);
  return { ...plain(...args), promptSnippet, promptGuidelines };
}
