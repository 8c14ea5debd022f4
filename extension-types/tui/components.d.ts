// The components of pi's own screens.
import type { AssistantMessage, Model } from "../pi-ai.js";
import type { Box, Component, Container, Focusable, Input, KeybindingsManager, SelectList } from "../pi-tui.js";
import type { Editor, EditorOptions, EditorTheme, MarkdownTheme } from "./editor.js";
import type { TUI } from "./terminal.js";
import type { ThinkingLevel } from "../pi-agent-core.js";
import type { ToolDefinition } from "../extension/api.js";
import type { MessageRenderer } from "../extension/renderers.js";
import type { OAuthDeviceCodeInfo } from "../ai/oauth.js";
import type { AuthStorage, ModelRegistry } from "../ai/providers.js";
import type { BranchSummaryMessage, CompactionSummaryMessage, CustomMessage } from "../sdk/session.js";

type Renders = Pick<TUI, "requestRender">;
type Choose<T = string> = (value: T) => void;
type Cancel = () => void;

/** The editor with pi's key bindings: the base class for `ctx.ui.setEditorComponent`. */
export class CustomEditor extends Editor {
  onEscape?: () => void;
  onCtrlD?: () => void;
  onPasteImage?: () => void;
  /** Returns `true` if an extension has handled the key. */
  onExtensionShortcut?: (data: string) => boolean;
  actionHandlers: Map<string, () => void>;
  constructor(tui: TUI, theme: EditorTheme, keybindings: KeybindingsManager, options?: EditorOptions);
  onAction(action: string, handler: () => void): void;
}

export interface ReadonlyFooterDataProvider {
  getGitBranch(): string | null;
  getExtensionStatuses(): ReadonlyMap<string, string>;
  getAvailableProviderCount(): number;
  /** Returns a function that unsubscribes the callback. */
  onBranchChange(callback: () => void): () => void;
}

export interface VisualTruncateResult {
  visualLines: string[];
  skippedCount: number;
}
/** Cuts a text to its last lines, wrapped at that width. */
export function truncateToVisualLines(
  text: string,
  maxVisualLines: number,
  width: number,
  paddingX?: number,
): VisualTruncateResult;
export interface RenderDiffOptions {
  filePath?: string;
}
/** Colours a diff of the edit tool. */
export function renderDiff(diffText: string, options?: RenderDiffOptions): string;
/** Returns the lines in colours of the theme. */
export function highlightCode(code: string, lang?: string): string[];

interface DialogOptions {
  tui?: TUI;
  /** Timeout in milliseconds; the title counts down. */
  timeout?: number;
}
export class ExtensionSelectorComponent extends Container {
  constructor(title: string, options: string[], onSelect: Choose, onCancel: Cancel, opts?: DialogOptions);
  handleInput(data: string): void;
  dispose(): void;
}
export class ExtensionInputComponent extends Container implements Focusable {
  focused: boolean;
  constructor(
    title: string,
    placeholder: string | undefined,
    onSubmit: Choose,
    onCancel: Cancel,
    opts?: DialogOptions,
  );
  handleInput(data: string): void;
  dispose(): void;
}
export class ExtensionEditorComponent extends Container implements Focusable {
  focused: boolean;
  constructor(
    tui: TUI,
    keybindings: KeybindingsManager,
    title: string,
    prefill: string | undefined,
    onSubmit: Choose,
    onCancel: Cancel,
    options?: EditorOptions,
  );
  handleInput(data: string): void;
}

