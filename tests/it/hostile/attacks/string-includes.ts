// Makes `includes` always true.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    String.prototype.includes = () => true;
  });
