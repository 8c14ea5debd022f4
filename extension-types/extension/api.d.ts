// `pi`: the API object that the factory function of an extension gets.
import type { AnySchema, Static, TSchema } from "./schema.js";
import type { ImageContent, Model, TextContent } from "../pi-ai.js";
import type { AgentToolResult, AgentToolUpdateCallback, ThinkingLevel, ToolExecutionMode } from "../pi-agent-core.js";
import type { AutocompleteItem, Component, KeyId } from "../pi-tui.js";
import type { ProviderConfig } from "../ai/providers.js";
import type { PutTogether } from "../ai/created-providers.js";
import type { ExtensionCommandContext, ExtensionContext } from "./context.js";
import type { ExtensionEvents } from "./events.js";
import type { MarkdownTransformer, MarkdownTransformerOptions, EntryRenderer, MessageRenderer } from "./renderers.js";
import type { CustomMessage } from "../sdk/session.js";
import type { Settings } from "./settings.js";
import type { Theme } from "../tui/theme.js";

export interface ToolRenderResultOptions {
  expanded: boolean;
  isPartial: boolean;
}

// deno-lint-ignore no-explicit-any
export interface ToolRenderContext<TState = any, TArgs = any> {
  args: TArgs;
  toolCallId: string;
  invalidate(): void;
  lastComponent: Component | undefined;
  /** One object per tool call, for the extension's own use. */
  state: TState;
  cwd: string;
  executionStarted: boolean;
  argsComplete: boolean;
  isPartial: boolean;
  expanded: boolean;
  showImages: boolean;
  isError: boolean;
}

// deno-lint-ignore no-explicit-any
export interface ToolDefinition<TParams extends AnySchema = AnySchema, TDetails = unknown, TState = any> {
  name: string;
  label: string;
  description: string;
  /** One line for the list of tools in the system prompt. */
  promptSnippet?: string;
  promptGuidelines?: string[];
  /** A schema of `typebox` or `@sinclair/typebox`. */
  parameters: TParams;
  renderShell?: "default" | "self";
  prepareArguments?(args: unknown): Static<TParams>;
  executionMode?: ToolExecutionMode;
  /** How strictly a model has to follow `parameters`; from newer versions, ignored. */
  constrainedSampling?: false | object;
  /** `false`: the model gets the tool only if `--tools`, `defaultTools` or `pi.setActiveTools` name it. */
  defaultActive?: boolean;
  execute(
    toolCallId: string,
    params: Static<TParams>,
    signal: AbortSignal | undefined,
    onUpdate: AgentToolUpdateCallback<TDetails> | undefined,
    ctx: ExtensionContext,
  ): Promise<AgentToolResult<TDetails>>;
  renderCall?(args: Static<TParams>, theme: Theme, context: ToolRenderContext<TState, Static<TParams>>): Component;
  renderResult?(
    result: AgentToolResult<TDetails>,
    options: ToolRenderResultOptions,
    theme: Theme,
    context: ToolRenderContext<TState, Static<TParams>>,
  ): Component;
}

/** Keeps the types of a tool that is defined separately. */
// deno-lint-ignore no-explicit-any
export function defineTool<TParams extends AnySchema, TDetails = unknown, TState = any>(
  tool: ToolDefinition<TParams, TDetails, TState>,
  // deno-lint-ignore no-explicit-any
): ToolDefinition<TParams, TDetails, TState> & ToolDefinition<any, any, any>;

export interface RegisteredCommand {
  name: string;
  sourceInfo: SourceInfo;
  description?: string;
  getArgumentCompletions?(
    argumentPrefix: string,
  ): AutocompleteItem[] | null | Promise<AutocompleteItem[] | null>;
  handler(args: string, ctx: ExtensionCommandContext): Promise<void>;
}
/** A command with the name that invokes it, which differs from its own if two commands clash. */
export interface ResolvedCommand extends RegisteredCommand {
  invocationName: string;
}
/** A tool with its source. */
export interface RegisteredTool {
  definition: ToolDefinition;
  sourceInfo: SourceInfo;
}
export interface ExtensionFlag {
  name: string;
  description?: string;
  type: "boolean" | "string";
  default?: boolean | string;
  extensionPath: string;
}
export interface ExtensionShortcut {
  shortcut: KeyId;
  description?: string;
  handler(ctx: ExtensionContext): Promise<void> | void;
  extensionPath: string;
}

export interface ExecOptions {
  signal?: AbortSignal;
  /** Timeout in milliseconds. */
  timeout?: number;
  cwd?: string;
}
export interface ExecResult {
  stdout: string;
  stderr: string;
  code: number;
  killed: boolean;
}

