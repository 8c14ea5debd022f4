// `pi`: what the factory of an extension is given.
import { host, hostSync } from "ext:js_runtime/bridge/host.ts";
import { events } from "ext:js_runtime/bridge/events.ts";
import {
  commands,
  handlers,
  isQueued,
  keep,
  renderers,
  running,
  shortcuts,
  tools,
  warn,
} from "ext:js_runtime/bridge/registry.ts";
import { COMMAND, FLAG, nearMisses, SHORTCUT, TOOL } from "ext:js_runtime/bridge/validate/members.ts";
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
  wrong,
} from "ext:js_runtime/bridge/validate/arguments.ts";
import { isArray } from "ext:js_runtime/primordials.ts";
import type { Command, Handler, ToolDefinition } from "ext:js_runtime/bridge/registry.ts";

interface ExecOptions {
  cwd?: string;
  /** Milliseconds. */
  timeout?: number;
  signal?: AbortSignal;
}

let execs = 0;

/** What is registered: an object with these members. */
function definition<T extends object>(where: string, value: T, members: string): void {
  if (typeof value !== "object" || value === null || isArray(value)) {
    throw wrong(where, `an object with ${members}`, value);
  }
}

/** What there is where a member is wanted that is not there. */
function instead(value: unknown, given: object): string {
  return value === undefined ? `it has ${Object.keys(given).join(", ")}` : "";
}

interface FlagOptions {
  description?: string;
  type: "boolean" | "string";
  default?: boolean | string;
}

function checkFlag(name: string, options: FlagOptions | undefined): void {
  const { type, default: given } = someOptions("pi.registerFlag: options", options, '{ type: "boolean" }');
  if (given === undefined || given === null) return;
  // Of an unknown type nothing is known of what comes with it.
  if ((type === "boolean" || type === "string") && typeof given !== type) {
    throw wrong(`pi.registerFlag: default of "${name}"`, `a ${type}, as its type says`, given);
  }
}

