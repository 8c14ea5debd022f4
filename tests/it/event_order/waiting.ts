// Handlers that wait for the agent that waits for them, each for one run: `/wait NAME`.
import { setTimeout as pause } from "node:timers/promises";

export default function (pi) {
  let name, command;
  pi.registerCommand("wait", {
    handler: async (args, ctx) => {
      name = args;
      command = ctx;
    },
  });
  // Events come one after the other: the last of a run may come late.
  let isRunning = false;
  pi.registerCommand("rest", {
    handler: async (args, ctx) => {
      await ctx.waitForIdle();
      while (isRunning) await pause(1);
    },
  });
  pi.on("agent_start", () => { isRunning = true; });
  const once = (mine, event, handler) =>
    pi.on(event, async (event, ctx) => {
      if (name !== mine) return;
      name = undefined;
      const said = await handler(ctx);
      if (said) ctx.ui.notify(said);
    });
  const compact = (ctx) =>
    new Promise((resolve) =>
      ctx.compact({ onComplete: () => resolve("compacted"), onError: (error) => resolve(error.message) })
    );
  for (const event of ["message_start", "turn_end", "agent_end"]) {
    once(`idle in ${event}`, event, async () => {
      await command.waitForIdle();
      return "idle";
    });
  }
  once("compaction in turn_end", "turn_end", compact);
  once("compaction in agent_end", "agent_end", compact);
  once("model", "turn_end", async (ctx) => `set: ${await pi.setModel({ provider: "scripted", id: "other" })}`);
  pi.on("model_select", () => {});
  once("abort", "message_end", async (ctx) => {
    ctx.abort();
    await pause(10);
    return "aborted";
  });
  once("itself", "agent_end", async (ctx) => {
    await pause(10);
    pi.sendUserMessage("said by itself");
    while (ctx.isIdle()) await pause(1);
    await command.waitForIdle();
    return "said";
  });
  once("tree", "agent_end", async (ctx) => {
    await pause(10);
    const first = ctx.sessionManager.getEntries().find((entry) => entry.type === "message");
    const { cancelled } = await command.navigateTree(first.id);
    return `went: ${!cancelled}`;
  });
  once("new session", "agent_end", async () => {
    await command.newSession({ withSession: (ctx) => ctx.ui.notify("entered") });
  });
  once("reload", "agent_end", async () => {
    await command.reload();
    process.stderr.write("RELOADED\n");
  });
  pi.on("agent_end", () => { isRunning = false; });
}
