// Names of pi-coding-agent that we do not offer yet: its own agent classes, tools
// and screens (0.67), and what extensions for newer versions import.
import { missing } from "pi:missing.ts";

const MODULE = "@mariozechner/pi-coding-agent";

export const ArminComponent = missing("ArminComponent", MODULE);
export const AssistantMessageComponent = missing("AssistantMessageComponent", MODULE);
export const AuthStorage = missing("AuthStorage", MODULE);
export const BashExecutionComponent = missing("BashExecutionComponent", MODULE);
export const BranchSummaryMessageComponent = missing("BranchSummaryMessageComponent", MODULE);
export const CompactionSummaryMessageComponent = missing("CompactionSummaryMessageComponent", MODULE);
export const CustomEditor = missing("CustomEditor", MODULE);
export const CustomMessageComponent = missing("CustomMessageComponent", MODULE);
export const DefaultPackageManager = missing(
  "DefaultPackageManager",
  MODULE,
  "packages are managed by the program; call `pi install`, `pi remove` and `pi list` with pi.exec",
);
export const ExtensionEditorComponent = missing("ExtensionEditorComponent", MODULE);
export const ExtensionInputComponent = missing("ExtensionInputComponent", MODULE);
export const ExtensionRunner = missing(
  "ExtensionRunner",
  MODULE,
  "extensions are run by the program",
);
export const ExtensionSelectorComponent = missing("ExtensionSelectorComponent", MODULE);
export const FileAuthStorageBackend = missing("FileAuthStorageBackend", MODULE);
export const FooterComponent = missing("FooterComponent", MODULE);
export const InMemoryAuthStorageBackend = missing("InMemoryAuthStorageBackend", MODULE);
export const InteractiveMode = missing(
  "InteractiveMode",
  MODULE,
  "the terminal belongs to the program; use ctx.ui, or RpcClient for another pi",
);
export const LoginDialogComponent = missing("LoginDialogComponent", MODULE);
export const ModelRegistry = missing("ModelRegistry", MODULE);
export const ModelRuntime = missing("ModelRuntime", MODULE);
export const ModelSelectorComponent = missing("ModelSelectorComponent", MODULE);
export const OAuthSelectorComponent = missing("OAuthSelectorComponent", MODULE);
export const SessionSelectorComponent = missing("SessionSelectorComponent", MODULE);
export const SettingsManager = missing("SettingsManager", MODULE);
export const SettingsSelectorComponent = missing("SettingsSelectorComponent", MODULE);
export const ShowImagesSelectorComponent = missing("ShowImagesSelectorComponent", MODULE);
export const SkillInvocationMessageComponent = missing("SkillInvocationMessageComponent", MODULE);
export const ThemeSelectorComponent = missing("ThemeSelectorComponent", MODULE);
export const ThinkingSelectorComponent = missing("ThinkingSelectorComponent", MODULE);
export const ToolExecutionComponent = missing("ToolExecutionComponent", MODULE);
export const TreeSelectorComponent = missing("TreeSelectorComponent", MODULE);
export const UserMessageComponent = missing("UserMessageComponent", MODULE);
export const UserMessageSelectorComponent = missing("UserMessageSelectorComponent", MODULE);
export const copyToClipboard = missing("copyToClipboard", MODULE);
export const createPowershellTool = missing("createPowershellTool", MODULE);
export const createPowershellToolDefinition = missing("createPowershellToolDefinition", MODULE);
export const discoverAndLoadExtensions = missing(
  "discoverAndLoadExtensions",
  MODULE,
  "extensions are loaded by the program; put them where it looks for them, or import them",
);
export const generateDiffString = missing("generateDiffString", MODULE);
export const generateUnifiedPatch = missing("generateUnifiedPatch", MODULE);
export const highlightCode = missing("highlightCode", MODULE);
export const main = missing(
  "main",
  MODULE,
  "pi is running already; start another one as a child process (RpcClient, or process.execPath)",
);
export const renderDiff = missing("renderDiff", MODULE);
export const resizeImage = missing("resizeImage", MODULE);
export const runPrintMode = missing(
  "runPrintMode",
  MODULE,
  "stdout belongs to the program; use createAgentSession() and print what it says",
);
export const runRpcMode = missing(
  "runRpcMode",
  MODULE,
  "stdin and stdout belong to the program; use RpcClient for another pi",
);
export const truncateToVisualLines = missing("truncateToVisualLines", MODULE);
export const wrapRegisteredTool = missing(
  "wrapRegisteredTool",
  MODULE,
  "tools are run by the program; call the execute of their definitions",
);
export const wrapRegisteredTools = missing(
  "wrapRegisteredTools",
  MODULE,
  "tools are run by the program; call the execute of their definitions",
);
