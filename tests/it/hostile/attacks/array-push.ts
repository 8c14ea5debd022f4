// Nothing is ever added to a list.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    Array.prototype.push = () => 0;
  });
