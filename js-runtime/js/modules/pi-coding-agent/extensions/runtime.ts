// `createExtensionRuntime`, which loaders of extensions pass on.

/** The state that extensions of a session would share; a child session has none. */
export function createExtensionRuntime(): object {
  const refuse = () => {
    throw new Error(
      "Extension runtime not initialized. Action methods cannot be called during extension loading.",
    );
  };
  const actions = [
    "sendMessage",
    "sendUserMessage",
    "appendEntry",
    "setSessionName",
    "getSessionName",
    "setLabel",
    "getActiveTools",
    "getAllTools",
    "setActiveTools",
    "getCommands",
    "getThinkingLevel",
    "setThinkingLevel",
  ];
  interface Pending {
    name: string;
  }
  const runtime = {
    ...Object.fromEntries(actions.map((name) => [name, refuse])),
    refreshTools: () => {},
    setModel: () => Promise.reject(new Error("Extension runtime not initialized")),
    flagValues: new Map<string, boolean | string>(),
    pendingProviderRegistrations: [] as Pending[],
    registerProvider(name: string, config: unknown, extensionPath = "<unknown>"): void {
      runtime.pendingProviderRegistrations.push({ name, config, extensionPath } as Pending);
    },
    unregisterProvider(name: string): void {
      const kept = runtime.pendingProviderRegistrations.filter((registration) => registration.name !== name);
      runtime.pendingProviderRegistrations = kept;
    },
  };
  return runtime;
}
