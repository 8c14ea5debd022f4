// Throws where no caller can catch it; other work continues.
const ways: Record<string, () => void> = {
  microtask: () => queueMicrotask(() => { throw new Error("from a microtask"); }),
  listener: () => {
    const controller = new AbortController();
    controller.signal.addEventListener("abort", () => { throw new Error("from a listener"); });
    controller.abort();
  },
  report: () => reportError(new Error("from reportError")),
  timer: () => void setTimeout(() => { throw new Error("from a timer"); }),
  tick: () => process.nextTick(() => { throw new Error("from a tick"); }),
  observer: () => {
    new PerformanceObserver(() => { throw new Error("from an observer"); })
      .observe({ entryTypes: ["mark"] });
    performance.mark("now");
  },
  nothing: () => queueMicrotask(() => { throw "from nowhere"; }),
};
const pause = () => new Promise((resolve) => setTimeout(resolve, 20));

export default (pi) => {
  queueMicrotask(() => { throw new Error("while loading"); });
  pi.on("before_agent_start", async (event, ctx) => {
    if (event.prompt !== "attack") return;
    for (const way of Object.values(ways)) {
      // Not in the same breath as the call.
      if (way !== ways.microtask) await null;
      way();
      await pause();
    }
    ctx.ui.notify("went on");
  });
  pi.registerTool({
    name: "thrower",
    label: "Thrower",
    description: "throws beside its work",
    parameters: { type: "object", properties: {} },
    async execute() {
      ways.listener();
      await pause();
      ways.microtask();
      return { content: [{ type: "text", text: "done all the same" }], details: {} };
    },
  });
  pi.on("tool_result", async () => {
    await pause();
    ways.listener();
    return { content: [{ type: "text", text: "changed all the same" }] };
  });
  pi.registerCommand("handled", {
    handler: async (_, ctx) => {
      const listener = (error) => ctx.ui.notify("handled " + error.message);
      process.on("uncaughtException", listener);
      queueMicrotask(() => { throw new Error("mine"); });
      await pause();
      process.off("uncaughtException", listener);
    },
  });
};
