// Each call fails where the stack ends, and is caught there.
export default (pi) => {
  pi.events.on("round", () => pi.events.emit("round"));
  pi.on("before_agent_start", (event) => {
    if (event.prompt === "attack") pi.events.emit("round");
  });
};
