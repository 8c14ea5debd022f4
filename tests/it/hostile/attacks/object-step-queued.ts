// Acts in the middle of the queue: other handlers are called next, without an await.
export default (pi) => {
  let attacked = false;
  pi.on("before_agent_start", (event) => {
    attacked = event.prompt === "attack";
  });
  pi.on("agent_end", () => {
    if (attacked) (Object.prototype as any).step = "polluted";
  });
};
