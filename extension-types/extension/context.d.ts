// `ctx`: the session as handlers, tools and commands see it.
import type { ImageContent, Model, TextContent } from "../pi-ai.js";
import type { ThinkingLevel } from "../pi-agent-core.js";
import type {
  AutocompleteProvider,
  Component,
  EditorComponent,
  EditorTheme,
  KeybindingsManager,
  OverlayHandle,
  OverlayOptions,
  TUI,
} from "../pi-tui.js";
import type { ReadonlyFooterDataProvider } from "../tui/components.js";
import type { ModelRegistry, ScopedModel } from "../ai/providers.js";
import type { CompactionResult, SystemPromptOptions } from "./events.js";
import type { BranchSummaryEntry, CustomMessage, ReadonlySessionManager, SessionManager } from "../sdk/session.js";
import type { Theme } from "../tui/theme.js";

export interface ExtensionUIDialogOptions {
  signal?: AbortSignal;
  /** Timeout in milliseconds, after which the dialog ends as if it were cancelled. */
  timeout?: number;
}

export type WidgetPlacement = "aboveEditor" | "belowEditor";
export interface ExtensionWidgetOptions {
  placement?: WidgetPlacement;
}
export type TerminalInputHandler = (data: string) => { consume?: boolean; data?: string } | undefined;

export interface WorkingIndicatorOptions {
  frames?: string[];
  /** Interval in milliseconds. */
  intervalMs?: number;
}

type Disposable = Component & { dispose?(): void };
type EditorFactory = (tui: TUI, theme: EditorTheme, keybindings: KeybindingsManager) => EditorComponent;
/** Gets the current provider and returns the one to use instead. */
export type AutocompleteProviderFactory = (current: AutocompleteProvider) => AutocompleteProvider;

/**
 * Members that need a terminal that draws (components, footer, header, editor) do nothing in the
 * other modes: `custom` resolves to `undefined` then, although its type does not include that. Over
 * RPC, where the client's `hello` names its capabilities, `select`, `confirm`, `input`, `editor`
 * and `custom` reject with a `UiUnsupportedError` (`code`: `"UI_UNSUPPORTED"`, `method`) if it does
 * not name them.
 */
export interface ExtensionUIContext {
  select(title: string, options: string[], opts?: ExtensionUIDialogOptions): Promise<string | undefined>;
  confirm(title: string, message: string, opts?: ExtensionUIDialogOptions): Promise<boolean>;
  input(title: string, placeholder?: string, opts?: ExtensionUIDialogOptions): Promise<string | undefined>;
  editor(title: string, prefill?: string): Promise<string | undefined>;
  notify(message: string, type?: "info" | "warning" | "error"): void;
  setStatus(key: string, text: string | undefined): void;
  setWidget(
    key: string,
    content: string[] | ((tui: TUI, theme: Theme) => Component & { dispose?(): void }) | undefined,
    options?: ExtensionWidgetOptions,
  ): void;
  setTitle(title: string): void;
  setEditorText(text: string): void;
  getEditorText(): string;
  pasteToEditor(text: string): void;
  custom<T>(
    factory: (
      tui: TUI,
      theme: Theme,
      keybindings: KeybindingsManager,
      done: (result: T) => void,
    ) => (Component & { dispose?(): void }) | Promise<Component & { dispose?(): void }>,
    options?: {
      overlay?: boolean;
      overlayOptions?: OverlayOptions | (() => OverlayOptions);
      onHandle?: (handle: OverlayHandle) => void;
    },
  ): Promise<T>;
  onTerminalInput(handler: TerminalInputHandler): () => void;
  setWorkingMessage(message?: string): void;
  setWorkingVisible(visible: boolean): void;
  setWorkingIndicator(options?: WorkingIndicatorOptions): void;
  setHiddenThinkingLabel(label?: string): void;
  setFooter(
    factory: ((tui: TUI, theme: Theme, footerData: ReadonlyFooterDataProvider) => Disposable) | undefined,
  ): void;
  setHeader(factory: ((tui: TUI, theme: Theme) => Disposable) | undefined): void;
  setEditorComponent(factory: EditorFactory | undefined): void;
  getEditorComponent(): EditorFactory | undefined;
  addAutocompleteProvider(factory: AutocompleteProviderFactory): void;
  readonly theme: Theme;
  getAllThemes(): { name: string; path: string | undefined }[];
  getTheme(name: string): Theme | undefined;
  setTheme(theme: string | Theme): { success: boolean; error?: string };
  getToolsExpanded(): boolean;
  setToolsExpanded(expanded: boolean): void;
}

