// Node's built-in modules for pi's own modules, loaded on use: modules loaded while the snapshot is
// made would be part of it, and most of them cannot be.

interface Process {
  cwd(): string;
  execPath: string;
  env: Record<string, string | undefined>;
  platform: string;
  getBuiltinModule(id: string): unknown;
}

interface Path {
  join(...parts: string[]): string;
  resolve(...parts: string[]): string;
  dirname(path: string): string;
  basename(path: string): string;
  relative(from: string, to: string): string;
  isAbsolute(path: string): boolean;
}

interface Os {
  homedir(): string;
  tmpdir(): string;
}

interface Entry {
  name: string;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

interface Fs {
  existsSync(path: string): boolean;
  readFileSync(path: string, encoding: "utf8"): string;
  writeFileSync(path: string, text: string, options?: { encoding?: "utf8"; mode?: number }): void;
  mkdirSync(path: string, options: { recursive: true }): unknown;
  realpathSync(path: string): string;
  rmSync(path: string, options?: { force?: boolean }): void;
  readdirSync(path: string, options: { withFileTypes: true }): Entry[];
  statSync(path: string): { isDirectory(): boolean };
}

export interface EventEmitter {
  on(event: string, listener: (data: string) => void): unknown;
  once(event: string, listener: (data: string) => void): unknown;
  off(event: string, listener: (data: string) => void): unknown;
  emit(event: string, data: string): boolean;
  removeAllListeners(event?: string): unknown;
  listenerCount(event: string): number;
}

interface Readable {
  setEncoding(encoding: string): void;
  on(event: "data", listener: (text: string) => void): void;
}

export interface ChildProcess {
  exitCode: number | null;
  stdin: { write(text: string): void };
  stdout: Readable;
  stderr: Readable;
  kill(signal?: string): boolean;
  on(event: "exit", listener: (what: unknown) => void): void;
  on(event: "error", listener: (error: Error) => void): void;
  on(event: "close", listener: (code: number | null) => void): void;
}

interface Processes {
  spawn(command: string, args: string[], options: object): ChildProcess;
  spawnSync(command: string, args: string[], options: object): { status: number | null; error?: Error };
}

interface Bytes extends Uint8Array<ArrayBuffer> {
  toString(encoding?: string): string;
}

interface Buffer {
  from(data: string | Uint8Array, encoding?: string): Bytes;
  from(data: ArrayBufferLike, offset: number, length: number): Bytes;
}

type Spawn = (command: string, args: string[], options: object) => ChildProcess;

function process(): Process {
  return (globalThis as unknown as { process: Process }).process;
}

export const env = (name: string): string | undefined => process().env[name];
export const environment = (): Record<string, string | undefined> => ({ ...process().env });
export const currentFolder = (): string => process().cwd();
/** The path of this program. */
export const executable = (): string => process().execPath;
export const spawn: Spawn = (...args) =>
  (process().getBuiltinModule("node:child_process") as { spawn: Spawn }).spawn(...args);
export const platform = (): string => process().platform;
export const path = (): Path => process().getBuiltinModule("node:path") as Path;
export const os = (): Os => process().getBuiltinModule("node:os") as Os;
export const buffer = (): Buffer =>
  (process().getBuiltinModule("node:buffer") as { Buffer: Buffer }).Buffer;
export const fs = (): Fs => process().getBuiltinModule("node:fs") as Fs;
export const processes = (): Processes =>
  process().getBuiltinModule("node:child_process") as Processes;

export function eventEmitter(): EventEmitter {
  const events = process().getBuiltinModule("node:events") as { EventEmitter: new () => EventEmitter };
  return new events.EventEmitter();
}
