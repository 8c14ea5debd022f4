export default (pi) =>
  pi.on("before_agent_start", async (event) => {
    if (event.prompt === "attack") for (;;) await null;
  });
