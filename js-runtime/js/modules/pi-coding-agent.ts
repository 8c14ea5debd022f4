// `@mariozechner/pi-coding-agent`: what extensions are written against.
export { createEventBus } from "pi:host.ts";
export {
  AuthStorage,
  FileAuthStorageBackend,
  InMemoryAuthStorageBackend,
} from "pi:pi-coding-agent/auth-storage.ts";
export { BorderedLoader, DynamicBorder } from "pi:pi-coding-agent/components.ts";
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
} from "pi:pi-coding-agent/compaction.ts";
export { getAgentDir, VERSION } from "pi:pi-coding-agent/config.ts";
export { parseFrontmatter, stripFrontmatter } from "pi:pi-coding-agent/frontmatter.ts";
export { keyHint, keyText, rawKeyHint } from "pi:pi-coding-agent/key-hints.ts";
export { getLanguageFromPath } from "pi:pi-coding-agent/languages.ts";
export { convertToLlm, serializeConversation } from "pi:pi-coding-agent/messages.ts";
export { ModelRegistry } from "pi:pi-coding-agent/model-registry.ts";
export {
  buildSessionContext,
  CURRENT_SESSION_VERSION,
  getLatestCompactionEntry,
  migrateSessionEntries,
  parseSessionEntries,
} from "pi:pi-coding-agent/session-file.ts";
export { SettingsManager } from "pi:pi-coding-agent/settings-manager.ts";
export { SessionManager } from "pi:pi-coding-agent/session-manager.ts";
export {
  getMarkdownTheme,
  getSelectListTheme,
  getSettingsListTheme,
  initTheme,
  Theme,
} from "pi:pi-coding-agent/theme.ts";
export {
  defineTool,
  isBashToolResult,
  isEditToolResult,
  isFindToolResult,
  isGrepToolResult,
  isLsToolResult,
  isReadToolResult,
  isToolCallEventType,
  isWriteToolResult,
  withFileMutationQueue,
} from "pi:pi-coding-agent/tools.ts";
export {
  DEFAULT_MAX_BYTES,
  DEFAULT_MAX_LINES,
  formatSize,
  truncateHead,
  truncateLine,
  truncateTail,
} from "pi:pi-coding-agent/truncate.ts";
export * from "pi:pi-coding-agent/missing.ts";
