// The built-in tools, for extensions that wrap them or replace their operations.
// @ts-ignore: without Node's types a Buffer is what it is made of
import type * as Node from "node:buffer";
import type { Has, SchemaOf } from "./schema.js";
import type { ToolDefinition } from "./api.js";
import type { BuiltInToolInputs } from "./events.js";
import type { ToolDetails } from "./tool-types.js";
import type { AgentToolResult, AgentToolUpdateCallback, ToolExecutionMode } from "../pi-agent-core.js";

type Bytes = Has<Node.Buffer, Uint8Array>;

/** A built-in tool, without its members for prompts and screens. */
// deno-lint-ignore no-explicit-any
export interface BuiltInTool<TInput = any, TDetails = any> {
  name: string;
  label: string;
  description: string;
  parameters: SchemaOf<TInput>;
  executionMode?: ToolExecutionMode;
  prepareArguments(args: unknown): TInput;
  execute(
    toolCallId: string,
    params: TInput,
    signal?: AbortSignal,
    onUpdate?: AgentToolUpdateCallback<TDetails>,
    ctx?: unknown,
  ): Promise<AgentToolResult<TDetails>>;
}

export interface BashExecOptions {
  onData(data: Bytes): void;
  signal?: AbortSignal;
  /** Timeout in seconds. */
  timeout?: number;
  env?: Record<string, string | undefined>;
}
export interface BashOperations {
  /** Rejects with `aborted` or `timeout:<seconds>` if one of these ended the command. */
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
  /** `false` omits `PI_SESSION_ID` and similar variables from the environment. */
  exposeSessionEnvironment?: boolean;
  /** The program that runs commands, instead of that of the settings; ignored with `operations`. */
  shellPath?: string;
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
  /** Reads the lines around a match. */
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

/** Accepts any details, because a wrapper adds its own. `ToolDetails` has their types. */
type Tool<K extends keyof BuiltInToolInputs> = BuiltInTool<BuiltInToolInputs[K]>;
type Definition<K extends keyof BuiltInToolInputs> = ToolDefinition<SchemaOf<BuiltInToolInputs[K]>, ToolDetails[K]>;
type Make<K extends keyof BuiltInToolInputs, O> = (cwd: string, options?: O) => Tool<K>;
type Define<K extends keyof BuiltInToolInputs, O> = (cwd: string, options?: O) => Definition<K>;

export const createReadTool: Make<"read", ReadToolOptions>;
export const createBashTool: Make<"bash", BashToolOptions>;
export const createEditTool: Make<"edit", EditToolOptions>;
export const createWriteTool: Make<"write", WriteToolOptions>;
export const createGrepTool: Make<"grep", GrepToolOptions>;
export const createFindTool: Make<"find", FindToolOptions>;
export const createLsTool: Make<"ls", LsToolOptions>;
export const createReadToolDefinition: Define<"read", ReadToolOptions>;
export const createBashToolDefinition: Define<"bash", BashToolOptions>;
export const createEditToolDefinition: Define<"edit", EditToolOptions>;
export const createWriteToolDefinition: Define<"write", WriteToolOptions>;
export const createGrepToolDefinition: Define<"grep", GrepToolOptions>;
export const createFindToolDefinition: Define<"find", FindToolOptions>;
export const createLsToolDefinition: Define<"ls", LsToolOptions>;

/** Tools for the folder in which pi works when they are first used. */
export const readTool: Tool<"read">;
export const bashTool: Tool<"bash">;
export const editTool: Tool<"edit">;
export const writeTool: Tool<"write">;
export const grepTool: Tool<"grep">;
export const findTool: Tool<"find">;
export const lsTool: Tool<"ls">;
export const readToolDefinition: Definition<"read">;
export const bashToolDefinition: Definition<"bash">;
export const editToolDefinition: Definition<"edit">;
export const writeToolDefinition: Definition<"write">;
export const grepToolDefinition: Definition<"grep">;
export const findToolDefinition: Definition<"find">;
export const lsToolDefinition: Definition<"ls">;

export const codingTools: BuiltInTool[];
export const readOnlyTools: BuiltInTool[];
export interface ToolsOptions {
  read?: ReadToolOptions;
  bash?: BashToolOptions;
  edit?: EditToolOptions;
  write?: WriteToolOptions;
  grep?: GrepToolOptions;
  find?: FindToolOptions;
  ls?: LsToolOptions;
}
export function createCodingTools(cwd: string, options?: ToolsOptions): BuiltInTool[];
export function createReadOnlyTools(cwd: string, options?: ToolsOptions): BuiltInTool[];

/** Runs commands with pi's shell or another one, which has to exist. */
export function createLocalBashOperations(options?: { shellPath?: string }): BashOperations;
export function getShellConfig(customShellPath?: string): ShellConfig;
interface ShellConfig {
  shell: string;
  args: string[];
  /** From newer versions, not set: the command is always the last argument. */
  commandTransport?: "argv" | "stdin";
}

/** The numbered diff of an edit for display. */
export function generateDiffString(
  oldContent: string,
  newContent: string,
  contextLines?: number,
): { diff: string; firstChangedLine: number | undefined };
export function generateUnifiedPatch(
  path: string,
  oldContent: string,
  newContent: string,
  contextLines?: number,
): string;

export interface ImageResizeOptions {
  maxWidth?: number;
  maxHeight?: number;
  /** The limit for the encoded text. */
  maxBytes?: number;
  jpegQuality?: number;
}
export interface ResizedImage {
  data: string;
  mimeType: string;
  originalWidth: number;
  originalHeight: number;
  width: number;
  height: number;
  wasResized: boolean;
}
/** `null` for data that cannot be read, or made small enough. */
export function resizeImage(
  image: { data: string; mimeType: string },
  options?: ImageResizeOptions,
): Promise<ResizedImage | null>;
/** The signature of newer versions. */
export function resizeImage(
  bytes: Uint8Array,
  mimeType: string,
  options?: ImageResizeOptions,
): Promise<ResizedImage | null>;
/** `null` for data that cannot be read. */
export function convertToPng(data: string, mimeType: string): Promise<{ data: string; mimeType: string } | null>;
export function formatDimensionNote(image: ResizedImage): string | undefined;

/** Rejects without a clipboard. */
export function copyToClipboard(text: string): Promise<void>;

// Without this line every declaration would be exported.
export {};
