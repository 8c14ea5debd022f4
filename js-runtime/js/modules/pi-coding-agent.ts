// `@mariozechner/pi-coding-agent`: the API of extensions.
export { createEventBus } from "pi:host.ts";
export { AgentSession } from "pi:pi-coding-agent/agent-session/index.ts";
export {
  AuthStorage,
  FileAuthStorageBackend,
  InMemoryAuthStorageBackend,
  readStoredCredential,
} from "pi:pi-coding-agent/models/auth-storage.ts";
export {
  getMarkdownTheme,
  getSelectListTheme,
  getSettingsListTheme,
} from "pi:pi-coding-agent/theme/components.ts";
export { ArminComponent } from "pi:pi-coding-agent/components/armin.ts";
export { parseArgs } from "pi:pi-coding-agent/cli-arguments.ts";
export { BashExecutionComponent } from "pi:pi-coding-agent/components/bash-execution.ts";
export { CustomEditor } from "pi:pi-coding-agent/components/custom-editor.ts";
export {
  ExtensionEditorComponent,
  ExtensionInputComponent,
  ExtensionSelectorComponent,
} from "pi:pi-coding-agent/components/dialogs.ts";
export { FooterComponent } from "pi:pi-coding-agent/components/footer.ts";
export { BorderedLoader, DynamicBorder } from "pi:pi-coding-agent/components/frame.ts";
export { LoginDialogComponent, OAuthSelectorComponent } from "pi:pi-coding-agent/components/login.ts";
export {
  AssistantMessageComponent,
  BranchSummaryMessageComponent,
  CompactionSummaryMessageComponent,
  CustomMessageComponent,
  SkillInvocationMessageComponent,
  UserMessageComponent,
} from "pi:pi-coding-agent/components/message-rows.ts";
export { ModelSelectorComponent } from "pi:pi-coding-agent/components/model-selector.ts";
export { SessionSelectorComponent } from "pi:pi-coding-agent/components/session-selector.ts";
export { SettingsSelectorComponent } from "pi:pi-coding-agent/components/settings-selector.ts";
export {
  ShowImagesSelectorComponent,
  ThemeSelectorComponent,
  ThinkingSelectorComponent,
} from "pi:pi-coding-agent/components/simple-selectors.ts";
export { ToolExecutionComponent } from "pi:pi-coding-agent/components/tool-execution.ts";
export { TreeSelectorComponent } from "pi:pi-coding-agent/components/tree-selector.ts";
export { UserMessageSelectorComponent } from "pi:pi-coding-agent/components/user-message-selector.ts";
export {
  calculateContextTokens,
  collectEntriesForBranchSummary,
  compact,
  DEFAULT_COMPACTION_SETTINGS,
  estimateTokens,
  findCutPoint,
  findTurnStartIndex,
  generateBranchSummary,
  generateSummary,
  getLastAssistantUsage,
  prepareBranchEntries,
  shouldCompact,
} from "pi:pi-coding-agent/compaction/index.ts";
export {
  CONFIG_DIR_NAME,
  getAgentDir,
  getDocsPath,
  getExamplesPath,
  getPackageDir,
  getReadmePath,
  VERSION,
} from "pi:pi-coding-agent/config.ts";
export {
  buildContextEntries,
  buildSessionProjection,
  sessionEntryToContextMessages,
} from "pi:pi-coding-agent/session-manager/context-entries.ts";
export { createExtensionRuntime } from "pi:pi-coding-agent/extensions/runtime.ts";
export { parseFrontmatter, stripFrontmatter } from "pi:pi-coding-agent/text/frontmatter.ts";
export { keyHint, keyText, rawKeyHint } from "pi:pi-coding-agent/key-hints.ts";
export { detectSupportedImageMimeTypeFromFile } from "pi:pi-coding-agent/image-type.ts";
export { getLanguageFromPath } from "pi:pi-coding-agent/theme/languages.ts";
export { discoverAndLoadExtensions } from "pi:pi-coding-agent/extensions/loader.ts";
export { convertToLlm, serializeConversation } from "pi:pi-coding-agent/messages.ts";
export { ModelRegistry, resolveModelScopeWithDiagnostics } from "pi:pi-coding-agent/models/registry.ts";
export { CredentialSynchronizationError, ModelRuntime, resolveCliModel } from "pi:pi-coding-agent/models/runtime.ts";
export { DefaultPackageManager } from "pi:pi-coding-agent/package-manager.ts";
export {
  createSyntheticSourceInfo,
  DefaultResourceLoader,
  formatSkillsForPrompt,
  loadProjectContextFiles,
  loadSkills,
  loadSkillsFromDir,
  parseSkillBlock,
} from "pi:pi-coding-agent/resource-loader.ts";
export { RpcClient } from "pi:pi-coding-agent/rpc-client.ts";
export {
  AgentSessionRuntime,
  createAgentSession,
  createAgentSessionFromServices,
  createAgentSessionRuntime,
  createAgentSessionServices,
} from "pi:pi-coding-agent/sdk.ts";
export {
  buildSessionContext,
  CURRENT_SESSION_VERSION,
  getLatestCompactionEntry,
  migrateSessionEntries,
  parseSessionEntries,
} from "pi:pi-coding-agent/session-manager/file.ts";
export { SettingsManager } from "pi:pi-coding-agent/settings-manager.ts";
export { SessionManager } from "pi:pi-coding-agent/session-manager/index.ts";
export { highlightCode, renderDiff } from "pi:pi-coding-agent/theme/highlight.ts";
export { initTheme, Theme } from "pi:pi-coding-agent/theme/index.ts";
export { hasTrustRequiringProjectResources, ProjectTrustStore } from "pi:pi-coding-agent/trust.ts";
export { truncateToVisualLines } from "pi:pi-coding-agent/text/visual-lines.ts";
export {
  bashTool,
  bashToolDefinition,
  codingTools,
  createBashTool,
  createBashToolDefinition,
  createCodingTools,
  createEditTool,
  createEditToolDefinition,
  createFindTool,
  createFindToolDefinition,
  createGrepTool,
  createGrepToolDefinition,
  createLocalBashOperations,
  createLsTool,
  createLsToolDefinition,
  createReadOnlyTools,
  createReadTool,
  createReadToolDefinition,
  createWriteTool,
  createWriteToolDefinition,
  editTool,
  editToolDefinition,
  findTool,
  findToolDefinition,
  getShellConfig,
  grepTool,
  grepToolDefinition,
  lsTool,
  lsToolDefinition,
  readOnlyTools,
  readTool,
  readToolDefinition,
  writeTool,
  writeToolDefinition,
} from "pi:pi-coding-agent/tools/factories.ts";
export {
  defineTool,
  isBashToolResult,
  isPowerShellToolResult,
  isEditToolResult,
  isFindToolResult,
  isGrepToolResult,
  isLsToolResult,
  isReadToolResult,
  isToolCallEventType,
  isWriteToolResult,
  withFileMutationQueue,
} from "pi:pi-coding-agent/tools/index.ts";
export {
  DEFAULT_MAX_BYTES,
  DEFAULT_MAX_LINES,
  formatSize,
  truncateHead,
  truncateLine,
  truncateTail,
} from "pi:pi-coding-agent/tools/truncate.ts";
export * from "pi:pi-coding-agent/program.ts";
export * from "pi:pi-coding-agent/unavailable.ts";
