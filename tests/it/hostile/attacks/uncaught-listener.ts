// Spins in a listener that the runtime calls for errors of any extension.
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
