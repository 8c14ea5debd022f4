// The built-in tools for extensions that wrap them or replace their operations. The program
// implements them; this module makes objects that call them.
import { hostSync } from "pi:host.ts";
import { currentFolder, environment } from "pi:node.ts";
import { builtInRenderers } from "pi:pi-coding-agent/tools/rows/built-in.ts";
import { run } from "pi:pi-coding-agent/tools/execute.ts";
import type { BashOperations, ExecOptions, Operations } from "pi:pi-coding-agent/tools/execute.ts";

interface ToolOptions {
  operations?: Operations;
  /** An option of `read`. */
  autoResizeImages?: boolean;
  /** An option of `bash`: a line before every command. */
  commandPrefix?: string;
  /** An option of `bash`: `false` omits `PI_SESSION_ID` and similar variables. */
  exposeSessionEnvironment?: boolean;
  /** An option of `bash`: the program that runs commands, if they run here. */
  shellPath?: string;
  /** An option of `bash`. */
  spawnHook?: (context: SpawnContext) => SpawnContext;
}

interface SpawnContext {
  command: string;
  cwd: string;
  env: Record<string, string | undefined>;
}

interface Description {
  name: string;
  label: string;
  description: string;
  parameters: unknown;
  promptSnippet?: string;
  promptGuidelines?: string[];
  executionMode?: "sequential";
}

interface AgentTool {
  name: string;
  label: string;
  description: string;
  parameters: unknown;
  executionMode?: "sequential";
  prepareArguments(args: unknown): unknown;
  execute(
    toolCallId: string,
    params: unknown,
    signal?: AbortSignal,
    onUpdate?: (partial: unknown) => void,
    ctx?: unknown,
  ): Promise<unknown>;
}

interface Shell {
  shell: string;
  args: string[];
  path: string;
  /** Variables that describe the session to commands of the model. */
  session: Record<string, string>;
  /** Variables that tell programs that no user can answer, except those that the user has set. */
  unattended: Record<string, string>;
}

interface ToolDefinition extends AgentTool {
  promptSnippet?: string;
  promptGuidelines?: string[];
  renderShell?: "default" | "self";
}

/** The shell of the settings, unless a path names another; an empty path does not. */
const shell = (shellPath?: string) => hostSync<Shell>("tools.shell", { shellPath: shellPath || undefined });

/** The shell that runs commands, and its arguments before a command. */
export function getShellConfig(customShellPath?: string): { shell: string; args: string[] } {
  const { shell: program, args } = shell(customShellPath);
  return { shell: program, args };
}

/** The environment of commands. */
function shellEnvironment(exposesSession: boolean, shellPath?: string): Record<string, string | undefined> {
  const { path, session, unattended } = shell(shellPath);
  return { ...unattended, ...environment(), PATH: path, ...(exposesSession ? session : {}) };
}

/** Runs commands as pi does. */
export function createLocalBashOperations(options: { shellPath?: string } = {}): BashOperations {
  const shellPath = options.shellPath || undefined;
  return {
    exec: (command, cwd, { onData, signal, timeout, env }: ExecOptions) =>
      run<{ exitCode: number | null }>(
        { name: "exec", cwd, args: { command, timeout }, env, shellPath },
        { signal, onData },
      ),
  };
}

function executor(name: string, cwd: string, options: ToolOptions): AgentTool["execute"] {
  return async (callId, params, signal, onUpdate) => {
    const { operations, autoResizeImages } = options;
    const what = { name, callId, cwd, args: params, operations, autoResizeImages };
    if (name !== "bash") return await run(what, { signal, onUpdate });
    const args = params as { command: string };
    const { commandPrefix, spawnHook, exposeSessionEnvironment = true } = options;
    const command = commandPrefix ? `${commandPrefix}\n${args.command}` : args.command;
    const shellPath = operations ? undefined : options.shellPath || undefined;
    const context = { command, cwd, env: shellEnvironment(exposeSessionEnvironment, shellPath) };
    const spawned = spawnHook ? spawnHook(context) : context;
    return await run(
      { ...what, cwd: spawned.cwd, env: spawned.env, args: { ...args, command: spawned.command }, shellPath },
      { signal, onUpdate },
    );
  };
}

