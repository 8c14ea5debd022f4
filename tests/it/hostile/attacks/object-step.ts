// The events of the queue, for everybody, are what they are not.
export default (pi) => {
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    Object.prototype.step = "polluted";
  });
  pi.on("agent_start", () => {});
};
