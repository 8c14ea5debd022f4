// A tool that runs the project's tests and returns only their essential output to the model.
//
// The command is found once per session (`--test-command` overrides it). While it runs, `onUpdate`
// shows its output; when it is done the model gets the end of it, truncated as by pi's own tools.
// `promptSnippet` and `promptGuidelines` are in the system prompt while the tool is active: they
// make the model use this instead of bash.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { formatSize, truncateTail } from "@mariozechner/pi-coding-agent";
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import { Type } from "@sinclair/typebox";

function commandFor(cwd: string): string | undefined {
  const has = (name: string) => existsSync(join(cwd, name));
  if (has("package.json") && JSON.parse(readFileSync(join(cwd, "package.json"), "utf8")).scripts?.test) return "npm test --silent --";
  if (has("Cargo.toml")) return "cargo test --quiet";
  if (has("go.mod")) return "go test ./...";
  if (has("pyproject.toml") || has("pytest.ini")) return "pytest -q";
  return undefined;
}

export default function (pi: ExtensionAPI) {
  pi.registerFlag("test-command", { type: "string", description: "How to run the tests of this project" });

  pi.on("session_start", (_event, ctx) => {
    const command = pi.getFlag("test-command") ?? commandFor(ctx.cwd);
    // Without a command no tool is registered, so the model does not see it.
    if (typeof command === "string") register(command);
  });

  const register = (command: string) =>
    pi.registerTool({
      name: "run_tests",
      label: "Tests",
      description: `Runs the tests of this project (${command}) and gives the end of their output`,
      promptSnippet: "Run the tests of this project",
      promptGuidelines: ["After a change to the code, use run_tests rather than bash to see whether it works."],
      parameters: Type.Object({
        filter: Type.Optional(Type.String({ description: "Only tests of this name" })),
      }),

      async execute(_toolCallId, { filter }, signal, onUpdate, ctx) {
        let output = "";
        const result = (ended?: string) => {
          const { content, truncated, totalBytes } = truncateTail(output, { maxLines: 200 });
          const cut = truncated ? [`[The end of ${formatSize(totalBytes)} of output]`] : [];
          const text = [...cut, content.trimEnd(), ...(ended ? [ended] : [])].filter((part) => part !== "").join("\n");
          return { content: [{ type: "text" as const, text }], details: { command, filter } };
        };
        const words = filter ? `${command} "$PI_TEST_NAME"` : command;
        const env = { ...process.env, PI_TEST_NAME: filter };
        const child = spawn("sh", ["-c", words], { cwd: ctx.cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
        // Kills the process group, because the shell has children.
        const kill = () => child.pid !== undefined && process.kill(-child.pid, "SIGKILL");
        signal?.addEventListener("abort", kill, { once: true });
        const take = (chunk: string) => {
          output += chunk;
          onUpdate?.(result());
        };
        child.stdout.setEncoding("utf8").on("data", take);
        child.stderr.setEncoding("utf8").on("data", take);
        const code = await new Promise<number | null>((resolve, reject) => {
          child.on("error", reject);
          child.on("close", resolve);
        });
        signal?.removeEventListener("abort", kill);
        signal?.throwIfAborted();
        return result(code === 0 ? "All tests passed." : `The tests failed (exit code ${code}).`);
      },
    });
}
