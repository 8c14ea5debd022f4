// Replaces `then`, through which every result of the runtime goes.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    Promise.prototype.then = () => new Promise(() => {});
  });
