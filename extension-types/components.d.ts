// The rows, dialogs and selectors of pi's own terminal.
import type { ToolDefinition } from "./api.js";
import type { Model } from "./pi-ai.js";
import type {
  Component,
  Container,
  Editor,
  EditorOptions,
  EditorTheme,
  Focusable,
  KeybindingsManager,
  MarkdownTheme,
  SelectList,
  SettingsList,
  TUI,
} from "./pi-tui.js";
import type { Theme } from "./theme.js";

type Redraw = Pick<TUI, "requestRender">;

/** The last rows of a text, counted as they are on the screen. */
export function truncateToVisualLines(
  text: string,
  maxVisualLines: number,
  width: number,
  paddingX?: number,
): { visualLines: string[]; skippedCount: number };

/** The editor with pi's own keys. */
export class CustomEditor extends Editor {
  constructor(
    tui: { requestRender(): void; readonly terminal: { readonly rows: number } },
    theme: EditorTheme,
    keybindings: KeybindingsManager,
    options?: EditorOptions,
  );
  actionHandlers: Map<string, () => void>;
  onEscape?: () => void;
  onCtrlD?: () => void;
  onPasteImage?: () => void;
  /** True if the key was one of an extension. */
  onExtensionShortcut?: (data: string) => boolean;
  onAction(action: string, handler: () => void): void;
}

export class ArminComponent implements Component {
  constructor(ui: Redraw);
  invalidate(): void;
  render(width: number): string[];
  dispose(): void;
}

interface AnswerParts {
  content: { type: string; text?: string; thinking?: string }[];
  stopReason?: string;
  errorMessage?: string;
}
export class AssistantMessageComponent extends Container {
  constructor(
    message?: AnswerParts,
    hideThinkingBlock?: boolean,
    markdownTheme?: MarkdownTheme,
    hiddenThinkingLabel?: string,
  );
  updateContent(message: AnswerParts): void;
  setHideThinkingBlock(hide: boolean): void;
  setHiddenThinkingLabel(label: string): void;
}
export class UserMessageComponent extends Container {
  constructor(text: string, markdownTheme?: MarkdownTheme);
}
interface ExtensionMessage {
  customType: string;
  content: string | { type: string; text?: string }[];
  display?: boolean;
  details?: unknown;
}
export class CustomMessageComponent extends Container {
  constructor(
    message: ExtensionMessage,
    customRenderer?: (
      message: ExtensionMessage,
      options: { expanded: boolean },
      theme: Theme,
    ) => Component | undefined,
    markdownTheme?: MarkdownTheme,
  );
  setExpanded(expanded: boolean): void;
}
export class BranchSummaryMessageComponent extends Container {
  constructor(message: { summary: string }, markdownTheme?: MarkdownTheme);
  setExpanded(expanded: boolean): void;
}
export class CompactionSummaryMessageComponent extends Container {
  constructor(message: { summary: string; tokensBefore: number }, markdownTheme?: MarkdownTheme);
  setExpanded(expanded: boolean): void;
}
export interface ParsedSkillBlock {
  name: string;
  location?: string;
  content: string;
  userMessage?: string;
}
export class SkillInvocationMessageComponent extends Container {
  constructor(skillBlock: ParsedSkillBlock, markdownTheme?: MarkdownTheme);
  setExpanded(expanded: boolean): void;
}
export interface ToolExecutionOptions {
  showImages?: boolean;
}
/** A call of a tool, drawn by the tool's renderers. */
export class ToolExecutionComponent extends Container {
  constructor(
    toolName: string,
    toolCallId: string,
    args: unknown,
    options: ToolExecutionOptions | undefined,
    toolDefinition: Pick<ToolDefinition, "renderCall" | "renderResult" | "renderShell"> | undefined,
    ui: Redraw,
    cwd?: string,
  );
  updateArgs(args: unknown): void;
  markExecutionStarted(): void;
  setArgsComplete(): void;
  updateResult(
    result: {
      content: { type: string; text?: string; data?: string; mimeType?: string }[];
      details?: unknown;
      isError?: boolean;
    },
    isPartial?: boolean,
  ): void;
  setExpanded(expanded: boolean): void;
  setShowImages(show: boolean): void;
}
export class BashExecutionComponent extends Container {
  constructor(command: string, ui: Redraw, excludeFromContext?: boolean);
  setExpanded(expanded: boolean): void;
  appendOutput(chunk: string): void;
  setComplete(
    exitCode: number | null | undefined,
    cancelled: boolean,
    truncationResult?: { truncated: boolean },
    fullOutputPath?: string,
  ): void;
  getOutput(): string;
  getCommand(): string;
  dispose(): void;
}

