// Stops the agent when a session gets expensive: `pi --budget 2.50`, in dollars.
//
// When the budget is used up the user is asked, once per budget's worth. No answer for half a
// minute, or no user to ask (`pi -p`), means no: the run ends.
import type { ExtensionAPI, ExtensionContext } from "@mariozechner/pi-coding-agent";

const ANSWER_TIMEOUT = 30_000;
const dollars = (cost: number) => `$${cost.toFixed(2)}`;

/** The cost of the session, abandoned branches included. */
function spent(ctx: ExtensionContext): number {
  return ctx.sessionManager.getEntries().reduce((sum, entry) => {
    const message = entry.type === "message" ? entry.message : undefined;
    return sum + (message?.role === "assistant" ? message.usage.cost.total : 0);
  }, 0);
}

export default function (pi: ExtensionAPI) {
  pi.registerFlag("budget", { type: "string", description: "Ask when a session costs more, in dollars" });
  let budget = Infinity;
  let allowed = Infinity;

  pi.on("session_start", (_event, ctx) => {
    const flag = pi.getFlag("budget");
    if (flag === undefined) return;
    budget = Number(flag);
    if (!(budget > 0)) throw new Error(`--budget ${flag}: say how many dollars, such as 2.50`);
    // The earlier cost of a reopened session does not use up the budget.
    allowed = budget * (Math.floor(spent(ctx) / budget) + 1);
  });

  // pi waits for handlers of `tool_call`, so nothing more is done, or paid, until the user has
  // answered.
  pi.on("tool_call", async (_event, ctx) => {
    const cost = spent(ctx);
    ctx.ui.setStatus("budget", budget === Infinity ? undefined : `${dollars(cost)} of ${dollars(allowed)}`);
    if (cost <= allowed) return;
    const title = `This session has cost ${dollars(cost)}`;
    const goOn = await ctx.ui.confirm(title, `Go on until ${dollars(allowed + budget)}?`, { timeout: ANSWER_TIMEOUT });
    if (goOn) {
      allowed += budget;
      return;
    }
    ctx.abort();
    // Without a user there is no dialog that shows the reason.
    if (!ctx.hasUI) console.error(`The budget of ${dollars(allowed)} is used up`);
    return { block: true, reason: `The budget of ${dollars(allowed)} is used up` };
  });
}
