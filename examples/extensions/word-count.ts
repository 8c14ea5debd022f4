// A tool that counts the lines, words and letters of a file.
//
// `parameters` is a TypeBox schema: the model gets it, and its arguments are checked against it
// before `execute` runs. An exception of `execute` becomes the tool's error.
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { StringEnum } from "@mariozechner/pi-ai";
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import { Type } from "@sinclair/typebox";

const UNITS = ["lines", "words", "letters"] as const;

const COUNTERS: Record<(typeof UNITS)[number], (text: string) => number> = {
  lines: (text) => text.split("\n").length - (text.endsWith("\n") ? 1 : 0),
  words: (text) => text.match(/\S+/gu)?.length ?? 0,
  letters: (text) => text.match(/\p{L}/gu)?.length ?? 0,
};

export default function (pi: ExtensionAPI) {
  pi.registerTool({
    name: "word_count",
    label: "Word count",
    description: "Counts the lines, words or letters of a text file",
    promptSnippet: "Count the lines, words or letters of a file",
    parameters: Type.Object({
      path: Type.String({ description: "The file, relative to the working directory" }),
      unit: Type.Optional(StringEnum(UNITS, { description: "What to count (words)" })),
    }),

    async execute(_toolCallId, { path, unit = "words" }, signal, _onUpdate, ctx) {
      const text = await readFile(resolve(ctx.cwd, path), { encoding: "utf8", signal });
      const count = COUNTERS[unit](text);
      return {
        // The model gets `content`; clients and the session file get `details`.
        content: [{ type: "text", text: `${path} has ${count} ${unit}.` }],
        details: { path, unit, count },
      };
    },
  });
}
