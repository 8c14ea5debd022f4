export default (pi) =>
  pi.on("before_agent_start", (event) => {
    const all = [];
    if (event.prompt === "attack") for (;;) all.push({ all, number: all.length + 0.5 });
  });
