// Whole screens of pi: the footer, and the selectors of settings, sessions and entries.
import type { Model } from "../pi-ai.js";
import type { Component, Container, Focusable, KeybindingsManager, SettingsList } from "../pi-tui.js";
import type { TUI } from "./terminal.js";

type Redraw = Pick<TUI, "requestRender">;

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
/** The rows of a tree, and the selected one. */
export interface TreeList extends Component {
  handleInput(data: string): void;
  getSelectedNode(): TreeNode | undefined;
  getSearchQuery(): string;
  /** Changes only the display; `onLabelChange` passes the label on to the session. */
  updateNodeLabel(entryId: string, label: string | undefined, labelTimestamp?: string): void;
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
  getTreeList(): TreeList;
  handleInput(data: string): void;
}

// Without this line every declaration would be exported.
export {};
