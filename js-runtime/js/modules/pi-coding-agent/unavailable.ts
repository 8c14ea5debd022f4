// Stand-ins for names of pi-coding-agent that are not offered yet: its own agent classes, tools and
// screens (0.67), and imports of extensions for newer versions.
import { missing } from "pi:unavailable.ts";
import { patchedClass } from "pi:unavailable-classes.ts";

const MODULE = "@mariozechner/pi-coding-agent";

export const ExtensionRunner = patchedClass(
  "ExtensionRunner",
  MODULE,
  "extensions are run by the program",
);
export const InteractiveMode = patchedClass(
  "InteractiveMode",
  MODULE,
  "the terminal belongs to the program; use ctx.ui, or RpcClient for another pi",
);
const NO_POWERSHELL = "commands are run by bash; use createBashTool()";
export const createLocalPowerShellOperations = missing("createLocalPowerShellOperations", MODULE, NO_POWERSHELL);
export const createPowerShellTool = missing("createPowerShellTool", MODULE, NO_POWERSHELL);
export const createPowerShellToolDefinition = missing("createPowerShellToolDefinition", MODULE, NO_POWERSHELL);
export const createPowershellTool = missing("createPowershellTool", MODULE, NO_POWERSHELL);
export const createPowershellToolDefinition = missing("createPowershellToolDefinition", MODULE, NO_POWERSHELL);
export const generateSummaryWithUsage = missing(
  "generateSummaryWithUsage",
  MODULE,
  "the usage of a summary is not available; use generateSummary()",
);
export const getPowerShellConfig = missing("getPowerShellConfig", MODULE, NO_POWERSHELL);
export const main = missing(
  "main",
  MODULE,
  "pi is running already; start another one as a child process (RpcClient, or process.execPath)",
);
export const runPrintMode = missing(
  "runPrintMode",
  MODULE,
  "stdout belongs to the program; use createAgentSession() and print its output",
);
export const runRpcMode = missing(
  "runRpcMode",
  MODULE,
  "stdin and stdout belong to the program; use RpcClient for another pi",
);
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