export interface ContextUsage {
  /** `null` if unknown so far. */
  tokens: number | null;
  contextWindow: number;
  percent: number | null;
}

export interface CompactOptions {
  customInstructions?: string;
  onComplete?(result: CompactionResult): void;
  onError?(error: Error): void;
}

/**
 * At a terminal the mode is `interactive` here, because only lines are written. The type is that of
 * the versions whose terminal mode is `tui`, so that their extensions compile.
 */
export type ExtensionMode = "tui" | "rpc" | "json" | "print";

export interface ExtensionContext {
  ui: ExtensionUIContext;
  /** Whether a user can answer dialogs. */
  readonly hasUI: boolean;
  readonly mode: ExtensionMode;
  readonly cwd: string;
  sessionManager: ReadonlySessionManager;
  modelRegistry: ModelRegistry;
  readonly model: Model | undefined;
  /** Always present in this version. */
  readonly thinkingLevel?: ThinkingLevel;
  /** The models that the user cycles through; empty if these are all. */
  readonly scopedModels: readonly ScopedModel[];
  isProjectTrusted(): boolean;
  /** The signal of the run in which the context was created. */
  signal: AbortSignal | undefined;
  isIdle(): boolean;
  abort(): void;
  hasPendingMessages(): boolean;
  shutdown(): void;
  getContextUsage(): ContextUsage | undefined;
  getSystemPrompt(): string;
  /** Returns at once; the callbacks get the outcome. */
  compact(options?: CompactOptions): void;
}

interface Cancelled {
  cancelled: boolean;
}

interface ReplaceOptions {
  /** Called with a context of the new session. The previous `pi` and `ctx` are stale then. */
  withSession?(ctx: ReplacedSessionContext): Promise<void> | void;
}

export interface Navigated extends Cancelled {
  /** Whether the user aborted it. */
  aborted?: boolean;
  /** The user's message at that point, to be changed and sent again. */
  editorText?: string;
  summaryEntry?: BranchSummaryEntry;
}

/** The context of commands, which has more members. */
export interface ExtensionCommandContext extends ExtensionContext {
  getSystemPromptOptions(): SystemPromptOptions;
  waitForIdle(): Promise<void>;
  newSession(
    options?: ReplaceOptions & {
      parentSession?: string;
      /** Writes to the new session before it is entered; if it throws, nothing changes. */
      setup?(sessionManager: SessionManager): Promise<void> | void;
    },
  ): Promise<Cancelled>;
  switchSession(sessionPath: string, options?: ReplaceOptions): Promise<Cancelled>;
  /** Forks before a message of the user, or at any entry. */
  fork(entryId: string, options?: ReplaceOptions & { position?: "before" | "at" }): Promise<Cancelled>;
  navigateTree(
    targetId: string,
    options?: { summarize?: boolean; customInstructions?: string; replaceInstructions?: boolean; label?: string },
  ): Promise<Navigated>;
  reload(): Promise<void>;
}

/** The context of the new session. */
export interface ReplacedSessionContext extends ExtensionCommandContext {
  sendMessage(
    message: Pick<CustomMessage, "customType" | "content" | "display" | "details">,
    options?: { triggerTurn?: boolean; deliverAs?: "steer" | "followUp" | "nextTurn" },
  ): Promise<void>;
  /** Resolves when the message was sent, not when it is answered. */
  sendUserMessage(
    content: string | (TextContent | ImageContent)[],
    options?: { deliverAs?: "steer" | "followUp"; expandPromptTemplates?: boolean },
  ): Promise<void>;
}

// Without this line every declaration would be exported.
export {};