export interface SourceInfo {
  path: string;
  source: string;
  scope: string;
  origin: string;
  baseDir?: string;
}
export interface ToolInfo {
  name: string;
  description: string;
  parameters: TSchema;
  promptGuidelines?: string[];
  sourceInfo: SourceInfo;
}
export type SlashCommandSource = "extension" | "prompt" | "skill";
export interface SlashCommandInfo {
  name: string;
  description?: string;
  source: SlashCommandSource;
  sourceInfo: SourceInfo;
}

export interface EventBus {
  emit(channel: string, data: unknown): void;
  /** Returns a function that unsubscribes the handler. */
  on(channel: string, handler: (data: unknown) => void): () => void;
}
export interface EventBusController extends EventBus {
  clear(): void;
}

export type ExtensionHandler<E, R = unknown> = (
  event: E,
  ctx: ExtensionContext,
  // deno-lint-ignore no-confusing-void-type
) => Promise<R | void> | R | void;

/** Subscribes a handler; the returned function unsubscribes it. */
type Listen = {
  [K in keyof ExtensionEvents]: (
    event: K,
    handler: ExtensionHandler<ExtensionEvents[K][0], ExtensionEvents[K][1]>,
  ) => () => void;
}[keyof ExtensionEvents];
/** One overload per event: with a type parameter, results would lose their literal types. */
type Overloads<U> = (U extends unknown ? (member: U) => void : never) extends (all: infer I) => void ? I : never;

export interface ExtensionAPI {
  on: Overloads<Listen>;
  // deno-lint-ignore no-explicit-any
  registerTool<TParams extends AnySchema, TDetails = unknown, TState = any>(
    tool: ToolDefinition<TParams, TDetails, TState>,
  ): void;
  registerCommand(name: string, options: Omit<RegisteredCommand, "name" | "sourceInfo">): void;
  registerShortcut(
    shortcut: KeyId,
    options: Omit<ExtensionShortcut, "shortcut" | "extensionPath">,
  ): void;
  registerFlag(name: string, options: Omit<ExtensionFlag, "name" | "extensionPath">): void;
  /** The name without `--`; only flags that this extension registered. */
  getFlag(name: string): boolean | string | undefined;
  registerMessageRenderer<T = unknown>(customType: string, renderer: MessageRenderer<T>): void;
  registerEntryRenderer<T = unknown>(customType: string, renderer: EntryRenderer<T>): void;
  /** Tool renderers are consulted in load order. */
  registerToolRenderer(resolver: (...args: never[]) => unknown): void;
  /** Changes displayed texts, not stored ones; one for each extension. */
  registerMarkdownTransformer(transformer: MarkdownTransformer, options?: MarkdownTransformerOptions): void;
  sendMessage<T = unknown>(
    message: Pick<CustomMessage<T>, "customType" | "content" | "display" | "details">,
    options?: { triggerTurn?: boolean; deliverAs?: "steer" | "followUp" | "nextTurn" },
  ): void;
  sendUserMessage(
    content: string | (TextContent | ImageContent)[],
    options?: { deliverAs?: "steer" | "followUp"; expandPromptTemplates?: boolean },
  ): void;
  /** Stores data in the session that no model gets. */
  appendEntry<T = unknown>(customType: string, data?: T): void;
  setSessionName(name: string): void;
  getSessionName(): string | undefined;
  setLabel(entryId: string, label: string | undefined): void;
  /** Rejects only if `args` is no array: a program that cannot be started has exit code 1. */
  exec(command: string, args: string[], options?: ExecOptions): Promise<ExecResult>;
  /**
   * With the setting `extensionWatch`, a change of this file, or of the names in this folder, causes
   * a reload, too. Not in the original.
   */
  watch(path: string | URL): void;
  getActiveTools(): string[];
  setActiveTools(toolNames: string[]): void;
  getAllTools(): ToolInfo[];
  /** The global settings, overridden by those of the project. */
  getSettings(): Settings;
  getCommands(): SlashCommandInfo[];
  /** `false` if there is no key for the model. */
  setModel(model: Model): Promise<boolean>;
  /** The level may also be `max` with models that have it; the type is that of the versions without. */
  getThinkingLevel(): Exclude<ThinkingLevel, "max">;
  /** The level is limited to those of the model. */
  setThinkingLevel(level: ThinkingLevel): void;
  /** Takes effect at once; while the extension loads, when all have loaded. */
  /**
   * Takes the result of `createProvider`. This overload stands first, because `Parameters` uses the
   * last one.
   */
  registerProvider(provider: PutTogether): void;
  registerProvider(name: string, config: ProviderConfig): void;
  /** Restores the provider as it was before the registration. */
  unregisterProvider(name: string): void;
  events: EventBus;
}

export type ExtensionFactory = (pi: ExtensionAPI) => void | Promise<void>;
/** An extension passed to a resource loader. */
export type InlineExtension = ExtensionFactory | { name?: string; factory: ExtensionFactory; hidden?: boolean };

// Without this line every declaration would be exported.
export {};
