// Arguments and common parts of tool renderers.
import { getCapabilities } from "pi:pi-tui/image/capabilities.ts";
import type { Component } from "pi:pi-tui/component.ts";
import { imageFallback } from "pi:pi-tui/image/index.ts";
import { getImageDimensions } from "pi:pi-tui/image/size.ts";
import { Text } from "pi:pi-tui/text.ts";
import { os } from "pi:node.ts";
import { keyHint } from "pi:pi-coding-agent/key-hints.ts";
import { printable } from "pi:pi-coding-agent/text/plain-text.ts";
import type { Theme } from "pi:pi-coding-agent/theme/index.ts";
import { DEFAULT_MAX_BYTES, formatSize } from "pi:pi-coding-agent/tools/truncate.ts";

export interface ResultContent {
  type: string;
  text?: string;
  data?: string;
  mimeType?: string;
}

export interface Truncation {
  truncated?: boolean;
  truncatedBy?: "lines" | "bytes" | null;
  outputLines?: number;
  totalLines?: number;
  maxLines?: number;
  maxBytes?: number;
  firstLineExceedsLimit?: boolean;
}

export interface ToolResult {
  content: ResultContent[];
  details?: unknown;
  isError?: boolean;
}

export interface RenderContext {
  args: unknown;
  toolCallId: string;
  /** Draws the row again. */
  invalidate(): void;
  /** The component that the renderer returned last time. */
  lastComponent: Component | undefined;
  state: Record<string, unknown>;
  cwd: string;
  executionStarted: boolean;
  argsComplete: boolean;
  isPartial: boolean;
  expanded: boolean;
  showImages: boolean;
  isError: boolean;
}

export interface RenderOptions {
  expanded: boolean;
  isPartial: boolean;
}

export interface ToolRenderers {
  renderShell?: "default" | "self";
  renderCall?(args: unknown, theme: Theme, context: RenderContext): Component | undefined;
  renderResult?(
    result: { content: ResultContent[]; details?: unknown },
    options: RenderOptions,
    theme: Theme,
    context: RenderContext,
  ): Component | undefined;
}

/** Arguments as the model wrote them: anything, or nothing yet. */
export type Args = Record<string, unknown> | undefined;

/** `undefined` for a value that is no string, because models confuse types. */
export function textArgument(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : undefined;
}

export function invalid(theme: Theme): string {
  return theme.fg("error", "[invalid arg]");
}

/** Abbreviates the home folder to "~". */
export function shortPath(path: string): string {
  const home = os().homedir();
  return path.startsWith(home) ? `~${path.slice(home.length)}` : path;
}

/** The path of a file in a title; dots while it is still being written. */
export function pathTitle(args: Args, theme: Theme): string {
  const path = filePath(args);
  if (path === undefined) return invalid(theme);
  return path ? theme.fg("accent", shortPath(path)) : theme.fg("toolOutput", "...");
}

export function filePath(args: Args): string | undefined {
  return textArgument(args?.file_path ?? args?.path);
}

export function title(name: string, theme: Theme): string {
  return theme.fg("toolTitle", theme.bold(name));
}

/** The text of a result; images that cannot be shown are named. */
export function resultText({ content }: ToolResult, showImages: boolean): string {
  const texts = content
    .filter(({ type }) => type === "text")
    .map(({ text }) => printable(text ?? "").replaceAll("\r", ""));
  const images = content.filter(({ type }) => type === "image");
  const text = texts.join("\n");
  if (images.length === 0 || (getCapabilities().images && showImages)) return text;
  const names = images.map(({ data, mimeType }) => {
    const size = data && mimeType ? getImageDimensions(data, mimeType) : null;
    return imageFallback(mimeType ?? "image/unknown", size ?? undefined);
  });
  return [...(text ? [text] : []), ...names].join("\n");
}

export function plainResultText({ content }: ToolResult): string {
  return content.filter(({ type }) => type === "text").map(({ text }) => text ?? "").join("\n");
}

/** "... (12 more lines, ctrl+o to expand)" */
export function moreLines(what: string, theme: Theme): string {
  return `${theme.fg("muted", `\n... (${what},`)} ${keyHint("app.tools.expand", "to expand")})`;
}

export function byteLimit(truncation: Truncation): string {
  return `${formatSize(truncation.maxBytes ?? DEFAULT_MAX_BYTES)} limit`;
}

/** Shows `text`, reusing the last component if it is a text. */
export function textRow(text: string, { lastComponent }: RenderContext): Text {
  const row = lastComponent instanceof Text ? lastComponent : new Text("", 0, 0);
  row.setText(text);
  return row;
}
