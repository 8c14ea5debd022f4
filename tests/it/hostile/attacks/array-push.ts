// Makes `push` add nothing.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    Array.prototype.push = () => 0;
  });
