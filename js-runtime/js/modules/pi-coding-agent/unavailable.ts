// Stand-ins for names of pi-coding-agent that are not offered yet: its own agent classes, tools and
// screens (0.67), and imports of extensions for newer versions.
import { unavailable } from "pi:unavailable.ts";
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
export const createLocalPowerShellOperations = unavailable("createLocalPowerShellOperations", MODULE, NO_POWERSHELL);
export const createPowerShellTool = unavailable("createPowerShellTool", MODULE, NO_POWERSHELL);
export const createPowerShellToolDefinition = unavailable("createPowerShellToolDefinition", MODULE, NO_POWERSHELL);
export const createPowershellTool = unavailable("createPowershellTool", MODULE, NO_POWERSHELL);
export const createPowershellToolDefinition = unavailable("createPowershellToolDefinition", MODULE, NO_POWERSHELL);
export const generateSummaryWithUsage = unavailable(
  "generateSummaryWithUsage",
  MODULE,
  "the usage of a summary is not available; use generateSummary()",
);
export const getPowerShellConfig = unavailable("getPowerShellConfig", MODULE, NO_POWERSHELL);
export const main = unavailable(
  "main",
  MODULE,
  "pi is running already; start another one as a child process (RpcClient, or process.execPath)",
);
export const runPrintMode = unavailable(
  "runPrintMode",
  MODULE,
  "stdout belongs to the program; use createAgentSession() and print its output",
);
export const runRpcMode = unavailable(
  "runRpcMode",
  MODULE,
  "stdin and stdout belong to the program; use RpcClient for another pi",
);
export const wrapRegisteredTool = unavailable(
  "wrapRegisteredTool",
  MODULE,
  "tools are run by the program; call the execute of their definitions",
);
export const wrapRegisteredTools = unavailable(
  "wrapRegisteredTools",
  MODULE,
  "tools are run by the program; call the execute of their definitions",
);
