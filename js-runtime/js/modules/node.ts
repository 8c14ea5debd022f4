// Node's built-in modules for our own modules, fetched when they are used: loaded
// while the snapshot is made they would be part of it, and most of them cannot.

interface Process {
  env: Record<string, string | undefined>;
  platform: string;
  getBuiltinModule(id: string): unknown;
}

interface Path {
  join(...parts: string[]): string;
  resolve(...parts: string[]): string;
}

interface Os {
  homedir(): string;
}

interface Fs {
  existsSync(path: string): boolean;
  readFileSync(path: string, encoding: "utf8"): string;
}

function process(): Process {
  return (globalThis as unknown as { process: Process }).process;
}

export const env = (name: string): string | undefined => process().env[name];
export const platform = (): string => process().platform;
export const path = (): Path => process().getBuiltinModule("node:path") as Path;
export const os = (): Os => process().getBuiltinModule("node:os") as Os;
export const fs = (): Fs => process().getBuiltinModule("node:fs") as Fs;
