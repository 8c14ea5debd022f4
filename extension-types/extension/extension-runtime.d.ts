// The runtime that loaders of extensions pass on: `createExtensionRuntime` makes one without
// extensions.
import type { ExtensionAPI } from "./api.js";
import type { ProviderConfig } from "../ai/providers.js";

/** The actions throw until a session is bound, which never happens here. */
export interface ExtensionActions extends
  Pick<
    ExtensionAPI,
    | "sendMessage" | "sendUserMessage" | "appendEntry" | "setSessionName" | "getSessionName" | "setLabel"
    | "getActiveTools" | "getAllTools" | "setActiveTools" | "getCommands" | "setModel" | "getThinkingLevel"
    | "setThinkingLevel"
  > {
  refreshTools(): void;
}
export interface ExtensionRuntime extends ExtensionActions {
  flagValues: Map<string, boolean | string>;
  pendingProviderRegistrations: { name: string; config: ProviderConfig; extensionPath: string }[];
  registerProvider(name: string, config: ProviderConfig, extensionPath?: string): void;
  unregisterProvider(name: string, extensionPath?: string): void;
}

// Without this line every declaration would be exported.
export {};
