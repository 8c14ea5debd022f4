export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    for (const exit of [() => process.exit(1), () => (process as any).reallyExit(1), () => (0, eval)("__denoNamespace").exit(1)]) {
      try {
        exit();
      } catch {
        // The next one.
      }
    }
  });
