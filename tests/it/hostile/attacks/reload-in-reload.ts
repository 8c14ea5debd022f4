// Reloads during a reload, and spins in `session_shutdown`.
export default (pi) => {
  let ctx;
  pi.registerCommand("attack", {
    handler: async (args, given) => {
      ctx = given;
      const all = [ctx.reload(), ctx.reload(), ctx.newSession(), ctx.reload()];
      ctx.ui.notify("settled " + (await Promise.allSettled(all)).length);
    },
  });
  pi.on("session_shutdown", () => {
    ctx?.reload().catch(() => {});
    if (ctx) for (;;);
  });
  pi.on("session_start", () => {
    pi.sendUserMessage("said at the start");
  });
};
