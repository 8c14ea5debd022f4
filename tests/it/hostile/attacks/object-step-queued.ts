// In the midst of the queue: others are called next, and nothing is awaited in between.
export default (pi) => {
  let attacked = false;
  pi.on("before_agent_start", (event) => {
    attacked = event.prompt === "attack";
  });
  pi.on("agent_end", () => {
    if (attacked) Object.prototype.step = "polluted";
  });
};
