// Spins in a timer after other extensions have been called.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    setTimeout(async () => {
      await new Promise((resolve) => setTimeout(resolve, 100));
      for (;;);
    }, 100);
  });
