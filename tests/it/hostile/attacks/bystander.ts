// Does nothing wrong: no report may name it.
export default (pi) => {
  pi.registerCommand("ping", { handler: async (args, ctx) => ctx.ui.notify("pong " + args) });
  pi.on("before_agent_start", async (event) => {
    if (event.prompt !== "attack") return;
    pi.events.emit("poke", "in good faith");
  });
  pi.on("agent_end", () => {});
  pi.on("session_start", (event, ctx) => ctx.ui.notify("started " + event.reason));
};
