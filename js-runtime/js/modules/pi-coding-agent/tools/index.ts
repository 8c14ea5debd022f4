// Functions with which extensions define tools and inspect tool events.
import { host, hostSync } from "pi:host.ts";
import { path } from "pi:node.ts";

interface ToolEvent {
  toolName: string;
}

/** Keeps the types of a tool that is defined separately. */
export function defineTool<T>(tool: T): T {
  return tool;
}

export function isToolCallEventType(toolName: string, event: ToolEvent): boolean {
  return event.toolName === toolName;
}

const isResultOf = (name: string) => (event: ToolEvent): boolean => event.toolName === name;

export const isBashToolResult = isResultOf("bash");
export const isPowerShellToolResult = isResultOf("powershell");
export const isReadToolResult = isResultOf("read");
export const isEditToolResult = isResultOf("edit");
export const isWriteToolResult = isResultOf("write");
export const isGrepToolResult = isResultOf("grep");
export const isFindToolResult = isResultOf("find");
export const isLsToolResult = isResultOf("ls");

/**
 * Runs `fn` while no other code changes the file: neither the built-in tools nor another caller of
 * this function.
 */
export async function withFileMutationQueue<T>(filePath: string, fn: () => Promise<T>): Promise<T> {
  const { token } = await host<{ token: number }>("file_mutation.acquire", {
    path: path().resolve(filePath),
  });
  try {
    return await fn();
  } finally {
    hostSync("file_mutation.release", { token });
  }
}
