const stubborn = () => {
  for (;;) {
    try {
      for (;;) JSON.parse("{");
    } catch {
      continue;
    } finally {
      stubborn();
    }
  }
};

export default (pi) => {
  process.on("uncaughtException", () => stubborn());
  process.on("unhandledRejection", () => stubborn());
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    try {
      for (;;);
    } catch {
      stubborn();
    } finally {
      stubborn();
    }
  });
};
