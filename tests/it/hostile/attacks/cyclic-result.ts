export default (pi) =>
  pi.on("before_agent_start", (event) => {
    const result = { systemPrompt: "x", result: undefined };
    result.result = result;
    if (event.prompt === "attack") return result;
  });
