// A tool that finds code which occurs in a project more than once.
//
// All files are read and compared, which takes a second of computing in a large project. A worker
// thread does that: the agent and all other extensions continue meanwhile, and an abort ends it at
// once. Workers are TypeScript like everything else.
import { Worker } from "node:worker_threads";
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import { Type } from "@sinclair/typebox";
import type { Duplicate, Message } from "./worker.ts";

function search(
  root: string,
  lines: number,
  signal: AbortSignal | undefined,
  onProgress: (text: string) => void,
): Promise<Duplicate[]> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: { root, lines } });
    const stop = (settle: () => void) => {
      signal?.removeEventListener("abort", abort);
      settle();
      void worker.terminate();
    };
    const abort = () => stop(() => reject(new Error("The search was aborted")));
    signal?.addEventListener("abort", abort);
    worker.on("message", (message: Message) => {
      if (message.type === "progress") onProgress(`${message.files} files read`);
      else stop(() => resolve(message.duplicates));
    });
    worker.on("error", (error) => stop(() => reject(error)));
  });
}

export default function (pi: ExtensionAPI) {
  pi.registerTool({
    name: "find_duplicates",
    label: "Duplicates",
    description: "Finds passages of code that stand in the project more than once",
    promptSnippet: "Find code that stands in the project more than once",
    parameters: Type.Object({
      lines: Type.Optional(Type.Integer({ minimum: 3, maximum: 100, description: "How long at least (6)" })),
    }),

    async execute(_toolCallId, { lines = 6 }, signal, onUpdate, ctx) {
      const answer = (text: string, duplicates: Duplicate[]) => ({
        content: [{ type: "text" as const, text }],
        details: { duplicates },
      });
      const found = await search(ctx.cwd, lines, signal, (text) => onUpdate?.(answer(text, [])));
      const text = found.map(({ lines, places }) => `${lines} lines: ${places.join(", ")}`).join("\n");
      return answer(text || "Nothing stands there twice.", found);
    },
  });
}
