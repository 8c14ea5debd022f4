// A home and a project in a temporary folder for each test: files of the machine's user are neither
// read nor written.
import { MODEL, PROVIDER } from "pi:pi-coding-agent/test/model.ts";

const { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } =
  process.getBuiltinModule("node:fs");
const { tmpdir } = process.getBuiltinModule("node:os");
const { dirname, join, resolve } = process.getBuiltinModule("node:path");

/** Content by path: text, or a value to write as JSON. */
export type Files = Record<string, string | object>;

export interface WorkspaceOptions {
  files?: Files;
  agentFiles?: Files;
  settings?: Record<string, unknown>;
  env?: Record<string, string>;
  contextWindow?: number;
}

/** Variables that a program needs to run at all. */
const PASSED_ON = ["PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SystemRoot", "ComSpec", "PATHEXT"];

export class Workspace {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), "pi-test-")));
  readonly home = join(this.root, "home");
  readonly agentDir = join(this.home, ".pi", "agent");
  readonly project = join(this.root, "project");
  readonly env: Record<string, string>;

  constructor(options: WorkspaceOptions, modelUrl: string) {
    for (const folder of [this.agentDir, this.project, join(this.root, "tmp")]) {
      mkdirSync(folder, { recursive: true });
    }
    this.env = {
      ...Object.fromEntries(PASSED_ON.flatMap((name) => {
        const value = process.env[name];
        return value === undefined ? [] : [[name, value]];
      })),
      HOME: this.home,
      USERPROFILE: this.home,
      TMPDIR: join(this.root, "tmp"),
      LANG: "C.UTF-8",
      TZ: "UTC",
      PI_CODING_AGENT_DIR: this.agentDir,
      PI_OFFLINE: "1",
      PI_SKIP_VERSION_CHECK: "1",
      ...options.env,
    };
    const { contextWindow = 200_000 } = options;
    this._write(this.agentDir, {
      "models.json": {
        providers: {
          [PROVIDER]: {
            baseUrl: modelUrl,
            apiKey: "scripted-key",
            api: "anthropic-messages",
            models: [{
              id: MODEL,
              name: "Scripted 1",
              reasoning: true,
              input: ["text", "image"],
              contextWindow,
              maxTokens: 32_000,
              cost: { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 1.25 },
            }],
          },
        },
      },
      "settings.json": {
        defaultProvider: PROVIDER,
        defaultModel: MODEL,
        retry: { enabled: true, maxRetries: 3, baseDelayMs: 1 },
        ...options.settings,
      },
      ...options.agentFiles,
    });
    this._write(this.project, options.files ?? {});
  }

  private _write(folder: string, files: Files): void {
    for (const [name, content] of Object.entries(files)) {
      const path = resolve(folder, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, typeof content === "string" ? content : `${JSON.stringify(content, null, 2)}\n`);
    }
  }

  write(name: string, content: string | object): string {
    this._write(this.project, { [name]: content });
    return resolve(this.project, name);
  }

  read(name: string): string {
    return readFileSync(resolve(this.project, name), "utf8");
  }

  exists(name: string): boolean {
    return existsSync(resolve(this.project, name));
  }

  /** Replaces the paths of the folders, which differ in every run, by names. */
  tidy(text: string): string {
    return text
      .replaceAll(this.project, "<project>")
      .replaceAll(this.agentDir, "<agent>")
      .replaceAll(this.home, "<home>")
      .replaceAll(this.root, "<root>");
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true, maxRetries: 3 });
  }
}
