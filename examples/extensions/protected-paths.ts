// Prevents the agent from changing protected files.
//
// `.pi/protected` in the project lists their patterns, one a line (`*` within a folder, `**` across
// folders, `#` for comments); without that file the list below holds. The file itself is always
// protected: otherwise the agent could change the list. `write` and `edit` are judged by the file
// that they would really change; a shell command that names a protected file needs the user's
// consent, because it may only read it.
import { readFileSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { basename, dirname, join, matchesGlob, relative, resolve } from "node:path";
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import { isToolCallEventType } from "@mariozechner/pi-coding-agent";

const POLICY = ".pi/protected";
const DEFAULTS = [".env", ".env.*", ".git/**", "**/node_modules/**", "package-lock.json", "**/*.pem"];

function patternsOf(cwd: string): string[] {
  try {
    const lines = readFileSync(join(cwd, POLICY), "utf8").split("\n").map((line) => line.trim());
    return [POLICY, ...lines.filter((line) => line !== "" && !line.startsWith("#"))];
  } catch {
    return [POLICY, ...DEFAULTS];
  }
}

/** Resolves a path: links are followed as far as they exist. */
async function real(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(await real(parent), basename(path));
  }
}

export default function (pi: ExtensionAPI) {
  pi.on("tool_call", async (event, ctx) => {
    const patterns = patternsOf(ctx.cwd);
    const protects = (path: string) => patterns.find((pattern) => matchesGlob(path, pattern));

    if (isToolCallEventType("write", event) || isToolCallEventType("edit", event)) {
      const path = relative(await real(ctx.cwd), await real(resolve(ctx.cwd, event.input.path)));
      const pattern = protects(path);
      if (pattern) return { block: true, reason: `${path} is protected (${pattern}): do not change it` };
    }

    if (isToolCallEventType("bash", event)) {
      const { command } = event.input;
      const words = command.split(/[\s'"=:;|&<>()]+/).map((word) => relative(ctx.cwd, resolve(ctx.cwd, word)));
      const named = words.find((word) => word !== "" && protects(word));
      if (!named) return;
      const allowed = await ctx.ui.confirm(`This command names ${named}, which is protected`, command);
      if (!allowed) return { block: true, reason: `${named} is protected, and the user did not allow this command` };
    }
  });
}
