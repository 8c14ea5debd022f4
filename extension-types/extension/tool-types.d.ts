// Arguments and results of the built-in tools, by name.
import type { BuiltInToolInputs, ToolCallEvent } from "./events.js";
import type { TruncationResult } from "../index.js";

export type BashToolInput = BuiltInToolInputs["bash"];
export type ReadToolInput = BuiltInToolInputs["read"];
export type EditToolInput = BuiltInToolInputs["edit"];
export type WriteToolInput = BuiltInToolInputs["write"];
export type GrepToolInput = BuiltInToolInputs["grep"];
export type FindToolInput = BuiltInToolInputs["find"];
export type LsToolInput = BuiltInToolInputs["ls"];

interface Truncated {
  /** Set if the output was truncated. */
  truncation?: TruncationResult;
}
export interface BashToolDetails extends Truncated {
  /** The file with all of the output, if it was truncated. */
  fullOutputPath?: string;
}
export type ReadToolDetails = Truncated;
export interface EditToolDetails {
  diff: string;
  /** A unified diff of the same change, with `path` as in the call. */
  patch: string;
  firstChangedLine?: number;
}
export interface GrepToolDetails extends Truncated {
  matchLimitReached?: number;
  linesTruncated?: boolean;
}
export interface FindToolDetails extends Truncated {
  resultLimitReached?: number;
}
export interface LsToolDetails extends Truncated {
  entryLimitReached?: number;
}

export interface ToolDetails {
  bash: BashToolDetails | undefined;
  read: ReadToolDetails | undefined;
  edit: EditToolDetails | undefined;
  write: undefined;
  grep: GrepToolDetails | undefined;
  find: FindToolDetails | undefined;
  ls: LsToolDetails | undefined;
}

type CallOf<K extends keyof BuiltInToolInputs> = ToolCallEvent & { toolName: K; input: BuiltInToolInputs[K] };
export type BashToolCallEvent = CallOf<"bash">;
export type ReadToolCallEvent = CallOf<"read">;
export type EditToolCallEvent = CallOf<"edit">;
export type WriteToolCallEvent = CallOf<"write">;
export type GrepToolCallEvent = CallOf<"grep">;
export type FindToolCallEvent = CallOf<"find">;
export type LsToolCallEvent = CallOf<"ls">;
export type CustomToolCallEvent = ToolCallEvent;
/** The arguments of a tool that other programs may have. */
export interface PowerShellToolInput {
  command: string;
  timeout?: number;
}
export type PowerShellToolDetails = BashToolDetails;
export type PowerShellToolCallEvent = ToolCallEvent & { toolName: "powershell"; input: PowerShellToolInput };

// Without this line every declaration would be exported.
export {};
