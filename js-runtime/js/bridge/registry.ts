// The functions that extensions registered, by number. The program knows the
// numbers and decides what is called when; it never sees a function.
import { describe, hostSync } from "ext:js_runtime/host.ts";

import type { BashOperations } from "pi:pi-coding-agent/tool-runs.ts";

export type Handler = (event: Record<string, unknown>, ctx: unknown) => unknown;

export interface ToolDefinition {
  name: string;
  label?: string;
  description: string;
  parameters?: unknown;
  promptSnippet?: string;
  promptGuidelines?: string[];
  executionMode?: "sequential" | "parallel";
  renderShell?: "default" | "self";
  prepareArguments?(args: unknown): unknown;
  execute(
    toolCallId: string,
    params: unknown,
    signal: AbortSignal | undefined,
    onUpdate: ((partial: unknown) => void) | undefined,
    ctx: unknown,
  ): unknown;
}

export interface Command {
  description?: string;
  handler(args: string, ctx: unknown): unknown;
  getArgumentCompletions?(prefix: string): unknown;
}

export const handlers = new Map<number, Handler>();
export const tools = new Map<number, ToolDefinition>();
export const commands = new Map<number, Command>();
/** Kept for the terminal, which hosts them. */
export const renderers = new Map<number, unknown>();
export const shortcuts = new Map<number, unknown>();
/** What answers to `user_bash` brought, until the command has run. */
export const operations = new Map<number, { extension: number; by: BashOperations }>();

let last = 0;

/** Remembers `value` under a new number. */
export function keep<T>(map: Map<number, T>, value: T): number {
  last += 1;
  map.set(last, value);
  return last;
}

/**
 * Marks whose code runs next: a stop names this extension. The time that a queued
 * handler may take counts from here.
 */
export function enter(extension: number, what: string, queued = false): void {
  hostSync("enter", { extension, what, queued });
}

export function report(extension: number, event: string, error: unknown): void {
  hostSync("report", { extension, event, error: describe(error) });
}
