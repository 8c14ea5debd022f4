export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    for (const signal of ["SIGTERM", "SIGKILL", "SIGSTOP", "SIGSEGV", "SIGINT"]) {
      try {
        process.kill(process.pid, signal);
      } catch {
        // The next one.
      }
    }
  });