export class AssistantMessageComponent extends Container {
  constructor(
    message?: AssistantMessage,
    hideThinkingBlock?: boolean,
    markdownTheme?: MarkdownTheme,
    hiddenThinkingLabel?: string,
    outputPad?: number,
  );
  /** Columns on both sides, 1 by default; from newer versions, as in the other messages. */
  setOutputPad(padding: number): void;
  setHideThinkingBlock(hide: boolean): void;
  setHiddenThinkingLabel(label: string): void;
  updateContent(message: AssistantMessage): void;
}
export class UserMessageComponent extends Container {
  constructor(text: string, markdownTheme?: MarkdownTheme, outputPad?: number);
  setOutputPad(padding: number): void;
}
export class CustomMessageComponent extends Container {
  constructor(message: CustomMessage, customRenderer?: MessageRenderer, markdownTheme?: MarkdownTheme, outputPad?: number);
  /** Sets the padding for the renderer. */
  setOutputPad(padding: number): void;
  setExpanded(expanded: boolean): void;
}
export class BranchSummaryMessageComponent extends Box {
  constructor(message: BranchSummaryMessage, markdownTheme?: MarkdownTheme);
  setExpanded(expanded: boolean): void;
}
export class CompactionSummaryMessageComponent extends Box {
  constructor(message: CompactionSummaryMessage, markdownTheme?: MarkdownTheme);
  setExpanded(expanded: boolean): void;
}
export class SkillInvocationMessageComponent extends Box {
  constructor(
    skillBlock: { name: string; location: string; content: string; userMessage: string | undefined },
    markdownTheme?: MarkdownTheme,
  );
  setExpanded(expanded: boolean): void;
}
export class BashExecutionComponent extends Container {
  constructor(command: string, ui: TUI, excludeFromContext?: boolean);
  setExpanded(expanded: boolean): void;
  appendOutput(chunk: string): void;
  setComplete(
    exitCode: number | undefined,
    cancelled: boolean,
    truncationResult?: { truncated: boolean },
    fullOutputPath?: string,
  ): void;
  getOutput(): string;
  getCommand(): string;
}
export interface ToolExecutionOptions {
  showImages?: boolean;
}
/** The result stays as it is: only texts and images are drawn. */
interface ShownResult {
  content: { type: string; text?: string; data?: string; mimeType?: string }[];
  details?: unknown;
  isError: boolean;
}
export class ToolExecutionComponent extends Container {
  constructor(
    toolName: string,
    toolCallId: string,
    args: unknown,
    options: ToolExecutionOptions | undefined,
    toolDefinition: ToolDefinition | undefined,
    ui: TUI,
    cwd?: string,
  );
  updateArgs(args: unknown): void;
  markExecutionStarted(): void;
  setArgsComplete(): void;
  updateResult(result: ShownResult, isPartial?: boolean): void;
  setExpanded(expanded: boolean): void;
  setShowImages(show: boolean): void;
}

export class ThinkingSelectorComponent extends Container {
  constructor(currentLevel: string, availableLevels: string[], onSelect: Choose, onCancel: Cancel);
  getSelectList(): SelectList;
}
export class ThemeSelectorComponent extends Container {
  constructor(currentTheme: string, onSelect: Choose, onCancel: Cancel, onPreview: Choose);
  getSelectList(): SelectList;
}
export class ShowImagesSelectorComponent extends Container {
  constructor(currentValue: boolean, onSelect: Choose<boolean>, onCancel: Cancel);
  getSelectList(): SelectList;
}
export class UserMessageSelectorComponent extends Container {
  constructor(
    messages: { id: string; text: string; timestamp?: string }[],
    onSelect: Choose,
    onCancel: Cancel,
  );
  getMessageList(): Component & { handleInput(data: string): void };
}
export class ModelSelectorComponent extends Container implements Focusable {
  focused: boolean;
  constructor(
    tui: TUI,
    currentModel: Model | undefined,
    settingsManager: { setDefaultModelAndProvider(provider: string, modelId: string): void },
    modelRegistry: ModelRegistry,
    scopedModels: readonly { model: Model; thinkingLevel?: ThinkingLevel }[],
    onSelect: Choose<Model>,
    onCancel: Cancel,
    initialSearchInput?: string,
  );
  getSearchInput(): Input;
  handleInput(data: string): void;
}
export class OAuthSelectorComponent extends Container {
  constructor(mode: "login" | "logout", authStorage: AuthStorage, onSelect: Choose, onCancel: Cancel);
  handleInput(data: string): void;
}
export class LoginDialogComponent extends Container implements Focusable {
  focused: boolean;
  readonly signal: AbortSignal;
  constructor(tui: TUI, providerId: string, onComplete: (success: boolean, message?: string) => void);
  showAuth(url: string, instructions?: string): void;
  showManualInput(prompt: string): Promise<string>;
  showPrompt(message: string, placeholder?: string): Promise<string>;
  showWaiting(message: string): void;
  showProgress(message: string): void;
  /** The members below are from newer versions. */
  showDeviceCode(info: OAuthDeviceCodeInfo): void;
  showInfo(message: string, links?: readonly { url: string; label?: string }[], showCloseHint?: boolean): void;
  showDetails(lines: string[]): void;
  handleInput(data: string): void;
}
export class ArminComponent implements Component {
  constructor(ui: Renders);
  invalidate(): void;
  render(width: number): string[];
  dispose(): void;
}

// Without this line every declaration would be exported.
export {};