export interface DialogOptions {
  tui?: Redraw;
  /** Milliseconds. */
  timeout?: number;
}
export class ExtensionSelectorComponent extends Container {
  constructor(
    title: string,
    options: string[],
    onSelect: (option: string) => void,
    onCancel: () => void,
    opts?: DialogOptions,
  );
  handleInput(data: string): void;
  dispose(): void;
}
export class ExtensionInputComponent extends Container implements Focusable {
  constructor(
    title: string,
    placeholder: string | undefined,
    onSubmit: (value: string) => void,
    onCancel: () => void,
    opts?: DialogOptions,
  );
  focused: boolean;
  handleInput(data: string): void;
  dispose(): void;
}
export class ExtensionEditorComponent extends Container implements Focusable {
  constructor(
    tui: TUI,
    keybindings: KeybindingsManager,
    title: string,
    prefill: string | undefined,
    onSubmit: (value: string) => void,
    onCancel: () => void,
    options?: EditorOptions,
  );
  focused: boolean;
  handleInput(data: string): void;
}

interface FooterSession {
  state: { model?: Pick<Model, "id" | "provider">; thinkingLevel?: string };
  sessionManager: { getEntries(): unknown[]; getCwd(): string; getSessionName(): string | undefined };
  modelRegistry: { isUsingOAuth(model: never): boolean };
  getContextUsage(): { contextWindow?: number; percent: number | null } | undefined;
}
export class FooterComponent implements Component {
  constructor(
    session: FooterSession,
    footerData: {
      getGitBranch(): string | null | undefined;
      getExtensionStatuses(): ReadonlyMap<string, string>;
      getAvailableProviderCount(): number;
    },
  );
  setSession(session: FooterSession): void;
  setAutoCompactEnabled(enabled: boolean): void;
  invalidate(): void;
  render(width: number): string[];
  dispose(): void;
}
export class LoginDialogComponent extends Container implements Focusable {
  constructor(tui: Redraw, providerId: string, onComplete: (success: boolean, message?: string) => void);
  focused: boolean;
  readonly signal: AbortSignal;
  showAuth(url: string, instructions?: string): void;
  showManualInput(prompt: string): Promise<string>;
  showPrompt(message: string, placeholder?: string): Promise<string>;
  showWaiting(message: string): void;
  showProgress(message: string): void;
  handleInput(data: string): void;
}
export class OAuthSelectorComponent extends Container {
  constructor(
    mode: "login" | "logout",
    authStorage: { get(provider: string): { type: string } | undefined },
    onSelect: (providerId: string) => void,
    onCancel: () => void,
  );
  handleInput(data: string): void;
}
type NamedModel = Pick<Model, "provider" | "id" | "name">;
export class ModelSelectorComponent extends Container implements Focusable {
  constructor(
    tui: Redraw,
    currentModel: NamedModel | undefined,
    settingsManager: { setDefaultModelAndProvider(provider: string, id: string): void },
    modelRegistry: {
      refresh(): void;
      getError(): string | undefined;
      getAvailable(): NamedModel[] | Promise<NamedModel[]>;
      find(provider: string, id: string): NamedModel | undefined;
    },
    scopedModels: readonly { model: NamedModel; thinkingLevel?: string }[],
    onSelect: (model: NamedModel) => void,
    onCancel: () => void,
    initialSearchInput?: string,
  );
  focused: boolean;
  getSearchInput(): Component;
  handleInput(data: string): void;
}
export class ThinkingSelectorComponent extends Container {
  constructor(
    currentLevel: string,
    availableLevels: string[],
    onSelect: (level: string) => void,
    onCancel: () => void,
  );
  getSelectList(): SelectList;
  handleInput(data: string): void;
}
export class ThemeSelectorComponent extends Container {
  constructor(
    currentTheme: string,
    onSelect: (themeName: string) => void,
    onCancel: () => void,
    onPreview: (themeName: string) => void,
  );
  getSelectList(): SelectList;
  handleInput(data: string): void;
}
export class ShowImagesSelectorComponent extends Container {
  constructor(currentValue: boolean, onSelect: (show: boolean) => void, onCancel: () => void);
  getSelectList(): SelectList;
  handleInput(data: string): void;
}
export interface SettingsConfig {
  autoCompact: boolean;
  showImages: boolean;
  autoResizeImages: boolean;
  blockImages: boolean;
  enableSkillCommands: boolean;
  steeringMode: string;
  followUpMode: string;
  transport: string;
  thinkingLevel: string;
  availableThinkingLevels: string[];
  currentTheme: string;
  availableThemes: string[];
  hideThinkingBlock: boolean;
  collapseChangelog: boolean;
  enableInstallTelemetry: boolean;
  doubleEscapeAction: string;
  treeFilterMode: string;
  showHardwareCursor: boolean;
  editorPaddingX: number;
  autocompleteMaxVisible: number;
  quietStartup: boolean;
  clearOnShrink: boolean;
}
/** `onAutoCompactChange`, `onThemeChange`, ...: one for each setting. */
export interface SettingsCallbacks {
  onCancel(): void;
  onThemePreview?(theme: string): void;
  [change: `on${string}Change`]: (value: never) => void;
}
export class SettingsSelectorComponent extends Container {
  constructor(config: SettingsConfig, callbacks: SettingsCallbacks);
  getSettingsList(): SettingsList;
  handleInput(data: string): void;
}
export class UserMessageSelectorComponent extends Container {
  constructor(
    messages: { id: string; text: string }[],
    onSelect: (entryId: string) => void,
    onCancel: () => void,
  );
  getMessageList(): Component;
  handleInput(data: string): void;
}
interface ListedSession {
  path: string;
  id: string;
  cwd: string;
  name?: string;
  parentSessionPath?: string;
  modified: Date;
  messageCount: number;
  firstMessage: string;
  allMessagesText: string;
}
type SessionsLoader = (onProgress?: (loaded: number, total: number) => void) => Promise<ListedSession[]>;
export class SessionSelectorComponent extends Container implements Focusable {
  constructor(
    currentSessionsLoader: SessionsLoader,
    allSessionsLoader: SessionsLoader,
    onSelect: (sessionPath: string) => void,
    onCancel: () => void,
    onExit: () => void,
    requestRender: () => void,
    options?: {
      renameSession?: (sessionPath: string, name: string | undefined) => Promise<void>;
      showRenameHint?: boolean;
      keybindings?: KeybindingsManager;
    },
    currentSessionFilePath?: string,
  );
  focused: boolean;
  getSessionList(): Component;
  handleInput(data: string): void;
}
interface TreeNode {
  entry: { type: string; id: string; parentId: string | null };
  children: TreeNode[];
  label?: string;
  labelTimestamp?: string;
}
export class TreeSelectorComponent extends Container implements Focusable {
  constructor(
    tree: TreeNode[],
    currentLeafId: string | null,
    terminalHeight: number,
    onSelect: (entryId: string) => void,
    onCancel: () => void,
    onLabelChange?: (entryId: string, label: string | undefined) => void,
    initialSelectedId?: string,
    initialFilterMode?: "default" | "no-tools" | "user-only" | "labeled-only" | "all",
  );
  focused: boolean;
  getTreeList(): Component;
  handleInput(data: string): void;
}
