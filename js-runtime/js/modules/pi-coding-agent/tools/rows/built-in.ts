// The renderers of the built-in tools.
import { bashRenderers } from "pi:pi-coding-agent/tools/rows/bash.ts";
import { editRenderers } from "pi:pi-coding-agent/tools/rows/edit.ts";
import { readRenderers, writeRenderers } from "pi:pi-coding-agent/tools/rows/files.ts";
import type { ToolRenderers } from "pi:pi-coding-agent/tools/rows/rendering.ts";
import { findRenderers, grepRenderers, lsRenderers } from "pi:pi-coding-agent/tools/rows/search.ts";

const BUILT_IN: Readonly<Record<string, ToolRenderers>> = {
  bash: bashRenderers,
  edit: editRenderers,
  find: findRenderers,
  grep: grepRenderers,
  ls: lsRenderers,
  read: readRenderers,
  write: writeRenderers,
};

export function builtInRenderers(tool: string): ToolRenderers | undefined {
  return Object.hasOwn(BUILT_IN, tool) ? BUILT_IN[tool] : undefined;
}
