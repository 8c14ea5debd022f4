// Emits recursively: each call fails at the end of the stack and is caught there.
export default (pi) => {
  pi.events.on("round", () => pi.events.emit("round"));
  pi.on("before_agent_start", (event) => {
    if (event.prompt === "attack") pi.events.emit("round");
  });
};
