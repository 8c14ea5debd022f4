// `pi`: the API object that the factory function of an extension gets.
// @ts-ignore: provided by the runtime
import { core } from "ext:core/mod.js";
import { host, hostSync } from "ext:js_runtime/bridge/host.ts";
import { events } from "ext:js_runtime/bridge/events.ts";
import {
  commands,
  handlers,
  isQueued,
  addNumbered,
  renderers,
  runningPurpose,
  shortcuts,
  tools,
  warn,
} from "ext:js_runtime/bridge/registry.ts";
import { COMMAND, FLAG, misspeltMembers, SHORTCUT, TOOL } from "ext:js_runtime/bridge/validate/members.ts";
import { markPrompted } from "ext:js_runtime/bridge/recent-prompt.ts";
import { registerProvider, unregisterProvider } from "ext:js_runtime/bridge/providers.ts";
import {
  aFunction,
  aSignal,
  asName,
  asText,
  asTextOrNone,
  asTexts,
  kind as kindOf,
  someMilliseconds,
  someOptions,
  argumentError,
} from "ext:js_runtime/bridge/validate/arguments.ts";
import { isArray } from "ext:js_runtime/primordials.ts";
import type { Command, Handler, ToolDefinition } from "ext:js_runtime/bridge/registry.ts";

interface ExecOptions {
  cwd?: string;
  /** Timeout in milliseconds. */
  timeout?: number;
  signal?: AbortSignal;
}

let execs = 0;

/** Checks that a definition is an object with these members. */
function definition<T extends object>(where: string, value: T, members: string): void {
  if (typeof value !== "object" || value === null || isArray(value)) {
    throw argumentError(where, `an object with ${members}`, value);
  }
}

/** Names the members that a definition has instead of a missing one. */
function membersInstead(value: unknown, definition: object): string {
  return value === undefined ? `it has ${Object.keys(definition).join(", ")}` : "";
}

interface FlagOptions {
  description?: string;
  type: "boolean" | "string";
  default?: boolean | string;
}

function checkFlag(name: string, options: FlagOptions | undefined): void {
  const { type, default: defaultValue } = someOptions("pi.registerFlag: options", options, '{ type: "boolean" }');
  if (defaultValue === undefined || defaultValue === null) return;
  // For an unknown type the default is not checked.
  if ((type === "boolean" || type === "string") && typeof defaultValue !== type) {
    throw argumentError(`pi.registerFlag: default of "${name}"`, `a ${type}, as its type says`, defaultValue);
  }
}

