export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt === "attack") return { systemPrompt: "x".repeat(70 << 20) };
  });
