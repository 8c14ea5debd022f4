import { Worker } from "node:worker_threads";

// Uses the name of the internals in the runtime's own JavaScript.
const PANIC = "__denoNamespace[__denoNamespace.internal].core.ops.op_panic('from inside')";

export default (pi) =>
  pi.on("before_agent_start", async (event) => {
    if (event.prompt !== "attack") return;
    const worker = new Worker(PANIC, { eval: true });
    await new Promise((resolve) => worker.on("error", resolve));
    // Not what packages look whether they run in Deno by.
    (0, eval)(PANIC);
  });