function createTool(name: string, cwd: string, options: ToolOptions = {}): AgentTool {
  const { promptSnippet: _, promptGuidelines: __, ...described } = describe(name);
  return {
    ...described,
    prepareArguments: (args) => hostSync("tools.prepare", { name, args: args ?? null }),
    execute: executor(name, cwd, options),
  };
}

function createDefinition(name: string, cwd: string, options: ToolOptions = {}): ToolDefinition {
  const { promptSnippet, promptGuidelines } = describe(name);
  return {
    ...createTool(name, cwd, options),
    promptSnippet,
    promptGuidelines,
    ...builtInRenderers(name),
  };
}

const BUILT_IN_TOOLS = ["read", "bash", "edit", "write", "grep", "find", "ls"];

/** `undefined` if pi has no tool of that name. */
export function builtInDefinition(name: string, cwd: string): ToolDefinition | undefined {
  return BUILT_IN_TOOLS.includes(name) ? createDefinition(name, cwd) : undefined;
}

const describe = (name: string) => hostSync<Description>("tools.describe", { name });

const MEMBERS = ["name", "label", "description", "parameters", "prepareArguments", "execute"];
const DEFINED = [...MEMBERS, "promptSnippet", "promptGuidelines", "renderCall", "renderResult"];

/** Creates the object on first use, for the current folder at that time. */
function lazily<T extends object>(members: string[], make: () => T): T {
  let made: T | undefined;
  const tool = {} as T;
  for (const member of members) {
    Object.defineProperty(tool, member, {
      configurable: true,
      enumerable: true,
      get: () => (made ??= make())[member as keyof T],
    });
  }
  return tool;
}

const toolHere = (name: string) => lazily(MEMBERS, () => createTool(name, currentFolder()));
const definitionHere = (name: string) => {
  const members = name === "edit" ? [...DEFINED, "renderShell"] : DEFINED;
  return lazily(members, () => createDefinition(name, currentFolder()));
};

type Make<T> = (cwd: string, options?: ToolOptions) => T;
const tool = (name: string): Make<AgentTool> => (cwd, options) => createTool(name, cwd, options);
const definition = (name: string): Make<ToolDefinition> => (cwd, options) =>
  createDefinition(name, cwd, options);

export const createReadTool = tool("read");
export const createBashTool = tool("bash");
export const createEditTool = tool("edit");
export const createWriteTool = tool("write");
export const createGrepTool = tool("grep");
export const createFindTool = tool("find");
export const createLsTool = tool("ls");

export const createReadToolDefinition = definition("read");
export const createBashToolDefinition = definition("bash");
export const createEditToolDefinition = definition("edit");
export const createWriteToolDefinition = definition("write");
export const createGrepToolDefinition = definition("grep");
export const createFindToolDefinition = definition("find");
export const createLsToolDefinition = definition("ls");

export const readTool = toolHere("read");
export const bashTool = toolHere("bash");
export const editTool = toolHere("edit");
export const writeTool = toolHere("write");
export const grepTool = toolHere("grep");
export const findTool = toolHere("find");
export const lsTool = toolHere("ls");

export const readToolDefinition = definitionHere("read");
export const bashToolDefinition = definitionHere("bash");
export const editToolDefinition = definitionHere("edit");
export const writeToolDefinition = definitionHere("write");
export const grepToolDefinition = definitionHere("grep");
export const findToolDefinition = definitionHere("find");
export const lsToolDefinition = definitionHere("ls");

export const codingTools = [readTool, bashTool, editTool, writeTool];
export const readOnlyTools = [readTool, grepTool, findTool, lsTool];

type OptionsByTool = Partial<Record<"read" | "bash" | "edit" | "write" | "grep" | "find" | "ls", ToolOptions>>;

export function createCodingTools(cwd: string, options: OptionsByTool = {}): AgentTool[] {
  return [
    createReadTool(cwd, options.read),
    createBashTool(cwd, options.bash),
    createEditTool(cwd, options.edit),
    createWriteTool(cwd, options.write),
  ];
}

export function createReadOnlyTools(cwd: string, options: OptionsByTool = {}): AgentTool[] {
  return [
    createReadTool(cwd, options.read),
    createGrepTool(cwd, options.grep),
    createFindTool(cwd, options.find),
    createLsTool(cwd, options.ls),
  ];
}
