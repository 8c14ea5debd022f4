// Everything that is awaited is a promise now, and never settles.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    Object.prototype.then = () => {};
  });
