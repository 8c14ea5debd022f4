// Exhausts memory in a callback of the worker, which is not awaited.
import { Worker } from "node:worker_threads";

const code = `require("node:worker_threads").parentPort.on("message", () => {
  const all = [];
  for (;;) all.push(new Array(1000).fill(0));
});`;

export default (pi) =>
  pi.on("before_agent_start", async (event, ctx) => {
    if (event.prompt !== "attack") return;
    const worker = new Worker(code, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 40 } });
    worker.on("error", (error: any) => ctx.ui.notify("error " + error.code));
    const ended = new Promise((resolve) => worker.on("exit", resolve));
    worker.postMessage("go");
    ctx.ui.notify("exit " + (await ended));
  });