export function createApi(extension: number) {
  const call = <T>(method: string, args: object = {}): T =>
    hostSync<T>(`pi.${method}`, { extension, ...args });

  /** What is taken, or not taken, with a remark: it is told with the line that it is about. */
  const register = (method: string, args: object): void => {
    const remark = call<string | null>(method, args);
    if (typeof remark === "string") warn(extension, "load", new Error(remark));
  };

  /** What people are shown, or may change: it is told that it cannot be meant, and the rest is registered. */
  const orTold = <T>(check: () => T): T | undefined => {
    try {
      return check();
    } catch (error) {
      warn(extension, "load", error);
      return undefined;
    }
  };
  const shown = (where: string, value: unknown) => orTold(() => asTextOrNone(where, value));

  /** It goes on without what is misspelt; the line is that of the call. */
  const slips = (what: string, given: object, known: readonly string[]): void => {
    for (const slip of nearMisses(what, given, known)) warn(extension, "load", new Error(slip));
  };

  return {
    events,

    /** Returns what ends the subscription. */
    on(event: string, handler: Handler): () => void {
      asName("pi.on: event", event);
      aFunction(`pi.on: the handler of "${event}"`, handler);
      const id = keep(handlers, handler);
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
      const of = (member: string) => `pi.registerTool: ${member} of "${name}"`;
      slips(`pi.registerTool: "${name}"`, tool, TOOL);
      aFunction(of("execute"), tool.execute, instead(tool.execute, tool));
      const { prepareArguments } = tool;
      if (prepareArguments !== undefined && prepareArguments !== null) {
        aFunction(of("prepareArguments"), prepareArguments);
      }
      const label = shown(of("label"), tool.label);
      const description = asTextOrNone(of("description"), tool.description);
      const id = keep(tools, tool);
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
      slips(`pi.registerCommand: "${name}"`, command, COMMAND);
      aFunction(where("handler"), command.handler, instead(command.handler, command));
      const { getArgumentCompletions } = command;
      if (getArgumentCompletions !== undefined && getArgumentCompletions !== null) {
        aFunction(where("getArgumentCompletions"), getArgumentCompletions);
      }
      const description = shown(where("description"), command.description);
      const id = keep(commands, command);
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
      slips(`pi.registerShortcut: "${key}"`, options, SHORTCUT);
      aFunction(where("handler"), options.handler, instead(options.handler, options));
      const description = shown(where("description"), options.description);
      const id = keep(shortcuts, options.handler);
      register("registerShortcut", { id, key, description });
    },

    registerFlag(name: string, options: FlagOptions): void {
      asName("pi.registerFlag: name", name);
      orTold(() => checkFlag(name, options));
      if (options) slips(`pi.registerFlag: "${name}"`, options, FLAG);
      const kind: unknown = options?.type;
      if (kind !== undefined && kind !== null && kind !== "boolean" && kind !== "string") {
        const slip = `pi.registerFlag: type of "${name}" is "boolean" or "string", not ${kindOf(kind)}; it takes a value`;
        warn(extension, "load", new Error(slip));
      }
      register("registerFlag", {
        name,
        description: shown(`pi.registerFlag: description of "${name}"`, options?.description),
        // What is no switch takes a value, whatever it is called.
        kind: options?.type === "boolean" ? "boolean" : "string",
        default: options?.default,
      });
    },

    getFlag: (name: string) => call("getFlag", { name: asName("pi.getFlag: name", name) }),

    registerMessageRenderer(customType: string, renderer: unknown): void {
      asName("pi.registerMessageRenderer: customType", customType);
      aFunction(`pi.registerMessageRenderer: the renderer of "${customType}"`, renderer);
      register("registerRenderer", { id: keep(renderers, renderer), customType, kind: "message" });
    },

    /** The same for what `appendEntry` adds. */
    registerEntryRenderer(customType: string, renderer: unknown): void {
      asName("pi.registerEntryRenderer: customType", customType);
      aFunction(`pi.registerEntryRenderer: the renderer of "${customType}"`, renderer);
      register("registerRenderer", { id: keep(renderers, renderer), customType, kind: "entry" });
    },

    /** Asked how a tool call is drawn, in load order. */
    registerToolRenderer(resolver: unknown): void {
      aFunction("pi.registerToolRenderer: the argument", resolver);
      register("registerRenderer", { id: keep(renderers, resolver), kind: "tool" });
    },

    /** Of what is drawn, not of what is stored; one for each extension. */
    registerMarkdownTransformer(transformer: unknown, options?: object): void {
      aFunction("pi.registerMarkdownTransformer: the argument", transformer);
      register("registerRenderer", { id: keep(renderers, { transformer, ...options }), kind: "markdown" });
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

    /** What cannot be started has code 1. */
    async exec(command: string, args: string[] = [], options?: ExecOptions | null) {
      if (typeof command !== "string" || command === "") {
        throw wrong("pi.exec: command", "the name of a program", command);
      }
      const hint = typeof args === "string" ? `write ["${args}"]` : "";
      const words = { command, args: asTexts("pi.exec: args", args, hint) };
      const given = someOptions("pi.exec: options", options, '{ cwd: "folder", timeout: 5000 }');
      const cwd = asTextOrNone("pi.exec: options.cwd", given.cwd);
      const timeout = someMilliseconds("pi.exec: options.timeout", given.timeout);
      const signal = aSignal("pi.exec: options.signal", given.signal);
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

    getActiveTools: () => call<string[]>("getActiveTools"),
    // Whatever can be gone through.
    setActiveTools(names: Iterable<string>): void {
      // The letters of a name are no tools.
      if (typeof names === "string" || typeof names?.[Symbol.iterator] !== "function") {
        throw wrong("pi.setActiveTools: names", "an array of strings", names);
      }
      call<void>("setActiveTools", { names: [...names] });
    },
    getAllTools: () => call("getAllTools"),
    getSettings: () => call("getSettings"),
    getCommands: () => call("getCommands"),

    async setModel(model: { provider: string; id: string }): Promise<boolean> {
      if (typeof model !== "object" || model === null) {
        const hint = "ctx.modelRegistry.find(provider, id) gives one, or undefined if there is none";
        throw wrong("pi.setModel: model", "a model", model, hint);
      }
      const { provider, id } = model;
      // Who is called for it stands in the way of others, too.
      const queued = isQueued() || running() === "model_select";
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
