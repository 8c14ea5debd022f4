// The built-in tools, for extensions that wrap them or do their work elsewhere.
import type { TSchema } from "@sinclair/typebox";
import type { ToolDefinition } from "./api.js";
import type { AgentToolResult, AgentToolUpdateCallback, ToolExecutionMode } from "./pi-agent-core.js";

/** A built-in tool, without what is for prompts and screens. */
export interface BuiltInTool {
  name: string;
  label: string;
  description: string;
  parameters: TSchema;
  executionMode?: ToolExecutionMode;
  // deno-lint-ignore no-explicit-any
  prepareArguments(args: unknown): any;
  execute(
    toolCallId: string,
    // deno-lint-ignore no-explicit-any
    params: any,
    signal?: AbortSignal,
    onUpdate?: AgentToolUpdateCallback<unknown>,
    ctx?: unknown,
    // deno-lint-ignore no-explicit-any
  ): Promise<AgentToolResult<any>>;
}

export interface BashExecOptions {
  onData(data: Uint8Array): void;
  signal?: AbortSignal;
  /** Seconds. */
  timeout?: number;
  env?: Record<string, string | undefined>;
}
export interface BashOperations {
  /** Rejects with `aborted` or `timeout:<seconds>` where that is why it ended. */
  exec(command: string, cwd: string, options: BashExecOptions): Promise<{ exitCode: number | null }>;
}
export interface BashSpawnContext {
  command: string;
  cwd: string;
  env: Record<string, string | undefined>;
}
export type BashSpawnHook = (context: BashSpawnContext) => BashSpawnContext;
export interface BashToolOptions {
  operations?: BashOperations;
  /** A line before every command. */
  commandPrefix?: string;
  spawnHook?: BashSpawnHook;
}

type Awaitable<T> = T | Promise<T>;

export interface ReadOperations {
  readFile(absolutePath: string): Promise<Uint8Array>;
  access(absolutePath: string): Promise<void>;
  detectImageMimeType?(absolutePath: string): Promise<string | null | undefined>;
}
export interface ReadToolOptions {
  autoResizeImages?: boolean;
  operations?: ReadOperations;
}
export interface WriteOperations {
  writeFile(absolutePath: string, content: string): Promise<void>;
  mkdir(dir: string): Promise<void>;
}
export interface WriteToolOptions {
  operations?: WriteOperations;
}
export interface EditOperations {
  readFile(absolutePath: string): Promise<Uint8Array>;
  writeFile(absolutePath: string, content: string): Promise<void>;
  access(absolutePath: string): Promise<void>;
}
export interface EditToolOptions {
  operations?: EditOperations;
}
export interface GrepOperations {
  isDirectory(absolutePath: string): Awaitable<boolean>;
  /** For the lines around a match. */
  readFile(absolutePath: string): Awaitable<string>;
}
export interface GrepToolOptions {
  operations?: GrepOperations;
}
export interface FindOperations {
  exists(absolutePath: string): Awaitable<boolean>;
  glob(pattern: string, cwd: string, options: { ignore: string[]; limit: number }): Awaitable<string[]>;
}
export interface FindToolOptions {
  operations?: FindOperations;
}
export interface LsOperations {
  exists(absolutePath: string): Awaitable<boolean>;
  stat(absolutePath: string): Awaitable<{ isDirectory(): boolean }>;
  readdir(absolutePath: string): Awaitable<string[]>;
}
export interface LsToolOptions {
  operations?: LsOperations;
}

type Make<O> = (cwd: string, options?: O) => BuiltInTool;
// deno-lint-ignore no-explicit-any
type AnyDefinition = ToolDefinition<any, any, any>;
type Define<O> = (cwd: string, options?: O) => AnyDefinition;

export const createReadTool: Make<ReadToolOptions>;
export const createBashTool: Make<BashToolOptions>;
export const createEditTool: Make<EditToolOptions>;
export const createWriteTool: Make<WriteToolOptions>;
export const createGrepTool: Make<GrepToolOptions>;
export const createFindTool: Make<FindToolOptions>;
export const createLsTool: Make<LsToolOptions>;
export const createReadToolDefinition: Define<ReadToolOptions>;
export const createBashToolDefinition: Define<BashToolOptions>;
export const createEditToolDefinition: Define<EditToolOptions>;
export const createWriteToolDefinition: Define<WriteToolOptions>;
export const createGrepToolDefinition: Define<GrepToolOptions>;
export const createFindToolDefinition: Define<FindToolOptions>;
export const createLsToolDefinition: Define<LsToolOptions>;

/** In the folder where pi works when they are first used. */
export const readTool: BuiltInTool;
export const bashTool: BuiltInTool;
export const editTool: BuiltInTool;
export const writeTool: BuiltInTool;
export const grepTool: BuiltInTool;
export const findTool: BuiltInTool;
export const lsTool: BuiltInTool;
export const readToolDefinition: AnyDefinition;
export const bashToolDefinition: AnyDefinition;
export const editToolDefinition: AnyDefinition;
export const writeToolDefinition: AnyDefinition;
export const grepToolDefinition: AnyDefinition;
export const findToolDefinition: AnyDefinition;
export const lsToolDefinition: AnyDefinition;

export const codingTools: BuiltInTool[];
export const readOnlyTools: BuiltInTool[];
export interface ToolsOptions {
  read?: ReadToolOptions;
  bash?: BashToolOptions;
}
export function createCodingTools(cwd: string, options?: ToolsOptions): BuiltInTool[];
export function createReadOnlyTools(cwd: string, options?: ToolsOptions): BuiltInTool[];

/** The shell that pi runs commands with. */
export function createLocalBashOperations(): BashOperations;
export function getShellConfig(): { shell: string; args: string[] };
