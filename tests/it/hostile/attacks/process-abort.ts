export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt === "attack") setTimeout(() => process.abort(), 10);
  });
