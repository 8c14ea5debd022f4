// `pi`: what the factory of an extension is given.
import { host, hostSync } from "ext:js_runtime/host.ts";
import { text, textOrNone, texts } from "ext:js_runtime/safe.ts";
import { events } from "ext:js_runtime/bridge/events.ts";
import {
  commands,
  handlers,
  isQueued,
  keep,
  renderers,
  shortcuts,
  tools,
} from "ext:js_runtime/bridge/registry.ts";
import { registerProvider, unregisterProvider } from "ext:js_runtime/bridge/providers.ts";
import type { Command, Handler, ToolDefinition } from "ext:js_runtime/bridge/registry.ts";

interface ExecOptions {
  cwd?: string;
  /** Milliseconds. */
  timeout?: number;
  signal?: AbortSignal;
}

let execs = 0;

function requireFunction(value: unknown, what: string): void {
  if (typeof value !== "function") {
    throw new TypeError(`${what} must be a function, not ${value === null ? "null" : typeof value}`);
  }
}

export function createApi(extension: number) {
  const call = <T>(method: string, args: object = {}): T =>
    hostSync<T>(`pi.${method}`, { extension, ...args });

  return {
    events,

    /** Returns what ends the subscription. */
    on(event: string, handler: Handler): () => void {
      requireFunction(handler, `The handler of pi.on("${event}")`);
      const id = keep(handlers, handler);
      try {
        call("on", { event, id });
      } catch (error) {
        handlers.delete(id);
        throw error;
      }
      return () => {
        call("off", { event, id });
        handlers.delete(id);
      };
    },

    registerTool(definition: ToolDefinition): void {
      requireFunction(definition?.execute, `execute of the tool "${definition?.name}"`);
      const id = keep(tools, definition);
      call("registerTool", {
        id,
        name: definition.name,
        label: textOrNone(definition.label),
        description: textOrNone(definition.description),
        parameters: definition.parameters,
        promptSnippet: definition.promptSnippet,
        promptGuidelines: definition.promptGuidelines,
        executionMode: definition.executionMode,
        prepares: typeof definition.prepareArguments === "function",
        inactive: definition.defaultActive === false,
      });
    },

    registerCommand(name: string, command: Command): void {
      requireFunction(command?.handler, `The handler of the command "${name}"`);
      const id = keep(commands, command);
      call("registerCommand", {
        id,
        name,
        description: textOrNone(command.description),
        completes: typeof command.getArgumentCompletions === "function",
      });
    },

    registerShortcut(key: string, options: { description?: string; handler: unknown }): void {
      requireFunction(options?.handler, `The handler of the shortcut "${key}"`);
      const id = keep(shortcuts, options.handler);
      call("registerShortcut", { id, key, description: textOrNone(options.description) });
    },

    registerFlag(
      name: string,
      options: { description?: string; type: "boolean" | "string"; default?: boolean | string },
    ): void {
      call("registerFlag", {
        name,
        description: textOrNone(options?.description),
        // What is no switch takes a value, whatever it is called.
        kind: options?.type === "boolean" ? "boolean" : "string",
        default: options?.default,
      });
    },

    getFlag: (name: string) => call("getFlag", { name }),

    registerMessageRenderer(customType: string, renderer: unknown): void {
      requireFunction(renderer, `The renderer of "${customType}"`);
      call("registerRenderer", { id: keep(renderers, renderer), customType, kind: "message" });
    },

    /** The same for what `appendEntry` adds. */
    registerEntryRenderer(customType: string, renderer: unknown): void {
      requireFunction(renderer, `The renderer of "${customType}"`);
      call("registerRenderer", { id: keep(renderers, renderer), customType, kind: "entry" });
    },

    /** Asked how a tool call is drawn, in load order. */
    registerToolRenderer(resolver: unknown): void {
      requireFunction(resolver, "The argument of pi.registerToolRenderer()");
      call("registerRenderer", { id: keep(renderers, resolver), kind: "tool" });
    },

    /** Of what is drawn, not of what is stored; one for each extension. */
    registerMarkdownTransformer(transformer: unknown, options?: object): void {
      requireFunction(transformer, "The argument of pi.registerMarkdownTransformer()");
      call("registerRenderer", { id: keep(renderers, { transformer, ...options }), kind: "markdown" });
    },

    sendMessage(message: unknown, options?: unknown): void {
      call("sendMessage", { message, options });
    },

    sendUserMessage(content: unknown, options?: unknown): void {
      call("sendUserMessage", { content, options });
    },

    appendEntry(customType: string, data?: unknown): void {
      call("appendEntry", { customType, data });
    },

    setSessionName: (name: string) => {
      if (name === undefined || name === null) {
        throw new TypeError(`pi.setSessionName: a string is wanted, not ${name}`);
      }
      call("setSessionName", { name: text(name) });
    },
    getSessionName: () => call<string | undefined>("getSessionName"),
    setLabel(entryId: string, label: string | undefined): void {
      call("setLabel", { entryId, label: textOrNone(label) });
    },

    /** What cannot be started has code 1. */
    async exec(command: string, args: string[] = [], options: ExecOptions = {}) {
      if (!Array.isArray(args)) {
        throw new TypeError(`The arguments of ${command} must be an array, such as ["${args}"]`);
      }
      const { signal, cwd, timeout } = options;
      const token = (execs += 1);
      const kill = () => hostSync("pi.execKill", { token });
      const words = { command: text(command), args: texts(args) };
      const running = host("pi.exec", { extension, token, ...words, cwd, timeout });
      if (signal?.aborted) kill();
      signal?.addEventListener("abort", kill, { once: true });
      try {
        return await running;
      } finally {
        signal?.removeEventListener("abort", kill);
      }
    },

    getActiveTools: () => call<string[]>("getActiveTools"),
    // Whatever can be gone through.
    setActiveTools: (names: Iterable<string>) => call<void>("setActiveTools", { names: [...names] }),
    getAllTools: () => call("getAllTools"),
    getSettings: () => call("getSettings"),
    getCommands: () => call("getCommands"),

    setModel: (model: { provider: string; id: string }) =>
      host<boolean>("pi.setModel", {
        extension,
        provider: model?.provider,
        id: model?.id,
        model,
        queued: isQueued(),
      }),
    getThinkingLevel: () => call<string>("getThinkingLevel"),
    setThinkingLevel: (level: string) => call<void>("setThinkingLevel", { level }),

    registerProvider: (
      name: Parameters<typeof registerProvider>[1],
      config?: Parameters<typeof registerProvider>[2],
    ) => registerProvider(extension, name, config),
    unregisterProvider: (name: string) => unregisterProvider(extension, name),
  };
}