export function createApi(extension: number) {
  const call = <T>(method: string, args: object = {}): T =>
    hostSync<T>(`pi.${method}`, { extension, ...args });

  /**
   * Registers something with the program. The remark in its response is reported with the line of
   * the call.
   */
  const register = (method: string, args: object): void => {
    const remark = call<string | null>(method, args);
    if (typeof remark === "string") warn(extension, "load", new Error(remark));
  };

  /**
   * Runs `check`. A failure is reported and the rest of the definition is registered, because the
   * value is only displayed or configurable.
   */
  const orReport = <T>(check: () => T): T | undefined => {
    try {
      return check();
    } catch (error) {
      warn(extension, "load", error);
      return undefined;
    }
  };
  const shown = (where: string, value: unknown) => orReport(() => asTextOrNone(where, value));

  /** Reports misspelt members with the line of the call. The registration goes on without them. */
  const reportMisspelt = (what: string, definition: object, known: readonly string[]): void => {
    for (const problem of misspeltMembers(what, definition, known)) warn(extension, "load", new Error(problem));
  };

  return {
    events,

    /** Returns a function that unsubscribes the handler. */
    on(event: string, handler: Handler): () => void {
      asName("pi.on: event", event);
      aFunction(`pi.on: the handler of "${event}"`, handler);
      const id = addNumbered(handlers, handler);
      try {
        register("on", { event, id });
      } catch (error) {
        handlers.delete(id);
        throw error;
      }
      return () => {
        call("off", { event, id });
        handlers.delete(id);
      };
    },

    registerTool(tool: ToolDefinition): void {
      definition("pi.registerTool: tool", tool, "name, description, parameters and execute");
      const name = asName("pi.registerTool: name", tool.name);
      const where = (member: string) => `pi.registerTool: ${member} of "${name}"`;
      reportMisspelt(`pi.registerTool: "${name}"`, tool, TOOL);
      aFunction(where("execute"), tool.execute, membersInstead(tool.execute, tool));
      const { prepareArguments } = tool;
      if (prepareArguments !== undefined && prepareArguments !== null) {
        aFunction(where("prepareArguments"), prepareArguments);
      }
      const label = shown(where("label"), tool.label);
      const description = asTextOrNone(where("description"), tool.description);
      const id = addNumbered(tools, tool);
      register("registerTool", {
        id,
        name,
        label,
        description,
        parameters: tool.parameters,
        promptSnippet: tool.promptSnippet,
        promptGuidelines: tool.promptGuidelines,
        executionMode: tool.executionMode,
        prepares: typeof prepareArguments === "function",
        inactive: tool.defaultActive === false,
      });
    },

    registerCommand(name: string, command: Command): void {
      asName("pi.registerCommand: name", name);
      const where = (member: string) => `pi.registerCommand: ${member} of "${name}"`;
      definition(where("options"), command, "a handler");
      reportMisspelt(`pi.registerCommand: "${name}"`, command, COMMAND);
      aFunction(where("handler"), command.handler, membersInstead(command.handler, command));
      const { getArgumentCompletions } = command;
      if (getArgumentCompletions !== undefined && getArgumentCompletions !== null) {
        aFunction(where("getArgumentCompletions"), getArgumentCompletions);
      }
      const description = shown(where("description"), command.description);
      const id = addNumbered(commands, command);
      register("registerCommand", {
        id,
        name,
        description,
        completes: typeof getArgumentCompletions === "function",
      });
    },

    registerShortcut(key: string, options: { description?: string; handler: unknown }): void {
      asName("pi.registerShortcut: key", key);
      const where = (member: string) => `pi.registerShortcut: ${member} of "${key}"`;
      definition(where("options"), options, "a handler");
      reportMisspelt(`pi.registerShortcut: "${key}"`, options, SHORTCUT);
      aFunction(where("handler"), options.handler, membersInstead(options.handler, options));
      const description = shown(where("description"), options.description);
      const id = addNumbered(shortcuts, options.handler);
      register("registerShortcut", { id, key, description });
    },

    registerFlag(name: string, options: FlagOptions): void {
      asName("pi.registerFlag: name", name);
      orReport(() => checkFlag(name, options));
      if (options) reportMisspelt(`pi.registerFlag: "${name}"`, options, FLAG);
      const kind: unknown = options?.type;
      if (kind !== undefined && kind !== null && kind !== "boolean" && kind !== "string") {
        const problem = `pi.registerFlag: type of "${name}" is "boolean" or "string", not ${kindOf(kind)}; it takes a value`;
        warn(extension, "load", new Error(problem));
      }
      register("registerFlag", {
        name,
        description: shown(`pi.registerFlag: description of "${name}"`, options?.description),
        // Every type but a boolean takes a value, whatever the type is called.
        kind: options?.type === "boolean" ? "boolean" : "string",
        default: options?.default,
      });
    },

    getFlag: (name: string) => call("getFlag", { name: asName("pi.getFlag: name", name) }),

    registerMessageRenderer(customType: string, renderer: unknown): void {
      asName("pi.registerMessageRenderer: customType", customType);
      aFunction(`pi.registerMessageRenderer: the renderer of "${customType}"`, renderer);
      register("registerRenderer", { id: addNumbered(renderers, renderer), customType, kind: "message" });
    },

    /** Registers the renderer of entries that `appendEntry` adds. */
    registerEntryRenderer(customType: string, renderer: unknown): void {
      asName("pi.registerEntryRenderer: customType", customType);
      aFunction(`pi.registerEntryRenderer: the renderer of "${customType}"`, renderer);
      register("registerRenderer", { id: addNumbered(renderers, renderer), customType, kind: "entry" });
    },

    /** Tool renderers are consulted in load order. */
    registerToolRenderer(resolver: unknown): void {
      aFunction("pi.registerToolRenderer: the argument", resolver);
      register("registerRenderer", { id: addNumbered(renderers, resolver), kind: "tool" });
    },

    /** Transforms what is drawn, not what is stored; one for each extension. */
    registerMarkdownTransformer(transformer: unknown, options?: object): void {
      aFunction("pi.registerMarkdownTransformer: the argument", transformer);
      register("registerRenderer", { id: addNumbered(renderers, { transformer, ...options }), kind: "markdown" });
    },

    sendMessage(message: unknown, options?: unknown): void {
      call("sendMessage", { message, options });
    },

    sendUserMessage(content: unknown, options?: unknown): void {
      call("sendUserMessage", { content, options });
      markPrompted();
    },

    appendEntry(customType: string, data?: unknown): void {
      call("appendEntry", { customType: asName("pi.appendEntry: customType", customType), data });
    },

    setSessionName: (name: string) => {
      if (name === undefined || name === null) {
        throw new TypeError(`pi.setSessionName: a string is wanted, not ${name}`);
      }
      call("setSessionName", { name: asText("pi.setSessionName: name", name) });
    },
    getSessionName: () => call<string | undefined>("getSessionName"),
    setLabel(entryId: string, label: string | undefined): void {
      call("setLabel", { entryId, label: asTextOrNone("pi.setLabel: label", label) });
    },

    /** A command that cannot be started has exit code 1. */
    async exec(command: string, args: string[] = [], options?: ExecOptions | null) {
      if (typeof command !== "string" || command === "") {
        throw argumentError("pi.exec: command", "the name of a program", command);
      }
      const hint = typeof args === "string" ? `write ["${args}"]` : "";
      const words = { command, args: asTexts("pi.exec: args", args, hint) };
      const execOptions = someOptions("pi.exec: options", options, '{ cwd: "folder", timeout: 5000 }');
      const cwd = asTextOrNone("pi.exec: options.cwd", execOptions.cwd);
      const timeout = someMilliseconds("pi.exec: options.timeout", execOptions.timeout);
      const signal = aSignal("pi.exec: options.signal", execOptions.signal);
      const token = (execs += 1);
      const kill = () => hostSync("pi.execKill", { token });
      const running = host("pi.exec", { extension, token, ...words, cwd, timeout });
      if (signal?.aborted) kill();
      signal?.addEventListener("abort", kill, { once: true });
      try {
        return await running;
      } finally {
        signal?.removeEventListener("abort", kill);
      }
    },

    /** With the setting `extensionWatch`, a change of this file or folder causes a reload, too. */
    watch(path: string | URL): void {
      const where = asText("pi.watch: path", path, "a path, or a URL that begins with file:");
      const { fileURLToPath } = core.createLazyLoader("node:url")().default;
      const { resolve } = core.createLazyLoader("node:path")().default;
      call("watch", { path: resolve(where.startsWith("file:") ? fileURLToPath(where) : where) });
    },

    getActiveTools: () => call<string[]>("getActiveTools"),
    // Accepts any iterable.
    setActiveTools(names: Iterable<string>): void {
      // A single name would be iterated letter by letter.
      if (typeof names === "string" || typeof names?.[Symbol.iterator] !== "function") {
        throw argumentError("pi.setActiveTools: names", "an array of strings", names);
      }
      call<void>("setActiveTools", { names: [...names] });
    },
    getAllTools: () => call("getAllTools"),
    getSettings: () => call("getSettings"),
    getCommands: () => call("getCommands"),

    async setModel(model: { provider: string; id: string }): Promise<boolean> {
      if (typeof model !== "object" || model === null) {
        const hint = "ctx.modelRegistry.find(provider, id) gives one, or undefined if there is none";
        throw argumentError("pi.setModel: model", "a model", model, hint);
      }
      const { provider, id } = model;
      // A handler that the agent waits for would block the queue.
      const queued = isQueued() || runningPurpose() === "model_select";
      return await host<boolean>("pi.setModel", { extension, provider, id, model, queued });
    },
    getThinkingLevel: () => call<string>("getThinkingLevel"),
    setThinkingLevel(level: string): void {
      call("setThinkingLevel", { level: asName("pi.setThinkingLevel: level", level) });
    },

    registerProvider: (
      name: Parameters<typeof registerProvider>[1],
      config?: Parameters<typeof registerProvider>[2],
    ) => registerProvider(extension, name, config),
    unregisterProvider: (name: string) => unregisterProvider(extension, name),
  };
}
