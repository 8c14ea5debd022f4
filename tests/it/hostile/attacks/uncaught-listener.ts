// Called by the runtime, not by an extension's code, and for anybody's error.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    process.on("uncaughtException", () => {
      for (;;);
    });
    setTimeout(() => {
      throw new Error("from a timer");
    }, 50);
  });
