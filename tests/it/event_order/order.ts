// What handlers do takes time, and has to be done when the agent goes on.
import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

export default function (pi) {
  let ends = 0;
  const slowly = (name, then = (event, ctx) => {}) =>
    pi.on(name, async (event, ctx) => {
      const role = event.message ? ` ${event.message.role}` : "";
      ctx.ui.notify(`${name}${role}`);
      await pause(20);
      await then(event, ctx);
      ctx.ui.notify(`${name}${role}, done`);
    });
  slowly("agent_start");
  slowly("turn_start");
  slowly("message_start");
  slowly("message_end", (event) => pi.appendEntry("before", event.message.role));
  slowly("tool_execution_start", () => writeFileSync("made-by-handler", ""));
  slowly("tool_execution_end");
  slowly("turn_end");
  slowly("model_select");
  pi.on("message_update", async (event, ctx) => {
    if (event.assistantMessageEvent.type !== "text_end") return;
    await pause(20);
    ctx.ui.notify("the last update, done");
  });
  pi.on("context", (event, ctx) => ctx.ui.notify("context"));
  pi.registerTool({
    name: "look",
    label: "Look",
    description: "Looks whether the handler is done",
    parameters: { type: "object", properties: {} },
    execute: async () => ({ content: [{ type: "text", text: `made: ${existsSync("made-by-handler")}` }] }),
  });
  pi.on("agent_end", async (event, ctx) => {
    ends += 1;
    if (ends > 1) return;
    const say = (content, options) =>
      pi.sendMessage({ customType: "said", content, display: true }, options);
    ctx.ui.notify(`agent_end: ${ctx.isIdle()}`);
    say("for the next run");
    await pause(20);
    ctx.ui.notify(`agent_end, later: ${ctx.isIdle()}`);
    say("at once");
    pi.appendEntry("from agent_end");
    say("go on", { triggerTurn: true });
    await pause(20);
    ctx.ui.notify("agent_end, done");
  });
}
