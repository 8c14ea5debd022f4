// Renderers of messages and entries of an extension's own, and transformers of displayed texts.
import type { Component } from "../pi-tui.js";
import type { CustomEntry, CustomMessage } from "../sdk/session.js";
import type { Theme } from "../tui/theme.js";

export interface EntryRenderOptions {
  expanded: boolean;
}
export interface MessageRenderOptions extends EntryRenderOptions {
  /** The columns on each side of a message. */
  outputPad: number;
}
export type MessageRenderer<T = unknown> = (
  message: CustomMessage<T>,
  options: MessageRenderOptions,
  theme: Theme,
) => Component | undefined;
export type EntryRenderer<T = unknown> = (
  entry: CustomEntry<T>,
  options: EntryRenderOptions,
  theme: Theme,
) => Component | undefined;

type MarkdownMessageType = "user" | "assistant" | "assistant-thinking" | "custom" | "summary" | "changelog";
export interface MarkdownTransformContext {
  messageType: MarkdownMessageType;
  isStreaming: boolean;
  availableWidth: number;
  messageId?: string;
  timestamp?: string;
}
export type MarkdownTransformer = (markdown: string, context: MarkdownTransformContext) => string;
export interface MarkdownTransformerOptions {
  messageTypes?: readonly MarkdownMessageType[];
}

// Without this line every declaration would be exported.
export {};
